"""Finds and orders the papers that match a query: candidates from the index, ranked in blocks.

A paper matches if it contains every required part, no refused one, and at least one wanted word.
The index returns the full-text rows of each word. They are ordered by the rarity of the words they
contain, weighted higher in the title or the summary. Each block of a hundred is then ranked by its
texts, so every page costs the same.
"""

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

import orjson

from evidence.fold import fold
from evidence.limits import BUDGETS
from evidence.page_order import Standard, related_most, standard, with_median
from evidence.papers import PaperMatch
from evidence.question import Term
from evidence.ranking import Group, Ranker, Text, idf
from service.papers import names, words
from service.papers.catalogue import catalogue
from service.papers.names import values_of
from service.papers.query import PaperQuery
from service.papers.snapshot import Snapshot
from service.papers.words import vocabulary

#: The weight of an occurrence, by its field.
TITLE, SUMMARY, NAMES, ELSEWHERE = 9, 3, 2, 1
#: The factor for a title that equals the query.
TITLE_LIFT = 0.25

#: Digits after the point of a value.
DIGITS: Final = 9

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

    Its values are the groups that a row contains only in its source or translations. These texts
    are not read: such a group counts as one occurrence, far from all others.
    """
    row_ids = orjson.dumps(list(elsewhere)).decode()
    rows = db.execute(_TEXTS, (BUDGETS.paper_ranked_bytes, row_ids)).fetchall()
    metadata_values = values_of(db, [paper_id for *_, paper_id in rows], *METADATA)
    texts = {
        row: (_folded(title), _folded(summary), fold(" . ".join(metadata_values[paper_id])))
        for row, title, summary, paper_id in rows
    }
    lengths = {row: sum(len(text.split()) for text in parts) for row, parts in texts.items()}
    mean = sum(lengths.values()) / max(1, len(lengths))
    ranker = Ranker(groups, mean)
    scores = dict.fromkeys(elsewhere, 0.0)
    for row, (title, summary, metadata) in texts.items():
        fields = [Text(title, TITLE, True), Text(summary, SUMMARY), Text(metadata, NAMES, True)]
        for number in elsewhere[row]:
            fields.append(Text(" ".join(groups[number].word.words), ELSEWHERE))
        lift = 1 + TITLE_LIFT * _likeness(ranker, title)
        # A paper without a summary is not better because it is short.
        length = max(lengths[row], int(mean))
        scores[row] = ranker.score(fields, length).value * lift
    return scores


def _likeness(ranker: Ranker, title: str) -> float:
    """The share of the query in a title, times the share of the title in the query."""
    occurrences = ranker.places(title)
    places = sum(map(len, occurrences.values()))
    return ranker.coverage(occurrences) * min(1.0, places / max(1, len(title.split())))


def _folded(text: bytes) -> str:
    return fold(text.decode("utf-8", "replace"))


#: The weight of a word in the title, and of one in the title, summary or metadata.
TITLE_SHARE = 2.0
HEAD_SHARE = 1.0
HEAD = "{title summary metadata}"


class NearPapers(Protocol):
    """How near papers are to a query in meaning, and warnings once that was needed."""

    @property
    def warnings(self) -> list[dict[str, Any]]: ...

    def of(self, paper_ids: Iterable[str]) -> dict[str, float] | None:
        """The nearness of papers with a vector; None if that of none is known."""

    def best(self) -> list[str]:
        """The papers nearer than others, nearest first."""


class Candidate(NamedTuple):
    """A paper and the full-text row that matched; 0 if its fields matched."""

    paper_id: str
    rowid: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """The full-text rows that contain a group: anywhere, in the title, summary or metadata
    (`head`), and in the title."""

    anywhere: frozenset[int]
    head: frozenset[int]
    title: frozenset[int]


class Matches:
    """The matches of a query in a snapshot; a paper that the query names comes first.

    `groups` are its terms with their forms and counts. `count` papers match, `all` of them contain
    every term.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        db: sqlite3.Connection,
        query: PaperQuery,
        identified: str | None,
        near: NearPapers | None = None,
    ) -> None:
        self._db = db
        self._query = query
        self.is_plain = not (identified or query.names or query.refused or query.refused_titles)
        self.is_plain &= not (query.required or query.titles)
        self._vocabulary = vocabulary(snapshot)
        self._catalogue = catalogue(snapshot)
        self.groups: list[Group] = []
        self._rows: list[Rows] = []
        total = len(self._catalogue.paper_of)
        for group in words.groups(snapshot, db, query):
            rows = self._holding(group)
            count = len(rows.anywhere)
            self.groups.append(replace(group, count=count, idf=idf(total, count)))
            self._rows.append(rows)
        self._ranker = Ranker(self.groups, 1.0)
        self._identified, self._near = identified, near if self.is_plain else None
        self._standard: Standard | None = None
        #: What orders the papers; None if nothing but words can.
        self.ranking = "words" if self._near else None
        self._candidates = self._ordered(self._allowed(snapshot))
        whole = self._common(range(len(self.groups)))
        self.all = sum(candidate.rowid in whole for candidate in self._candidates)
        if identified is not None:
            first = next((row for row in self._candidates if row.paper_id == identified), None)
            self._candidates = [row for row in self._candidates if row.paper_id != identified]
            rowid = next(iter(self._catalogue.rows_of.get(identified, ())), 0)
            self._candidates.insert(0, first or Candidate(identified, rowid))
            self.all += first is None or first.rowid not in whole
        elif not self.groups:
            self.all = len(self._candidates)
        self.count = len(self._candidates)

    def page(self, start: int, end: int) -> list[Candidate]:
        """The papers from position `start` to before `end`, best first."""
        if not self.groups:
            return self._candidates[start:end]
        size = BUDGETS.paper_block_items
        first = start // size * size
        ranked: list[Candidate] = []
        if first and self._near and self._standard is None:
            self._ranked(self._candidates[:size])  # sets the standard
        for begin in range(first, min(end, len(self._candidates)), size):
            ranked += self._ranked(self._candidates[begin : begin + size])
        return ranked[start - first : end - first]

    def groups_in(self, rowid: int) -> list[Group]:
        """The groups that a row contains."""
        return [self.groups[number] for number in self._numbers_in(rowid)]

    def expression(self, *terms: Term) -> str:
        """The FTS5 expression that matches any of these terms."""
        return f"({' OR '.join(self._vocabulary.expression(term, fused=True) for term in terms)})"

    def report(self, candidate: Candidate, marked: Container[str]) -> PaperMatch | None:
        """The words of the query that a paper contains, with their forms; None without words.

        Of several forms it names one that is `marked`.
        """
        if not self.groups:
            return None
        if candidate.paper_id == self._identified:
            return PaperMatch(1.0, [self._query.text.strip()], [], {})
        present = self._numbers_in(candidate.rowid)
        missing = [number for number in range(len(self.groups)) if number not in present]
        forms = {n: self._form(self.groups[n], candidate.rowid, marked) for n in present}
        return PaperMatch(
            coverage=round(self._ranker.coverage(present), 2),
            matched_words=[self.groups[number].label for number in present],
            missing_words=[self.groups[number].label for number in missing],
            forms={self.groups[n].label: form for n, form in forms.items() if form},
        )

    def _numbers_in(self, rowid: int) -> list[int]:
        return [number for number, rows in enumerate(self._rows) if rowid in rows.anywhere]

    def _form(self, group: Group, rowid: int, marked: Container[str]) -> str | None:
        """The form of a group in a row; None if the row has the word itself."""
        if not group.forms or self._holds(rowid, group.word):
            return None
        spellings = [" ".join(form.words) for form in group.forms]
        occurring = (s for s, form in zip(spellings, group.forms) if self._holds(rowid, form))
        return next((s for s in spellings if s in marked), None) or next(occurring, None)

    def _ranked(self, block: Sequence[Candidate]) -> list[Candidate]:
        elsewhere = {
            row: [number for number in self._numbers_in(row) if row not in self._rows[number].head]
            for _, row in block
        }
        scores = self._values(block, rank(self._db, self.groups, elsewhere))
        key = {row: (row.paper_id != self._identified, -scores[row.rowid]) for row in block}
        return sorted(block, key=lambda candidate: (*key[candidate], *self._tie(candidate)))

    def _values(self, block: Sequence[Candidate], scores: dict[int, float]) -> dict[int, float]:
        """The values of a block by `evidence.page_order`; its scores if words alone rank."""
        if self._near is None or len(self.groups) < 2:
            return scores
        nearness = self._near.of(candidate.paper_id for candidate in block)
        if nearness is None:
            return scores
        if self._standard is None:
            coverages = {row: self._ranker.coverage(self._numbers_in(row)) for row in scores}
            self._standard = standard(scores, coverages, len(self.groups))
        self.ranking = "words+meaning"
        nearness = with_median(nearness, [candidate.paper_id for candidate in block])
        return {
            row: round(self._standard.value(scores[row], max(0.0, nearness[paper_id])), DIGITS)
            for paper_id, row in block
        }

    def related(self, limit: int) -> list[str]:
        """Papers without a word of the query for the free places of a first page, nearest first."""
        free = limit - min(limit, self.count)
        most = min(free, related_most(limit)) if self.count else free
        if self._near is None or not most or (self.count and len(self.groups) < 2):
            return []
        holding = {candidate.paper_id for candidate in self._candidates}
        return [paper_id for paper_id in self._near.best() if paper_id not in holding][:most]

    def _tie(self, candidate: Candidate) -> tuple[int, str]:
        """The sort key of papers with equal scores: newer first, then by id."""
        return -self._catalogue.year_of[candidate.paper_id], candidate.paper_id

    def _holding(self, group: Group) -> Rows:
        """The rows of a group; for a title word, only rows with it in the title."""
        expression = self.expression(*group.spellings)
        title = self._matching(f"title : {expression}")
        if group.word in self._query.titles:
            return Rows(title, title, title)
        return Rows(self._matching(expression), self._matching(f"{HEAD} : {expression}"), title)

    def _matching(self, expression: str) -> frozenset[int]:
        rows = self._db.execute(
            "SELECT rowid FROM paper_fts WHERE paper_fts MATCH ?", (expression,)
        )
        return frozenset(row for (row,) in rows) & self._catalogue.paper_of.keys()

    def _holds(self, rowid: int, term: Term) -> bool:
        return words.matches_row(self._db, self.expression(term), rowid)

    def _ordered(self, allowed: set[str]) -> list[Candidate]:
        """Every matching paper once, in candidate order."""
        if not self.groups:
            return list(map(Candidate, self._catalogue.in_order(allowed)))
        worth: dict[int, float] = {}
        for group, rows in zip(self.groups, self._rows):
            for row in rows.anywhere:
                share = 1 + HEAD_SHARE * (row in rows.head) + TITLE_SHARE * (row in rows.title)
                worth[row] = worth.get(row, 0.0) + group.idf * share
        paper_of = self._catalogue.paper_of
        candidates = [Candidate(paper_of[row], row) for row in self._matching_rows()]
        candidates.sort(key=lambda row: (-worth[row.rowid], *self._tie(row), -row.rowid))
        best: dict[str, Candidate] = {}
        for candidate in candidates:
            if candidate.paper_id in allowed:
                best.setdefault(candidate.paper_id, candidate)
        return list(best.values())

    def _matching_rows(self) -> set[int]:
        """The rows with every required term, and with one of the words if there are any."""
        strict = {*self._query.required, *self._query.titles}
        required = [n for n, group in enumerate(self.groups) if group.word in strict]
        optional = [n for n in range(len(self.groups)) if n not in required]
        some = set[int]().union(*(self._rows[n].anywhere for n in optional or required))
        return some & self._common(required) if required else some

    def _common(self, numbers: Sequence[int]) -> frozenset[int]:
        """The rows that contain all of these groups; empty for no groups."""
        sets = [self._rows[number].anywhere for number in numbers]
        return sets[0].intersection(*sets[1:]) if sets else frozenset()

    def _allowed(self, snapshot: Snapshot) -> set[str]:
        """The papers that match the fields, and no refused value."""
        allowed = set(self._catalogue.position_of)
        for name in self._query.names:
            fitting = names.papers_with(snapshot, self._db, name)
            allowed = allowed - fitting if name.excluded else allowed & fitting
        unwanted = list(map(self.expression, self._query.refused))
        unwanted += [f"title : {self.expression(term)}" for term in self._query.refused_titles]
        for expression in unwanted:
            allowed -= {self._catalogue.paper_of[row] for row in self._matching(expression)}
        return allowed
