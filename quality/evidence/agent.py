"""A scripted agent: it searches, reads what looks best first, and answers what a text proves.

It starts every task without memory and sees only the texts of `content[]`. A `Reader` knows how the
pages of a server are read, as a model learns it from the pages and from the list of tools.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from quality.evidence import proof
from quality.evidence.tasks import NONE, TAIL_CHARS, Ask

#: Pages of one search that the agent reads.
PAGES = 3
PHRASE = "personal collection code"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class Hit:
    """A record on a page: its excerpts, and the calls that read more of it, best first.

    `id` is what other calls need to name the record.
    """

    id: str
    excerpts: list[str] = field(default_factory=list)
    reads: list[Call] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Page:
    """The hits of a search, and the call for the next page if it may have an answer."""

    hits: Sequence[Hit]
    next: Call | None = None


class ToolError(Exception):
    """The server answered a call with an error; the text is the message."""


Caller = Callable[[Call], str]


class Reader(Protocol):
    """How the pages of one server are read. `call` makes a call and returns its text."""

    def search(self, words: Sequence[str]) -> Call:
        """The search for records with all of the words."""

    def page(self, text: str, ask: Ask) -> Page:
        """The page that a search returned."""

    def text(self, answer: str) -> str:
        """The text of the record that a read returned."""

    def more(self, answer: str) -> Call | None:
        """The call for the next match in the same text, if a read printed one."""

    def record(self, ask: Ask, call: Caller) -> str:
        """The id of the record that a task names."""

    def around(self, id: str, phrase: str) -> Call:
        """The read of a text around a phrase."""

    def end(self, id: str, chars: int, call: Caller) -> str:
        """A text that ends as the record does, with at least so many characters."""

    def count(self, ask: Ask, call: Caller) -> int:
        """The number of records that a task asks for."""

    def handles(self, answer: str) -> Iterator[Call]:
        """A call for each id, cursor and call that an answer prints."""


class Agent:
    """Solves tasks on one server."""

    def __init__(self, reader: Reader, call: Caller) -> None:
        self._reader, self._call = reader, call
        self._more = list[Call]()

    def answer(self, ask: Ask) -> str:
        """The answer, or `NONE` if no text that was read proves one. Raises `ToolError`."""
        if ask.goal == "count":
            return str(self._reader.count(ask, self._call))
        if ask.goal == "tail":
            id = self._reader.record(ask, self._call)
            return self._reader.end(id, TAIL_CHARS, self._call)[-TAIL_CHARS:]
        texts = self._searched(ask) if ask.words else self._named(ask)
        return next((code for text in texts for code in proof.answers(ask, text)), NONE)

    def _named(self, ask: Ask) -> Iterator[str]:
        yield from self._read([self._reader.around(self._reader.record(ask, self._call), PHRASE)])

    def _searched(self, ask: Ask) -> Iterator[str]:
        """Every text that may prove the answer: excerpts, best reads, others, other matches."""
        call: Call | None = self._reader.search(ask.words)
        hits = list[Hit]()
        for _ in range(PAGES):
            if call is None:
                break
            page = self._reader.page(self._call(call), ask)
            for hit in page.hits:
                yield from hit.excerpts
            promising = sorted(
                page.hits, key=lambda hit: -proof.shown(ask.words, "\n".join(hit.excerpts))
            )
            for hit in promising:
                if ask.goal == "closing":
                    hit.reads.insert(0, self._reader.around(hit.id, PHRASE))
                yield from self._read(hit.reads[:1])
            hits += promising
            call = page.next
        for hit in hits:
            yield from self._read(hit.reads[1:])
        while self._more:
            yield from self._read([self._more.pop(0)])

    def _read(self, calls: Sequence[Call]) -> Iterator[str]:
        for call in calls:
            try:
                answer = self._call(call)
            except ToolError:  # it is counted; the next read may show the answer
                continue
            if more := self._reader.more(answer):
                self._more.append(more)
            yield self._reader.text(answer)
