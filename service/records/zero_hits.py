"""What a search without hits reports: absent words, words like them, a call that has hits."""

from typing import Any

from evidence.ranking import Group
from evidence.spelling import REPAIRED_CHARS, edits
from service.records.words import Vocabulary

#: Similar words that are named for each absent one.
NEAREST_MAX = 3


def absent(wanted: list[Group]) -> list[str]:
    """The words that occur nowhere in the grant, as they were typed."""
    return [group.word.typed for group in wanted if not group.count]


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
            found[group.word.typed] = near
    return found


def retry(wanted: list[Group], *, every: bool, required: bool) -> dict[str, Any] | None:
    """Arguments in place of which the search has hits; None if words cannot tell."""
    present = [group.word.typed for group in wanted if group.count]
    if not present:
        return None
    if every:
        return {"words": "any"}
    return {"query": " ".join(present)} if required else None
