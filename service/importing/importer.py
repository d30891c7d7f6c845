"""Imports files: assigns rows to streams, infers manifests of new streams, stores rows in batches.

Rows of a stream without a manifest are held until there are 1,000 (or the file ends). Then a
manifest is inferred from them, and they are imported first.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from itertools import islice
from typing import Any, Final
from zlib import crc32

import orjson

from evidence.errors import InvalidRequest, NotFound
from evidence.limits import BUDGETS
from evidence.pointer import find
from service.importing.column_types import as_stored
from service.importing.destinations import Destinations
from service.importing.json_values import Numeral
from service.importing.process.guard import FileHeader, Received
from service.importing.inference import Inferred, infer
from service.importing.occurrences import Occurrences, Origins
from service.importing.plan import Listener, Misfits, Plan, Report
from service.importing.rows import ATTACHMENTS
from service.records.writing.ingest import Batch, stored
from evidence.names import Refused, check_name
from service.records.intake import Counts, Row, content_key, record_key
from evidence.manifest import StreamManifest, parse
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import Streams
from evidence.manifest.values import COMMA, sortable
from service.records.writing import Writing

_NUMBERS = (int, float)


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
        kind = self._fields.get(name)
        return kind.type if kind else "string"


#: The number of rows of a new stream that its owner is shown.
SAMPLES = 3
#: The number of rows that are imported together with a new stream.
FIRST_ROWS = 100
#: Fewer equal rows in another stream are a coincidence.
LEAST_REPEATED = 2


#: An id that no other file uses for another record.
_UNIVERSAL: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.I)


@dataclass(slots=True)
class Import:
    """One run into one connection.

    If the run has several `files`, rows of later ones with the id of another record of an earlier
    one are kept apart.
    """

    writer: Writing
    plan: Plan
    listener: Listener = Listener()
    files: int = 1
    batch: Batch = field(init=False)
    report: Report = field(init=False)
    _handles: dict[str, StreamHandle] = field(init=False, default_factory=dict)
    _fitters: dict[str, Fitter] = field(init=False, default_factory=dict)
    #: How often the content of a row without a key has occurred in the current file.
    _occurrences: Occurrences = field(init=False, default_factory=Occurrences)
    #: New streams declared by their format, until the first row of each.
    _unseen: dict[str, Inferred] = field(init=False, default_factory=dict)
    _untyped: bool = field(init=False, default=False)
    _comma: bool | None = field(init=False, default=None)
    _decisive: dict[str, dict[str, list[str]]] = field(init=False, default_factory=dict)
    #: The file, line and row of rows of new streams, and the streams that wait for further files.
    _waiting: dict[str, list[tuple[int, int, Row]]] = field(init=False, default_factory=dict)
    _groups: set[str] = field(init=False, default_factory=set)
    #: The new ids of records that are stored under former ones, which they keep.
    _renamed: dict[str, str] = field(init=False, default_factory=dict)
    _origins: Origins = field(init=False, default_factory=Origins)
    _file: int = field(init=False, default=0)
    _destinations: Destinations = field(init=False)
    _streams: Streams = field(init=False)
    #: The stream of the current file, if it is new, and the one that its rows go to, once known.
    _own: str | None = field(init=False, default=None)
    _shared: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.batch = Batch(self.writer, on_rows=self.listener.stored)
        self.report = Report(self.plan.connection_id, self.batch.counts)
        self._streams = Streams(self.writer, self.plan.connection_id)
        self._destinations = Destinations(self.writer.manifests(self.plan.connection_id))

    @property
    def counts(self) -> Counts:
        return self.batch.counts

    def declare(self, document: Any) -> None:
        """Creates or changes the streams of a manifest document."""
        self.batch.flush()
        for name in self._streams.declare(parse(document)):
            self._handles.pop(name, None)
            self._fitters.pop(name, None)

    def read(self, header: FileHeader, rows: Iterable[Received]) -> None:
        """Imports the rows of a file."""
        if header.manifest is not None:
            streams = header.manifest
            if missing := [item for item in streams if self._open(item["name"]) is None]:
                self.declare({"streams": missing})
                self._unseen = {item["name"]: Inferred(item, {}) for item in missing}
        default = self.plan.stream or header.stream
        self._untyped, self._shared, self._own = header.untyped, header.group, None
        if self.plan.stream is None and header.stream and self._open(header.stream) is None:
            self._own = header.stream
        self._file += 1
        self._occurrences.clear()
        self._renamed.clear()
        for name in self._waiting.keys() - self._groups:
            del self._waiting[name]  # of a file that could not be read to the end
        if header.group is not None and not header.untyped:
            self._groups.add(header.group)
        for _, line, content in rows:
            self._comma, self._decisive = header.comma, header.decisive
            if isinstance(content, Row):
                self._take(line, content, content.stream or default)
            else:
                self.counts.refuse(line, content)
            self.listener.row()
        for name in [name for name in self._waiting if name not in self._groups]:
            self._settle(name)
        self.batch.flush()
        self._occurrences.clear()

    def finish(self) -> None:
        """Imports what waited for further files."""
        self._untyped = False
        for name in list(self._waiting):
            self._settle(name)
        self.batch.flush()

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self.counts.rows + sum(map(len, self._waiting.values()))

    def _take(self, line: int, row: Row, name: str | None) -> None:
        if name is None:
            raise InvalidRequest("Rows from standard input need a stream. Use --stream NAME.")
        if name == self._own:
            name = self._destination(name, row)
        handle = self._handles.get(name) or self._open(name)
        if handle is not None:
            if name in self._unseen:
                self.listener.new_stream(self._unseen.pop(name), [row.data])
            self._add(handle, line, row)
            return
        if name not in self._waiting:
            try:
                check_name(name, what="stream")
            except Refused as refused:
                self.counts.refuse(line, str(refused))
                return
        self._waiting.setdefault(name, []).append((self._file, line, row))
        waiting = sum(map(len, self._waiting.values()))
        full = len(self._waiting[name]) >= BUDGETS.import_sample_rows
        if full or waiting >= BUDGETS.import_waiting_rows:
            self._settle(name)

    def _destination(self, name: str, row: Row) -> str:
        """The stream of the rows of a file whose own stream is new."""
        if self._shared is None or self._open(self._shared) is None:
            columns = row.data.keys()
            series = self._destinations.series(self._shared or name, columns, exact=self._untyped)
            self._shared = series or self._shared or name
        return self._shared

    def _check_repeated(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Reports an older stream that has most of the first rows of a new one."""
        for older in self._destinations.alike({field for row in rows for field in row}):
            handle = self._streams.open(older)
            fitter, records = Fitter(handle.manifest, {}), list[tuple[str, dict[str, Any]]]()
            for data in rows:
                fit = fitter.fit(dict(data), 0, self._untyped)
                key = content_key(fit)
                with suppress(Refused):
                    key = record_key(Row(fit), handle.manifest.primary_key)
                records.append((key, fit))
            count = sum(stored(self.writer, handle, records))
            if count >= LEAST_REPEATED and count * 2 > len(rows):
                self.listener.repeated(name, older, count, len(rows))

    def _settle(self, name: str) -> None:
        """Infers the manifest of a stream with waiting rows, and imports them."""
        rows, file = self._waiting.pop(name), self._file
        sample = [row.data for *_, row in rows if not row.deleted]
        if self.plan.stream is None:
            self._check_repeated(name, sample)
        inferred = infer(
            name,
            sample,
            key=self.plan.key,
            roles=self.plan.roles,
            untyped=self._untyped,
            comma=self._comma,
            decisive=self._decisive.get(name, self._decisive.get("", {})),
        )
        document = inferred.document
        if not document["schema"]["properties"]:
            refusal = f"{name!r} is a new stream, and no row has a usable field."
            for _, line, _ in rows:
                self.counts.refuse(line, refusal)
            return
        self._check_key(name, document["schema"]["properties"])
        self.listener.new_stream(inferred, sample[:SAMPLES])
        waiting = iter(rows)
        # A disk that is full now must not leave an empty stream.
        with self.writer.transaction():
            self.declare({"streams": [document]})
            handle = self._streams.open(name)
            for self._file, line, row in islice(waiting, FIRST_ROWS):
                self._add(handle, line, row)
            self.batch.flush()
        self._handles[name] = handle
        self._destinations.add(handle.manifest)
        for self._file, line, row in waiting:
            self._add(handle, line, row)
        self._file = file

    def _check_key(self, name: str, fields: Collection[str]) -> None:
        """Refuses a key with a field that a new stream does not have."""
        for key in self.plan.key:
            if key not in fields:
                near = get_close_matches(key, fields, 1)
                names = ", ".join(sorted(fields)[: BUDGETS.names_shown])
                hint = f"Did you mean {near[0]!r}?" if near else f"Its fields: {names}."
                raise InvalidRequest(f"The stream {name!r} has no field {key!r} for --key. {hint}")

    def _open(self, name: str) -> StreamHandle | None:
        if name not in self._handles:
            try:
                handle = self._streams.open(name)
            except NotFound:
                return None
            if self.plan.key and self.plan.key != handle.manifest.primary_key:
                key = ", ".join(handle.manifest.primary_key) or "their whole content"
                raise InvalidRequest(
                    f"Rows of {name!r} are identified by {key}; --key cannot change that. "
                    "Omit --key, or import into a new stream with --stream NAME."
                )
            self._handles[name] = handle
        return self._handles[name]

    def _add(self, handle: StreamHandle, line: int, row: Row) -> None:
        name, row = handle.manifest.name, self.listener.adapt(row)
        if row.former is not None or self._renamed:
            current = self._under_former_id(handle, row)
            if current is None:
                self.counts.unchanged += 1
                return
            row = current
        if not row.data.keys() <= handle.manifest.fields.keys():
            unknown = row.data.keys() - handle.manifest.fields.keys()
            self.report.undeclared.setdefault(name, set()).update(unknown)
        fitter = self._fitters.get(name)
        if fitter is None:
            misfits = self.report.misfits.setdefault(name, {})
            fitter = self._fitters[name] = Fitter(handle.manifest, misfits)
        row = row._replace(data=fitter.fit(row.data, line, self._untyped))
        if row.key is None and not handle.manifest.primary_key and not row.deleted:
            self.report.keyless.add(name)
            # The id is a hash of the content, plus a number if the file repeats it.
            key = content_key(row.data)
            number = self._occurrences.add(int(key[:16], 16) >> 1 ^ crc32(name.encode()))
            row = row._replace(key=key if number == 1 else f"{key}-{number}", digest=None)
        elif row.key is None and row.emitted_at is None and not row.deleted:
            row = self._apart(handle, row)
        self.batch.add(handle, row, line=line, origin=self._file)

    def _under_former_id(self, handle: StreamHandle, row: Row) -> Row | None:
        """The row under the id that it has in the store; None if it is in another stream there."""
        owner = row.data.get("message_id")
        if row.former is None:
            if handle.manifest.name != ATTACHMENTS or owner not in self._renamed:
                return row
            key = self._renamed[owner]
            numbered = str(row.data["id"]).removeprefix(owner)
            data = {**row.data, "id": f"{key}{numbered}", "message_id": key}
            return row._replace(data=data, digest=None)
        stream, key, same = row.former
        there = self._open(stream)
        if there is None:
            return row
        if not stored(self.writer, there, [(key, same)])[0]:
            return row
        if there.id != handle.id:
            return None
        self._renamed[row.data["id"]] = key
        return row._replace(data={**row.data, "id": key}, digest=None)

    def _apart(self, handle: StreamHandle, row: Row) -> Row:
        """The row with an id of its own, if an earlier file has another record with its id."""
        try:
            key = record_key(row, handle.manifest.primary_key)
        except Refused:
            return row
        if _UNIVERSAL.search(key) or handle.manifest.name == ATTACHMENTS:
            return row
        sorted_json = orjson.dumps(row.data, option=orjson.OPT_SORT_KEYS, default=repr)
        content = sha256(sorted_json).hexdigest()
        is_first = self.files < 2 or self._origins.first(f"{handle.id} {key}", self._file, content)
        if is_first and (
            not self.listener.owned_elsewhere(handle, key)
            or stored(self.writer, handle, [(key, row.data)])[0]
        ):
            return row
        self.report.apart[handle.manifest.name] += 1
        key = f"{key}~{content[:8]}"
        data, primary = row.data, handle.manifest.primary_key
        if primary == ("id",) and handle.manifest.fields["id"].type == "string":
            self._renamed[data["id"]] = key
            data = {**data, "id": key}
        return row._replace(key=key, data=data, digest=None)
