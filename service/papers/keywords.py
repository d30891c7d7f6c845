"""Finds papers by a part of their keywords or tags."""

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from evidence.errors import InvalidRequest
from evidence.find import Span, literals
from evidence.fold import fold_literal
from service.papers import names
from service.papers.catalogue import catalogue
from service.papers.snapshot import Snapshot
from service.papers.snippet import marked

FIELDS = {"keyword": "keywords", "tag": "tags"}
_GAPS = re.compile(r"[\s\u2010-\u2015-]+")  # `pre-training` is `pre training`


@dataclass(frozen=True, slots=True)
class Value:
    """A keyword or tag: its table, its number there, and its form for comparison."""

    field: str
    number: int
    text: str
    key: str


def values(snapshot: Snapshot) -> list[Value]:
    """All keywords and tags, read once."""

    def read() -> list[Value]:
        with snapshot.connection() as db:
            return [
                Value(field, number, text, key_of(text))
                for field in FIELDS
                for number, text in db.execute(f"SELECT {field}_id, value FROM {field}")
            ]

    return snapshot.once("keywords", read)


def papers(snapshot: Snapshot, db: sqlite3.Connection, text: str) -> list[str]:
    """The ids of the papers with a keyword or tag that holds `text`.

    Papers with a value equal to the text come first; then in the order of the list.
    Raises `InvalidRequest` (`invalid_query`).
    """
    wanted = key_of(text)
    if not wanted:
        raise InvalidRequest(
            "The keyword is empty. Use a keyword or a part of one, such as transformer.",
            code="invalid_query",
            param="keyword",
        )
    exact: set[str] = set()
    others: set[str] = set()
    for field in FIELDS:
        matching = [each for each in values(snapshot) if each.field == field and wanted in each.key]
        same = [each.number for each in matching if each.key == wanted]
        exact |= names.papers_of(db, field, same)
        others |= names.papers_of(db, field, [each.number for each in matching])
    listed = catalogue(snapshot).listed
    return listed(exact) + listed(others - exact)


def shown(db: sqlite3.Connection, papers: Sequence[str], text: str) -> dict[str, str]:
    """The keywords and tags of papers as snippets: those with `text` first, highlighted."""
    lines: dict[str, str] = dict.fromkeys(papers, "")
    marks: dict[str, list[tuple[int, int]]] = {paper_id: [] for paper_id in papers}
    for field, label in FIELDS.items():
        for paper_id, found in names.values_of(db, papers, field).items():
            found.sort(key=lambda value: key_of(text) not in key_of(value))
            if not found or key_of(text) not in key_of(found[0]):
                continue
            line = f"{lines[paper_id]}; {label}: " if lines[paper_id] else f"{label}: "
            for number, value in enumerate(found):
                line += ", " if number else ""
                marks[paper_id] += [
                    (len(line) + start, len(line) + end) for start, end in _places(value, text)
                ]
                line += value
            lines[paper_id] = line
    return {
        paper_id: marked(lines[paper_id], Span(*places[0], tuple(places)))
        for paper_id, places in marks.items()
    }


def key_of(value: str) -> str:
    """A value without case, accents and the width of gaps; `%` and `_` are as they are."""
    plain = fold_literal(value).strip()
    return _GAPS.sub(" ", plain).strip() or plain


def _places(value: str, text: str) -> list[tuple[int, int]]:
    """The span of the text in a value; the whole value if only whitespace differs."""
    if key_of(text) not in key_of(value):
        return []
    return list(literals(value, text.strip())) or [(0, len(value))]
