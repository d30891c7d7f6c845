"""A store with one stream of notes, and queries on its indexes."""

import json
from typing import Any

from evidence.fold import fold
from service.records.sqlite.transactions import INDEXES
from service.records.intake import Counts
from service.records.sqlite.writer import Writer
from tests.helpers import derived

NOTES: dict[str, Any] = {
    "name": "notes",
    "primary_key": ["id"],
    "cursor_field": "at",
    "schema": {
        "properties": {
            "id": {"type": "string"},
            "title": {"type": "string"},
            "text": {"type": "string"},
            "size": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "tree": {"type": "object"},
            "file": {"type": "object"},
        }
    },
    "query": {
        "exact_filters": ["id", "title"],
        "range_filters": {"size": ["gte"], "at": ["gte"]},
        "search": {"lexical_fields": ["title", "text"]},
    },
}
LONG = "lantern " * 10_000


def check(writer: Writer) -> None:
    """Fails unless all indexes match what they index and no reference dangles."""
    for table in INDEXES:
        writer.db.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
    assert writer.db.execute("PRAGMA foreign_key_check").fetchall() == []
    derived.check(writer)


def contents(writer: Writer) -> list[str]:
    """Everything in the store but the random epoch of its last commit."""
    return [line for line in writer.db.iterdump() if "VALUES('epoch'," not in line]


def changes(writer: Writer) -> list[tuple[str, Any]]:
    rows = writer.db.execute(
        "SELECT record_key, fields FROM change JOIN record USING (seq) ORDER BY version"
    )
    return [(key, fields and json.loads(fields)) for key, fields in rows]


def matches(writer: Writer, words: str) -> int:
    """The number of values that contain some words."""
    found = writer.db.execute(
        "SELECT (SELECT count(*) FROM fts WHERE fts MATCH :words) + (SELECT count(DISTINCT p.seq)"
        " FROM fts_passage f JOIN passage p ON p.id = f.rowid WHERE fts_passage MATCH :words)",
        {"words": fold(words)},
    )
    return int(found.fetchone()[0])


def segments(writer: Writer) -> int:
    """The number of segments in the index of all fields: one if they are merged."""
    found = one(writer, "SELECT count(DISTINCT id >> 37) FROM fts_data WHERE id > 10")
    return int(found[0])


def tally(counts: Counts) -> tuple[int, int, int, int]:
    return counts.new, counts.changed, counts.unchanged, counts.deleted


def one(writer: Writer, sql: str) -> Any:
    return writer.db.execute(sql).fetchone()
