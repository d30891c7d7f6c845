"""Finds papers by the values of a field: authors, venues, years and so on, without SQL patterns."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence

import orjson

from evidence.errors import InvalidRequest
from evidence.fold import fold, fold_literal
from service.papers.catalogue import year_number
from service.papers.query import Name
from service.papers.snapshot import Snapshot

LISTED = ("author", "venue", "keyword", "institution", "tag")

#: field -> SQL of (value, paper_id)
_OF_PAPERS = {
    "year": "SELECT year, paper_id FROM paper",
    "month": "SELECT month, paper_id FROM paper",
    "template": "SELECT template_tag, paper_id FROM paper_summary",
    "language": "SELECT lang, paper_id FROM paper_translation WHERE md_content_hash <> ''",
}
_RANGE = re.compile(r"\s*(\d{1,4})?\s*\.\.\s*(\d{1,4})?\s*", re.ASCII)


def papers_with(snapshot: Snapshot, db: sqlite3.Connection, name: Name) -> set[str]:
    """The ids of the papers whose values match, also for an excluded name."""
    fits = _rule(name)
    if name.field in LISTED:
        wanted = [number for number, value in values(snapshot, name.field) if fits(value)]
        return papers_of(db, name.field, wanted)
    rows = db.execute(_OF_PAPERS[name.field])
    known: dict[str, bool] = {}
    ids = set()
    for value, paper_id in rows:
        if value not in known:
            known[value] = fits(_key(value))
        if known[value]:
            ids.add(paper_id)
    return ids


def values(snapshot: Snapshot, field: str) -> list[tuple[int, str]]:
    """(id, folded value) of all values of a listed field, read once."""

    def read() -> list[tuple[int, str]]:
        with snapshot.connection() as db:
            rows = db.execute(f"SELECT {field}_id, value FROM {field}")
            return [(number, _key(value)) for number, value in rows]

    return snapshot.once(f"values of {field}", read)


def values_of(db: sqlite3.Connection, papers: Sequence[str], *fields: str) -> dict[str, list[str]]:
    """The values that each of these papers has in some listed fields, field by field in order."""
    found: dict[str, list[str]] = {paper_id: [] for paper_id in papers}
    wanted = orjson.dumps(papers).decode()
    for field in fields:
        rows = db.execute(
            f"SELECT paper_id, value FROM paper_{field} JOIN {field} USING ({field}_id) "
            "WHERE paper_id IN (SELECT value FROM json_each(?)) ORDER BY value",
            (wanted,),
        )
        for paper_id, value in rows:
            found[paper_id].append(value)
    return found


def papers_of(db: sqlite3.Connection, field: str, numbers: Iterable[int]) -> set[str]:
    """The ids of the papers with any of these values of a listed field."""
    rows = db.execute(
        f"SELECT paper_id FROM paper_{field} "
        f"WHERE {field}_id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(list(numbers)).decode(),),
    )
    return {paper_id for (paper_id,) in rows}


def _rule(name: Name) -> Callable[[str], bool]:
    """The test of a folded value against a field."""
    if name.field == "year" and (span := _RANGE.fullmatch(name.value)):
        return _year_range(name, span)
    wanted = _key(name.value)
    if name.field == "month":
        return lambda value: value.lstrip("0") == wanted.lstrip("0")
    if name.field in ("year", "template"):
        return lambda value: value == wanted
    end = "" if name.value.endswith("*") and wanted[-1:].isalnum() else " "
    needles = [f" {words}{end}" for words in _orders(name, wanted)]
    return lambda value: any(needle in f" {value} " for needle in needles)


def _orders(name: Name, wanted: str) -> list[str]:
    """The words of a name, and for `LeCun, Yann` those of `Yann LeCun`."""
    last, comma, first = name.value.partition(",")
    if name.field != "author" or not comma or not (first := _key(first)):
        return [wanted]
    return [wanted, f"{first} {_key(last)}"]


def _year_range(name: Name, span: re.Match[str]) -> Callable[[str], bool]:
    if not (span[1] or span[2]):
        raise InvalidRequest(
            f'"{name.field}:{name.value}" has no year. Try year:2019..2021, year:2019.. or '
            "year:2019.",
            code="invalid_query",
            param="query",
        )
    first, last = sorted((int(span[1] or 0), int(span[2] or 9999)))
    return lambda value: first <= year_number(value) <= last


def _key(value: str) -> str:
    """A value as words; unchanged if it has none. A field cannot contain quotes."""
    words = " ".join(fold(value).split())
    return words or " ".join(fold_literal(value.replace('"', " ")).split())
