"""The values of paper fields: which papers have a value, their order, and the commonest values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import orjson

from evidence.errors import InvalidRequest
from evidence.fold import fold_literal, folded_words
from evidence.limits import BUDGETS, CONTRACT
from evidence.papers import LISTED, PaperFacets
from service.lru import LruCache
from service.papers.catalogue import catalogue, year_number
from service.papers.query import Name
from service.papers.snapshot import Snapshot, once

#: field -> SQL of (value, paper_id)
_OF_PAPERS = {
    "year": "SELECT year AS value, paper_id FROM paper",
    "month": "SELECT month AS value, paper_id FROM paper",
    "template": "SELECT template_tag AS value, paper_id FROM paper_summary "
    "JOIN paper USING (paper_id)",
    "language": "SELECT lang AS value, paper_id FROM paper_translation "
    "JOIN paper USING (paper_id) WHERE md_content_hash <> ''",
}
_RANGE = re.compile(r"\s*(\d{1,4})?\s*\.\.\s*(\d{1,4})?\s*", re.ASCII)


def papers_with(snapshot: Snapshot, db: Connection, name: Name) -> set[str]:
    """The ids of the papers whose values match; the same for an excluded name."""
    fits = _rule(name)
    if name.field in LISTED:
        numbers = [number for number, value in values(snapshot, name.field) if fits(value)]
        return papers_of(db, name.field, numbers)
    rows = db.execute(_OF_PAPERS[name.field])
    verdicts: dict[str, bool] = {}
    ids = set()
    for value, paper_id in rows:
        if value not in verdicts:
            verdicts[value] = fits(_key(value))
        if verdicts[value]:
            ids.add(paper_id)
    return ids


@once
def values(snapshot: Snapshot, field: str) -> list[tuple[int, str]]:
    """(id, folded value) of all values of a listed field, read once."""
    with snapshot.connection() as db:
        rows = db.execute(f"SELECT {field}_id, value FROM {field}")
        return [(number, _key(value)) for number, value in rows]


def values_of(db: Connection, papers: Sequence[str], *fields: str) -> dict[str, list[str]]:
    """The values that each of these papers has in some listed fields, field by field in order."""
    values_by_paper: dict[str, list[str]] = {paper_id: [] for paper_id in papers}
    ids = orjson.dumps(papers).decode()
    for field in fields:
        rows = db.execute(
            f"SELECT paper_id, value FROM paper_{field} JOIN {field} USING ({field}_id) "
            "WHERE paper_id IN (SELECT value FROM json_each(?)) ORDER BY value",
            (ids,),
        )
        for paper_id, value in rows:
            values_by_paper[paper_id].append(value)
    return values_by_paper


def papers_of(db: Connection, field: str, numbers: Iterable[int]) -> set[str]:
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
    key = _key(name.value)
    if name.field == "month":
        return lambda value: value.lstrip("0") == key.lstrip("0")
    if name.field in ("year", "template"):
        return lambda value: value == key
    end = "" if name.value.endswith("*") and key[-1:].isalnum() else " "
    needles = [f" {words}{end}" for words in _orders(name, key)]
    return lambda value: any(needle in f" {value} " for needle in needles)


def _orders(name: Name, key: str) -> list[str]:
    """The words of a name, and for `LeCun, Yann` also those of `Yann LeCun`."""
    last, comma, first = name.value.partition(",")
    if name.field != "author" or not comma or not (first := _key(first)):
        return [key]
    return [key, f"{first} {_key(last)}"]


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
    return folded_words(value) or " ".join(fold_literal(value.replace('"', " ")).split())


PAPERS_CACHED = 1_024
"""The number of papers whose metadata is cached, because reading it passes over the whole
source."""

READ_BYTES = 262_144
"""The length of metadata text that is examined for the order of the authors."""

TEXT_CHARS = 16_384
"""The length of metadata text that is cached for a paper."""

# The scripts between whose characters the builder of snapshots puts spaces.
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_BUILDERS_SPACE = re.compile(f"(?<=[{_CJK}]) (?=[{_CJK}])")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata text of a paper, at most `paper_names` of its authors, and how many it has."""

    text: str
    authors: tuple[str, ...]
    authors_total: int


def read(snapshot: Snapshot, db: Connection, titles: Mapping[str, str]) -> dict[str, Metadata]:
    """The metadata of papers, given their titles by paper id."""
    recent = snapshot.once("metadata", lambda: LruCache[str, Metadata](PAPERS_CACHED))
    cached = ((paper_id, recent.get(paper_id)) for paper_id in titles)
    metadata_by_id = {paper_id: metadata for paper_id, metadata in cached if metadata}
    missing = [paper_id for paper_id in titles if paper_id not in metadata_by_id]
    authors = values_of(db, missing, "author")
    for paper_id in missing:
        rows = catalogue(snapshot).rows_of.get(paper_id, ())
        names = [name for name in authors[paper_id] if name not in ("", "unknown")]
        metadata_by_id[paper_id] = metadata = _metadata(db, rows, titles[paper_id], names)
        recent.put(paper_id, metadata)
    return metadata_by_id


def unspaced(text: str) -> str:
    """An indexed text without the spaces that the builder put between CJK characters."""
    return _BUILDERS_SPACE.sub("", text)


def _metadata(db: Connection, rows: Iterable[int], title: str, names: list[str]) -> Metadata:
    texts = []
    for rowid in rows:
        (text,) = db.execute(
            "SELECT coalesce(substr(CAST(c5 AS BLOB), 1, ?), x'') FROM paper_fts_content "
            "WHERE id = ?",
            (READ_BYTES, rowid),
        ).fetchone()
        texts.append(unspaced(text.decode("utf-8", "replace")))
        if (ordered := in_order(texts[-1], title, names)) is not None:
            break
    else:
        ordered = names
    text = texts[-1] if texts else ""
    return Metadata(text[:TEXT_CHARS], tuple(ordered[: BUDGETS.paper_names]), len(names))


def in_order(text: str, title: str, names: list[str]) -> list[str] | None:
    """The authors in the order and spelling of a metadata text.

    None if the text does not begin with the title. Names that are not found follow at the end, as
    in the table.
    """
    letters, places = _letters(text)
    heading, _ = _letters(title)
    if not letters.startswith(heading):
        return None
    names_by_letters = {_letters(name)[0]: name for name in sorted(names, key=len)}
    sizes = sorted({len(name) for name in names_by_letters} - {0}, reverse=True)
    authors = []
    start = len(heading)
    while start < len(letters):
        # The longest name first: `jan li` also begins `jan lind`.
        ends = (start + size for size in sizes if start + size <= len(letters))
        end = next((end for end in ends if letters[start:end] in names_by_letters), None)
        if end is None:
            break
        name = names_by_letters.pop(letters[start:end])
        authors.append(_cased(name, text[places[start] : places[end - 1] + 1]))
        start = end
    return authors + sorted(names_by_letters.values())


def _cased(name: str, text: str) -> str:
    """A name with the spaces from the table and the letters from the text.

    Spaces between characters of Chinese or Japanese names are lost in the text.
    """
    letters = [char for char in text if not char.isspace()]
    if len(letters) != sum(not char.isspace() for char in name):
        return text
    return "".join(char if char.isspace() else letters.pop(0) for char in name)


def _letters(text: str) -> tuple[str, list[int]]:
    """A text in lower case without spaces, with the original position of each letter."""
    pairs = [
        (letter, position)
        for position, char in enumerate(text)
        if not char.isspace()
        for letter in char.lower()
    ]
    return "".join(letter for letter, _ in pairs), [position for _, position in pairs]


# A longer value could not be searched for.
LONGEST = CONTRACT.query_chars // 2
# Nor could a value of only these characters: blanks, quotes, dots, invisible ones.
BLANK = ' \t\n\v\f\r\u00a0".' + "".join(map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F))))


def facets(snapshot: Snapshot, category: str, limit: int, offset: int) -> PaperFacets:
    """A page of values, most papers first, then by value, without "unknown"."""
    if category in LISTED:
        subquery = f"SELECT value, paper_count AS papers FROM {category}"
    else:
        subquery = f"SELECT value, count(*) AS papers FROM ({_OF_PAPERS[category]}) GROUP BY value"
    counted = (
        f"FROM ({subquery}) WHERE papers > 0 "
        f"AND trim(value, ?) NOT IN ('', 'unknown') AND length(value) <= {LONGEST}"
    )
    with snapshot.connection() as db:
        (total,) = db.execute(f"SELECT count(*) {counted}", (BLANK,)).fetchone()
        values = db.execute(
            f"SELECT value, papers {counted} ORDER BY papers DESC, value LIMIT ? OFFSET ?",
            (BLANK, limit, min(offset, total)),  # SQLite has no numbers beyond 64 bits
        ).fetchall()
    return PaperFacets(
        category=category,
        values=values,
        offset=offset,
        total=total,
        args={"category": category, "limit": limit},
    )
