"""What a search without hits reports: absent words, words like them, a call that has hits."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from evidence.hits import LIMITING
from evidence.proven import spelling
from evidence.question import Question
from evidence.ranking import Group
from evidence.language import REPAIRED_CHARS, edits
from service.ports import SearchQuery
from service.records.words import Vocabulary

#: Similar words that are named for each absent one.
NEAREST_MAX = 3
#: Further searches that are tried for one that has hits.
RETRIES_MAX = 5


def absent(wanted: list[Group]) -> list[str]:
    """The words that occur nowhere in the grant."""
    return [spelling(group.word) for group in wanted if not group.count]


def nearest(wanted: list[Group], vocabulary: Vocabulary) -> dict[str, list[str]]:
    """{absent word: words of the grant one edit away}, the most frequent first."""
    found = {}
    for group in wanted:
        word, *others = group.word.words
        if group.count or others or len(word) < REPAIRED_CHARS:
            continue
        counts = vocabulary.counts(edits(word, vocabulary.snapshot.letters()))
        near = sorted(counts, key=lambda one: (-counts[one], one))[:NEAREST_MAX]
        if near:
            found[spelling(group.word)] = near
    return found


def retries(question: Question, wanted: list[Group], *, every: bool) -> Iterator[dict[str, Any]]:
    """Arguments that ask for less, in place of those without hits; the nearest come first."""
    present = [group.word.typed for group in wanted if group.count]
    excluded = [part.term.typed for part in question.required if part.term.excluded]
    required = [part.term.typed for part in question.required if not part.term.excluded]
    mode = {"words": "any"} if every else {}
    if every and present:
        yield mode
    if wanted and required:
        yield _asking(part.term.typed for part in question.required)
    if present and required:
        yield _asking([*present, *excluded]) | mode
    if len(required) > 1:
        yield from (_asking([*excluded, part]) for part in required)
    if excluded and (present or required):
        yield _asking([*present, *required]) | mode
        if present and required:
            yield _asking(present) | mode


def repaired(question: Question, wanted: list[Group]) -> str | None:
    """The query with every corrected word as it occurs; None if no word was corrected."""
    if not any(group.repaired for group in wanted):
        return None
    words = [
        " ".join(group.forms[0].words) if group.repaired else group.word.typed for group in wanted
    ]
    return str(_asking([*words, *(part.term.typed for part in question.required)])["query"])


def wider(request: SearchQuery) -> Iterator[dict[str, Any]]:
    """Arguments that search more of the grant: without one of those that limit it, then all.

    None leaves an argument out. A filter is for one stream, so it goes together with `streams`.
    """
    given = [name for name in LIMITING if getattr(request, name)]
    steps = (("filter",), ("since", "until"), ("filter", "streams"), ("connection_id",), LIMITING)
    found = [{name: None for name in step if name in given} for step in steps]
    yield from (one for number, one in enumerate(found) if one and one not in found[:number])


def changed(request: SearchQuery, changes: dict[str, Any]) -> SearchQuery:
    """A request with some arguments changed; None stands for the default."""
    defaults = SearchQuery(request.query)
    values = {
        name: getattr(defaults, name) if value is None else value for name, value in changes.items()
    }
    return replace(request, **values)


def _asking(parts: Iterable[str]) -> dict[str, Any]:
    # A quote that is not closed runs to the end; it is the last part of a question, and here.
    return {"query": " ".join(dict.fromkeys(parts))}
