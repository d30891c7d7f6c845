"""The authors of a paper, in the order and spelling of the paper.

The author table keeps neither. But the metadata text of the full-text index begins with the
title and goes on with the authors as they were given; the table tells where each name ends.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evidence.limits import BUDGETS
from service.lru import LruCache
from service.papers.catalogue import catalogue
from service.papers.names import values_of
from service.papers.snapshot import Snapshot

PAPERS_KEPT = 1_024
"""Papers whose metadata is kept: reading it passes the whole source of the paper."""

READ_BYTES = 262_144
"""Metadata text looked at for the order of the authors."""

TEXT_CHARS = 16_384
"""Metadata text kept of a paper."""

# The scripts between whose characters the builder of snapshots puts spaces.
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_BUILDERS_SPACE = re.compile(f"(?<=[{_CJK}]) (?=[{_CJK}])")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata text of a paper, at most `paper_names` of its authors, and how many it has."""

    text: str
    authors: tuple[str, ...]
    authors_total: int


def read(
    snapshot: Snapshot, db: sqlite3.Connection, titles: Mapping[str, str]
) -> dict[str, Metadata]:
    """The metadata of papers, given their titles by paper id."""
    recent = snapshot.once("metadata", lambda: LruCache[str, Metadata](PAPERS_KEPT))
    known = {paper_id: recent.get(paper_id) for paper_id in titles}
    missing = [paper_id for paper_id, metadata in known.items() if metadata is None]
    listed = values_of(db, missing, "author")
    for paper_id in missing:
        rows = catalogue(snapshot).rows_of.get(paper_id, ())
        names = [name for name in listed[paper_id] if name not in ("", "unknown")]
        known[paper_id] = metadata = _metadata(db, rows, titles[paper_id], names)
        recent.put(paper_id, metadata)
    return {paper_id: metadata for paper_id, metadata in known.items() if metadata is not None}


def unspaced(text: str) -> str:
    """An indexed text without the spaces that the builder put between CJK characters."""
    return _BUILDERS_SPACE.sub("", text)


def _metadata(
    db: sqlite3.Connection, rows: Iterable[int], title: str, names: list[str]
) -> Metadata:
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

    None where the text does not begin with the title. Names out of place
    follow at the end, as the table has them.
    """
    letters, places = _letters(text)
    heading, _ = _letters(title)
    if not letters.startswith(heading):
        return None
    spelled = {_letters(name)[0]: name for name in sorted(names, key=len)}
    sizes = sorted({len(name) for name in spelled} - {0}, reverse=True)
    authors = []
    start = len(heading)
    while start < len(letters):
        # The longest name first: `jan li` also begins `jan lind`.
        ends = (start + size for size in sizes if start + size <= len(letters))
        end = next((end for end in ends if letters[start:end] in spelled), None)
        if end is None:
            break
        name = spelled.pop(letters[start:end])
        authors.append(_cased(name, text[places[start] : places[end - 1] + 1]))
        start = end
    return authors + sorted(spelled.values())


def _cased(name: str, text: str) -> str:
    """A name with the spaces of the table and the letters of the text.

    Spaces between characters of Chinese or Japanese names are lost in the text.
    """
    letters = [char for char in text if not char.isspace()]
    if len(letters) != sum(not char.isspace() for char in name):
        return text
    return "".join(char if char.isspace() else letters.pop(0) for char in name)


def _letters(text: str) -> tuple[str, list[int]]:
    """A text in lower case without spaces, with the original position of each letter."""
    pairs = [
        (letter, place)
        for place, char in enumerate(text)
        if not char.isspace()
        for letter in char.lower()
    ]
    return "".join(letter for letter, _ in pairs), [place for _, place in pairs]
