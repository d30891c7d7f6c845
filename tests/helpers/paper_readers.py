"""Readers of papers that see one channel only, as hosts show it to their models.

They begin with `search_papers` and then make only calls that an answer spelled out.
"""

from collections.abc import Iterator
from typing import Any

from tests.helpers.caller import Answer
from tests.helpers.papers import Library
from tests.helpers.reading import Call, printed_calls, structured_calls

MOST_CALLS = 500
MARKER = "\n[truncated: "


class TextReader:
    """Sees only `content[]`."""

    def __init__(self, library: Library) -> None:
        self.caller = library
        self.calls_made = 0

    def search(self, **args: Any) -> Answer:
        return self.make(Call("search_papers", args))

    def follow(self, answer: Answer, why: str, number: int = 0) -> Answer:
        """Makes a call that this answer offers; returns its answer."""
        return self.make(self.offered(answer, why)[number])

    def offered(self, answer: Answer, why: str) -> list[Call]:
        return [call for call in self.calls(answer) if call.why == why]

    def rest(self, answer: Answer) -> str:
        """This window and all later ones, to the end of the text."""
        return "".join(self._windows(answer, "next"))

    def before(self, answer: Answer) -> str:
        """All windows before this one, back to the beginning of the text."""
        _, *earlier = self._windows(answer, "previous")
        return "".join(reversed(earlier))

    def make(self, call: Call) -> Answer:
        self.calls_made += 1
        assert self.calls_made < MOST_CALLS, f"lost on the way: {call}"
        return self.caller.ok(call.tool, **call.args)

    def calls(self, answer: Answer) -> list[Call]:
        """The calls of the last block. Earlier ones may be a paper, which may contain anything."""
        return printed_calls(answer.blocks[-1]["text"])

    def window(self, answer: Answer) -> str:
        text: str = answer.blocks[0]["text"]
        left = answer.blocks[1]["text"].partition(" of=")[2].partition(" ")[0]
        at = answer.blocks[1]["text"].partition(" chars=")[2].partition(" ")[0].partition("..")[2]
        return text if left == at else text.rpartition(MARKER)[0]

    def _windows(self, answer: Answer, why: str) -> Iterator[str]:
        while True:
            yield self.window(answer)
            if not self.offered(answer, why):
                return
            answer = self.follow(answer, why)


class StructuredReader(TextReader):
    """Sees only `structuredContent`."""

    def calls(self, answer: Answer) -> list[Call]:
        return structured_calls(answer.structured)

    def window(self, answer: Answer) -> str:
        text: str = answer.structured["text"]
        return text
