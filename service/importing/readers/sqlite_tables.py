"""Tables of SQLite databases: each becomes a stream with its keys and its relations to others."""

import base64
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import islice
from math import isfinite
from typing import Any

from evidence.limits import BUDGETS, CONTRACT
from service.importing.databases import open_database
from service.importing.inference import infer
from service.importing.source import Format, Item, Repair, Source, Undecodable
from service.records.intake import Row

#: Columns whose value serves as the name of a row in another table.
LABELS = tuple("name title label display_name full_name screen_name login username".split())
NAMES_MOST = 100_000
SAMPLE_BYTES = 96


def manifest(source: Source) -> dict[str, Any]:
    """The streams of all tables that have rows."""
    documents = {}
    with _open_tables(source) as tables:
        for table in tables:
            rows = islice(_sample(table.db_table), BUDGETS.import_sample_rows)
            sample = [_described(table.row(row)) for row in rows]
            if sample:
                inferred = infer(table.name, sample, key=table.keys, roles=source.reading.roles)
                documents[table.name] = inferred.document
        for table in tables:
            for column, parent in table.parents.items():
                if parent in documents and table.name in documents:
                    _relate(documents[parent], table.name, column)
    return {"streams": list(documents.values())}


def _relate(parent: dict[str, Any], child: str, column: str) -> None:
    relations = parent.setdefault("relationships", [])
    taken = {existing["name"] for existing in relations}
    name = (f"{child}_{column}" if child in taken else child)[: CONTRACT.name_bytes]
    relation = {"name": name, "stream": child, "foreign_key": column}
    relations.append(relation | {"cardinality": "has_many"})
    parent["query"].setdefault("expand", []).append({"name": name})


def read(source: Source) -> Iterator[Item]:
    """The rows of all tables. Views and index tables are left out."""
    with _open_tables(source) as tables:
        for table in tables:
            number = 0
            try:
                for number, stored_row in enumerate(table.db_table.rows, start=1):
                    yield number, partial(_row, table, stored_row, source.repair)
            except sqlite3.Error as error:
                yield number, f"{table.name}: the rest of this table is damaged: {error}."


def _sample(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table up to the first that is damaged."""
    with suppress(sqlite3.Error):
        yield from table.rows


def _described(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the beginnings of its blobs as text, from which a manifest is inferred."""
    return {
        name: (
            {"data_base64": base64.b64encode(value["data_base64"][:SAMPLE_BYTES]).decode()}
            if isinstance(value, dict)
            else value
        )
        for name, value in row.items()
    }


def _row(table: "_Table", stored_row: dict[str, Any], repair: Repair) -> Row | str:
    try:
        return Row(repair.value(table.row(stored_row)), stream=table.name)
    except Undecodable as error:
        return f"{table.name}: {error}."


class _Table:
    """A table, the tables that its rows refer to, and the names of their rows."""

    def __init__(self, db_table: Any) -> None:
        self.db_table = db_table
        self.name: str = db_table.name
        columns = [column.name for column in db_table.columns]
        self.keys = [name for name in db_table.pks if name in columns]
        self.parents = {
            key.column: key.other_table
            for key in db_table.foreign_keys
            if not key.is_compound and db_table.db[key.other_table].pks == [key.other_column]
        }
        self._names = {
            f"{column}_name": (column, names)
            for column, parent in self.parents.items()
            if (names := _names(db_table.db, parent)) and f"{column}_name" not in columns
        }

    def row(self, stored_row: dict[str, Any]) -> dict[str, Any]:
        """The values of a row, and the names of the rows it refers to."""
        row = {name: _value(value) for name, value in stored_row.items()}
        for name, (column, names) in self._names.items():
            row[name] = names.get(stored_row[column])
        return row


@lru_cache(maxsize=None)
def _names(database: Any, table: str) -> dict[Any, str]:
    """{key: name} of the rows of a table that has a column for names, unless it is large."""
    db_table = database[table]
    columns = {column.name.lower(): column.name for column in db_table.columns}
    label = next((columns[name] for name in LABELS if name in columns), None)
    if label is None or db_table.count > NAMES_MOST:
        return {}
    rows = db_table.rows_where(select=f"[{db_table.pks[0]}], [{label}]")
    return {row[db_table.pks[0]]: row[label] for row in rows if isinstance(row[label], str)}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"data_base64": value}
    return str(value) if isinstance(value, float) and not isfinite(value) else value


@contextmanager
def _open_tables(source: Source) -> Iterator[list[_Table]]:
    """The tables of a database, opened read-only."""
    from sqlite_utils import Database  # imported for databases only

    with open_database(source) as connection:
        database = Database(connection)
        tables = [table for table in database.tables if not table.name.startswith("sqlite_")]
        indexes = [table.name for table in tables if table.virtual_table_using]
        hidden = tuple(f"{name}_" for name in indexes)
        ordinary = [table for table in tables if table.name not in indexes]
        visible = [table for table in ordinary if not table.name.startswith(hidden)]
        empty = [table.name for table in visible if not any(_sample(table))]
        if excluded := [*database.view_names(), *indexes, *empty]:
            note = f"Left out (views, indexes and empty tables): {', '.join(excluded)}."
            source.notes += [note] if note not in source.notes else []
        yield [_Table(table) for table in visible]


BEGINS = re.compile(rb"SQLite format 3")
FORMAT = Format(
    "sqlite", (".sqlite", ".sqlite3", ".db"), BEGINS, read, manifest, any_extension=True
)
