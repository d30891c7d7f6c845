"""Imports files: assigns rows to streams, infers manifests of new ones, stores rows in batches.

Rows of a stream without a manifest are held until there are 1,000 (or the file ends). Then a
manifest is inferred from them, and they are imported first.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final
from zlib import crc32

from evidence.errors import InvalidRequest, NotFound
from evidence.limits import BUDGETS
from evidence.pointer import find
from service.importing.column_types import as_stored
from service.importing.json_values import Numeral
from service.importing.guard import FileHeader, Received
from service.importing.inference import Inferred, infer
from service.records.ingest import Batch, Counts
from service.records.intake import Refused, Row, check_name, content_key
from service.records.manifest import StreamManifest, parse
from service.records.scopes import StreamHandle
from service.records.streams import declare, open_stream
from service.records.values import COMMA, sortable
from service.records.writing import Writing

EXAMPLES = 3
_NUMBERS = (int, float)


@dataclass(slots=True)
class Misfits:
    """Values of one field that are not of its type: they are kept, but not compared."""

    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def note(self, line: int, value: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((line, str(value)[:40]))


class Fitter:
    """Fits the rows of one stream to its manifest; `untyped` rows contain only text."""

    def __init__(self, manifest: StreamManifest, misfits: dict[str, Misfits]) -> None:
        self._fields = manifest.fields
        self._misfits = misfits
        self._checked = [
            (path, kind)
            for path, kind in manifest.paths.items()
            if kind.is_time or kind.is_number or kind.type == "boolean"
        ]
        #: Fields whose numbers are kept as text.
        self._texts = [
            name
            for name, kind in manifest.fields.items()
            if kind.type == "string" and (kind.is_decimal or kind.form)
        ]

    def fit(self, data: dict[str, Any], line: int, untyped: bool) -> dict[str, Any]:
        """The row as it is stored."""
        if untyped:
            data = {name: as_stored(value, self._type(name)) for name, value in data.items()}
        for name in self._texts:
            value = data.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                comma = self._fields[name].form == COMMA
                data[name] = repr(value).replace(".", ",") if comma else repr(value)
        for path, kind in self._checked:
            value = find(data, path)
            if value is None or value == "" or (type(value) in _NUMBERS and kind.form is None):
                continue
            lossy = isinstance(value, Numeral) and not (kind.is_decimal or kind.form)
            if not lossy and sortable(value, kind) is not None:
                continue
            self._misfits.setdefault(path, Misfits()).note(line, value)
        return data

    def _type(self, name: str) -> str:
        found = self._fields.get(name)
        return found.type if found else "string"


_COUNT: Final = """
INSERT INTO seen (key, n) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1 RETURNING n
"""


class Occurrences:
    """Counts keys, which are integers of 63 bits.

    With many keys, the counts are in a temporary file.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # nobody else can open it
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, n INTEGER NOT NULL)")

    def add(self, key: int) -> int:
        """Counts a key; returns how often it has occurred."""
        ((number,),) = self._file.execute(_COUNT, (key,))
        return int(number)

    def clear(self) -> None:
        """Forgets all keys."""
        self._file.execute("DELETE FROM seen")


#: The number of rows of a new stream that its owner is shown.
SAMPLES = 3
#: The number of rows that are imported together with a new stream.
FIRST_ROWS = 100


class Undone(Exception):
    """The import was a trial, or was strict and had to refuse a row; nothing is imported."""


@dataclass(slots=True)
class Import:
    """One run into one connection.

    `stream` is for rows that name none; `key` is the primary key of new streams. `on_stream` is
    called with each proposed stream and its first rows. `keyless` are the streams with rows without
    any key; `misfits` are the values, by stream and field, that are not of the field's type.
    """

    writer: Writing
    connection_id: str
    stream: str | None = None
    roles: bool = True
    key: tuple[str, ...] = ()
    misfits: dict[str, dict[str, Misfits]] = field(default_factory=dict)
    keyless: set[str] = field(default_factory=set)
    undeclared: dict[str, set[str]] = field(default_factory=dict)
    on_stream: Callable[[Inferred, list[dict[str, Any]]], None] = lambda inferred, rows: None
    batch: Batch = field(init=False)
    _handles: dict[str, StreamHandle] = field(init=False, default_factory=dict)
    _fitters: dict[str, Fitter] = field(init=False, default_factory=dict)
    #: How often the content of a row without a key has occurred in the current file.
    _seen: Occurrences = field(init=False, default_factory=Occurrences)
    #: New streams declared by their format, until the first row of each.
    _unseen: dict[str, Inferred] = field(init=False, default_factory=dict)
    _untyped: bool = field(init=False, default=False)
    _comma: bool | None = field(init=False, default=None)
    _waiting: dict[str, list[tuple[int, Row]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.batch = Batch(self.writer)

    @property
    def counts(self) -> Counts:
        return self.batch.counts

    def declare(self, document: Any) -> None:
        """Creates or changes the streams of a manifest document."""
        self.batch.flush()
        declare(self.writer, self.connection_id, parse(document))
        self._handles.clear()
        self._fitters.clear()

    def read(
        self,
        header: FileHeader,
        rows: Iterable[Received],
        *,
        on_row: Callable[[], None] = lambda: None,
    ) -> None:
        """Imports the rows of a file; calls `on_row` after each."""
        if header.manifest is not None:
            streams = header.manifest
            if missing := [item for item in streams if self._open(item["name"]) is None]:
                self.declare({"streams": missing})
                self._unseen = {item["name"]: Inferred(item, {}) for item in missing}
        default = self.stream or header.stream
        self._untyped = header.untyped
        self._seen.clear()
        self._waiting.clear()  # those of a file that could not be read to the end
        for _, line, content in rows:
            self._comma = header.comma
            if isinstance(content, Row):
                self._take(line, content, content.stream or default)
            else:
                self.counts.refuse(line, content)
            on_row()
        for name in list(self._waiting):
            self._settle(name)
        self.batch.flush()
        self._seen.clear()

    def _take(self, line: int, row: Row, name: str | None) -> None:
        if name is None:
            raise InvalidRequest("Rows from standard input name no stream; give --stream NAME.")
        handle = self._handles.get(name) or self._open(name)
        if handle is not None:
            if name in self._unseen:
                self.on_stream(self._unseen.pop(name), [row.data])
            self._add(handle, line, row)
            return
        if name not in self._waiting:
            try:
                check_name(name, what="stream")
            except Refused as refused:
                self.counts.refuse(line, str(refused))
                return
        self._waiting.setdefault(name, []).append((line, row))
        waiting = sum(map(len, self._waiting.values()))
        full = len(self._waiting[name]) >= BUDGETS.import_sample_rows
        if full or waiting >= BUDGETS.import_waiting_rows:
            self._settle(name)

    def _settle(self, name: str) -> None:
        """Infers the manifest of a stream with waiting rows, and imports them."""
        rows = self._waiting.pop(name)
        sample = [row.data for _, row in rows if not row.deleted]
        inferred = infer(
            name, sample, key=self.key, roles=self.roles, untyped=self._untyped, comma=self._comma
        )
        document = inferred.document
        if not document["schema"]["properties"]:
            refusal = f"{name!r} is a new stream, and no row has a usable field."
            for line, _ in rows:
                self.counts.refuse(line, refusal)
            return
        self._check_key(name, document["schema"]["properties"])
        self.on_stream(inferred, sample[:SAMPLES])
        waiting = iter(rows)
        # A disk that is full now must not leave an empty stream.
        with self.writer.transaction():
            self.declare({"streams": [document]})
            handle = open_stream(self.writer, self.connection_id, name)
            for line, row in islice(waiting, FIRST_ROWS):
                self._add(handle, line, row)
            self.batch.flush()
        self._handles[name] = handle
        for line, row in waiting:
            self._add(handle, line, row)

    def _check_key(self, name: str, fields: Collection[str]) -> None:
        """Refuses a key with a field that a new stream does not have."""
        for key in self.key:
            if key not in fields:
                near = get_close_matches(key, fields, 1)
                listed = ", ".join(sorted(fields)[: BUDGETS.names_shown])
                hint = f"Did you mean {near[0]!r}?" if near else f"It has {listed}."
                raise InvalidRequest(f"--key {key!r}: {name!r} has no such field. {hint}")

    def _open(self, name: str) -> StreamHandle | None:
        if name not in self._handles:
            try:
                found = open_stream(self.writer, self.connection_id, name)
            except NotFound:
                return None
            if self.key and self.key != found.manifest.primary_key:
                known = ", ".join(found.manifest.primary_key) or "their whole content"
                raise InvalidRequest(
                    f"Rows of {name!r} are identified by {known}; --key cannot change that. "
                    "Omit --key, or import into a new stream with --stream NAME."
                )
            self._handles[name] = found
        return self._handles[name]

    def _add(self, handle: StreamHandle, line: int, row: Row) -> None:
        name = handle.manifest.name
        if not row.data.keys() <= handle.manifest.fields.keys():
            unknown = row.data.keys() - handle.manifest.fields.keys()
            self.undeclared.setdefault(name, set()).update(unknown)
        fitter = self._fitters.get(name)
        if fitter is None:
            misfits = self.misfits.setdefault(name, {})
            fitter = self._fitters[name] = Fitter(handle.manifest, misfits)
        row = row._replace(data=fitter.fit(row.data, line, self._untyped))
        if row.key is None and not handle.manifest.primary_key and not row.deleted:
            self.keyless.add(name)
            # The id is a hash of the content, plus a number if the file repeats it.
            key = content_key(row.data)
            number = self._seen.add(int(key[:16], 16) >> 1 ^ crc32(name.encode()))
            row = row._replace(key=key if number == 1 else f"{key}-{number}")
        self.batch.add(handle, row, line=line)
