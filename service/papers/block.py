"""Scores of candidates by their texts: coverage, rarity, the title and the best passage."""

import sqlite3
from collections.abc import Mapping, Sequence

import orjson

from evidence.fold import fold
from evidence.limits import BUDGETS
from evidence.ranking import Group, Ranker, Text
from service.papers.names import values_of

#: The weight of an occurrence, by its field.
TITLE, SUMMARY, NAMES, ELSEWHERE = 9, 3, 2, 1
#: The factor for a title that equals the query.
TITLE_LIFT = 0.25

_TEXTS = (
    "SELECT id, coalesce(CAST(c1 AS BLOB), x''), "
    "coalesce(substr(CAST(c2 AS BLOB), 1, ?), x''), c0 FROM paper_fts_content "
    "WHERE id IN (SELECT value FROM json_each(?))"
)
#: The index column of metadata.
METADATA = ("author", "venue", "keyword", "institution")


def rank(
    db: sqlite3.Connection, groups: Sequence[Group], elsewhere: Mapping[int, Sequence[int]]
) -> dict[int, float]:
    """The score of each full-text row of `elsewhere`.

    Its values are the groups that the row holds in its source or translations only. These texts
    are not read: such a group counts as one occurrence, far from all others.
    """
    wanted = orjson.dumps(list(elsewhere)).decode()
    rows = db.execute(_TEXTS, (BUDGETS.paper_ranked_bytes, wanted)).fetchall()
    named = values_of(db, [paper_id for *_, paper_id in rows], *METADATA)
    texts = {
        row: (_folded(title), _folded(summary), fold(" . ".join(named[paper_id])))
        for row, title, summary, paper_id in rows
    }
    lengths = {row: sum(len(text.split()) for text in found) for row, found in texts.items()}
    mean = sum(lengths.values()) / max(1, len(lengths))
    ranker = Ranker(groups, mean)
    scores = dict.fromkeys(elsewhere, 0.0)
    for row, (title, summary, metadata) in texts.items():
        found = [Text(title, TITLE, True), Text(summary, SUMMARY), Text(metadata, NAMES, True)]
        for number in elsewhere[row]:
            found.append(Text(" ".join(groups[number].word.words), ELSEWHERE))
        lift = 1 + TITLE_LIFT * _likeness(ranker, title)
        # A paper without a summary is not better for being short.
        length = max(lengths[row], int(mean))
        scores[row] = ranker.score(found, length).value * lift
    return scores


def _likeness(ranker: Ranker, title: str) -> float:
    """The share of the query that a title holds, times the share of the title that this is."""
    held = ranker.places(title)
    places = sum(map(len, held.values()))
    return ranker.coverage(held) * min(1.0, places / max(1, len(title.split())))


def _folded(text: bytes) -> str:
    return fold(text.decode("utf-8", "replace"))
