"""Vectors in the store: they follow their texts, and are read inside a scope only."""

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evidence.manifest import parse
from service.place import Place
from service.records.engine import Scope, Snapshot
from service.records.engine.engine import Reader
from service.records.engine.scopes import StreamHandle
from service.records.engine.selections import Limit, Selection
from service.records.engine.selections import Test as FieldTest
from service.records.engine.vectors import WindowedRecord, code_of
from service.records.intake import Row
from service.records.opening import open_reader, open_writer
from service.records.sql import vectors as sampling
from service.records.writing import Writing
from service.records.writing.streams import declare, open_stream
from tests.helpers.filling import put
from tests.helpers.notes import NOTES
from tests.helpers.places import new_place

MODEL = "test:1"


def embed(text: str) -> bytes:
    return hashlib.shake_128(text.encode()).digest(64)


def number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 2


def build(writer: Writing, stream: StreamHandle, model: str = MODEL) -> int:
    """Saves one vector for each text of a stream; returns the set."""
    tables = writer.vectors()
    set_id = tables.open_set(model, 64, b"")
    fields = stream.scopes.searchable
    tables.prepare(set_id, stream.id, sorted(fields.values()))
    seqs = [seq for _, seq in tables.missing(set_id, stream.id, begun=False)]
    records, vectors = [], {}
    for document in tables.documents(seqs):
        texts = texts_of(document.data, stream)
        windows = {(field, 0): (len(text), number(text)) for field, text in texts.items()}
        vectors |= {number(text): embed(text) for text in texts.values()}
        lots = {field: number(f"{document.record_key} {field}") for field in fields.values()}
        mark = document.fingerprint
        records.append(
            WindowedRecord(document.seq, stream.id, mark, lots, windows, whole=True, done=True)
        )
    tables.save(set_id, records, vectors)
    tables.pack(set_id)
    return set_id


def texts_of(data: str, stream: StreamHandle) -> dict[int, str]:

    record = json.loads(data)
    return {
        field: record[name] for name, field in stream.scopes.searchable.items() if name in record
    }


def note(key: str, text: str, **more: Any) -> Row:
    return Row({"id": key, "title": f"About {key}", "text": text, **more}, key)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def writer(place: Place) -> Iterator[Writing]:
    with open_writer(place) as writer:
        declare(writer, "c", parse({"streams": [NOTES]}))
        yield writer


@pytest.fixture
def notes(writer: Writing) -> StreamHandle:
    stream = open_stream(writer, "c", "notes")
    rows = [
        note(f"n{i}", f"words of {i}", size=i, at=f"2024-01-01T00:{i:02}:00Z") for i in range(9)
    ]
    put(writer, stream, rows)
    return stream


@pytest.fixture
def reader(place: Place, writer: Writing) -> Iterator[Reader]:
    with closing(open_reader(place)) as reader:
        yield reader


def scope_of(stream: StreamHandle, *tests: FieldTest, limit: Limit = Limit()) -> Scope:
    fields = tuple(sorted(stream.scopes.searchable.values()))
    return Scope(fields, (Selection(stream.id, limit, tests),), dict.fromkeys(fields, stream.id))


def entries(snapshot: Snapshot, set_id: int, fields: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """(seq, id, code) of the entries that are not zero."""
    found = []
    for block in snapshot.vector_blocks(set_id, fields):
        found += [row for row in struct.iter_unpack("<QQ8s", block) if row[1]]
    return found


def check(snapshot: Snapshot, set_id: int, stream: StreamHandle) -> int:
    """Every vector is that of its text and in a block; returns how many there are."""
    fields = sorted(stream.scopes.searchable.values())
    seqs = snapshot.members(scope_of(stream), 1_000).get()
    assert seqs is not None
    texts = {
        (seq, stream.scopes.searchable[name]): record.data[name]
        for seq, record in snapshot.load(seqs).get().items()
        for name in stream.scopes.searchable
        if name in record.data
    }
    rows = snapshot.vectors(set_id, fields, seqs).get()
    for row in rows:
        text = texts[row.seq, row.ordinal]
        assert (row.start, row.stop, row.vector) == (0, len(text), embed(text))
    blocks = entries(snapshot, set_id, fields)
    assert sorted((seq, code) for seq, _, code in blocks) == sorted(
        (row.seq, code_of(row.vector, b"")) for row in rows
    )
    by_id = snapshot.vectors_by_id(set_id, [id for _, id, _ in blocks]).get()
    assert sorted(by_id) == sorted(rows)
    return len(rows)


def test_a_store_without_vectors_has_no_set(reader: Reader) -> None:
    with reader.snapshot() as snapshot:
        assert snapshot.vector_set() is None


def test_vectors_are_read_by_record_and_from_blocks(
    writer: Writing, notes: StreamHandle, reader: Reader
) -> None:
    set_id = build(writer, notes)
    with reader.snapshot() as snapshot:
        first = snapshot.vector_set()
        assert first is not None and first[:3] == (set_id, MODEL, 64)
        assert check(snapshot, set_id, notes) == 18
        assert snapshot.vector_coverage(set_id, [notes.id]).get() == [(notes.id, 9, 9)]
        title = notes.scopes.searchable["title"]
        seqs = snapshot.members(scope_of(notes), 9).get()
        assert seqs and len(snapshot.vectors(set_id, [title], seqs[:2]).get()) == 2
        assert snapshot.members(scope_of(notes), 8).get() is None


def test_a_changed_or_deleted_record_loses_its_vectors_at_once(
    writer: Writing, notes: StreamHandle, reader: Reader
) -> None:
    set_id = build(writer, notes)
    put(writer, notes, [note("n1", "other words"), Row(None, "n2", deleted=True)])
    with reader.snapshot() as snapshot:
        assert check(snapshot, set_id, notes) == 14
        assert snapshot.vector_coverage(set_id, [notes.id]).get() == [(notes.id, 7, 8)]
    assert build(writer, notes) == set_id
    with reader.snapshot() as snapshot:
        assert check(snapshot, set_id, notes) == 16


def test_a_vector_is_not_saved_if_its_record_changed_meanwhile(
    writer: Writing, notes: StreamHandle, reader: Reader
) -> None:
    tables = writer.vectors()
    set_id = tables.open_set(MODEL, 64, b"")
    field = notes.scopes.searchable["text"]
    tables.prepare(set_id, notes.id, [field])
    seqs = [seq for _, seq in tables.missing(set_id, notes.id, begun=False)]
    records = [
        WindowedRecord(
            *(document.seq, notes.id, document.fingerprint, {field: 1}),
            *({(field, 0): (10, number(document.record_key))}, True, True),
        )
        for document in tables.documents(seqs)
    ]
    put(writer, notes, [note("n1", "other words"), Row(None, "n2", deleted=True)])
    tables.save(set_id, records, {number(f"n{i}"): embed(f"n{i}") for i in range(9)})
    with reader.snapshot() as snapshot:
        assert len(snapshot.vectors(set_id, [field], seqs).get()) == 7
        assert snapshot.vector_coverage(set_id, [notes.id]).get() == [(notes.id, 7, 8)]


def test_records_are_missing_newest_first(writer: Writing, notes: StreamHandle) -> None:
    put(writer, notes, [note("timeless", "no time")])
    tables = writer.vectors()
    set_id = tables.open_set(MODEL, 64, b"")
    seqs = [seq for _, seq in tables.missing(set_id, notes.id, begun=False)]
    keys = {document.seq: document.record_key for document in tables.documents(seqs)}
    assert [keys[seq] for seq in seqs] == [*(f"n{i}" for i in range(8, -1, -1)), "timeless"]


@pytest.mark.parametrize("listed", [5_000, 1])
def test_a_sample_has_the_least_lots_of_the_scope(
    writer: Writing,
    notes: StreamHandle,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
    listed: int,
) -> None:
    monkeypatch.setattr(sampling, "MEMBERS_MOST", listed)
    set_id = build(writer, notes)
    size = notes.scopes.cells["size"]
    of_keys = Limit(keys=frozenset(["n0", "n1", "n2", "n3"]))
    with reader.snapshot() as snapshot:
        for scope, keys in (
            (scope_of(notes), range(9)),
            (scope_of(notes, FieldTest(size, "gte", 5)), range(5, 9)),
            (scope_of(notes, limit=of_keys), range(4)),
        ):
            lots = sorted(
                (number(f"n{key} {field}"), embed(text))
                for key in keys
                for name, field in notes.scopes.searchable.items()
                for text in [f"About n{key}" if name == "title" else f"words of {key}"]
            )
            for most in (1, 3, 100):
                expected = [vector for _, vector in lots[:most]]
                assert snapshot.vector_sample(set_id, scope, most).get() == expected


def test_only_records_of_the_selections_are_within_a_scope(
    writer: Writing, notes: StreamHandle, reader: Reader
) -> None:
    build(writer, notes)
    size = notes.scopes.cells["size"]
    with reader.snapshot() as snapshot:
        seqs = snapshot.members(scope_of(notes), 9).get()
        assert seqs is not None
        large = snapshot.within(scope_of(notes, FieldTest(size, "gte", 7)), seqs).get()
        records = snapshot.load(large).get()
        assert {record.record_key for record in records.values()} == {"n7", "n8"}
        assert snapshot.within(scope_of(notes), []).get() == []


def test_worn_blocks_are_packed_anew(writer: Writing, notes: StreamHandle, reader: Reader) -> None:
    rows = [note(f"m{i}", f"more of {i}") for i in range(600)]
    put(writer, notes, rows)
    set_id = build(writer, notes)
    put(writer, notes, [Row(None, row.key, deleted=True) for row in rows[100:400]])
    writer.vectors().pack(set_id)
    with reader.snapshot() as snapshot:
        assert check(snapshot, set_id, notes) == 2 * 309
        field = notes.scopes.searchable["text"]
        blocks = list(snapshot.vector_blocks(set_id, [field]))
        assert sum(map(len, blocks)) < 24 * 500


def test_a_second_set_is_used_once_it_is_complete_and_the_first_is_erased(
    writer: Writing, notes: StreamHandle, reader: Reader
) -> None:
    first = build(writer, notes)
    second = build(writer, notes, "test:2")
    with reader.snapshot() as snapshot:
        current = snapshot.vector_set()
        assert current is not None and current.id == first
    writer.vectors().complete(second)
    with reader.snapshot() as snapshot:
        current = snapshot.vector_set()
        assert current is not None and current.id == second
        assert check(snapshot, second, notes) == 18
        seqs = snapshot.members(scope_of(notes), 9).get() or []
        assert snapshot.vectors(first, list(notes.scopes.searchable.values()), seqs).get() == []
    assert [model for _, model in writer.vectors().sets()] == ["test:2"]


def test_other_fields_make_every_record_missing(writer: Writing, notes: StreamHandle) -> None:
    set_id = build(writer, notes)
    tables = writer.vectors()
    tables.prepare(set_id, notes.id, sorted(notes.scopes.searchable.values()))
    assert not list(tables.missing(set_id, notes.id, begun=False))
    tables.prepare(set_id, notes.id, [notes.scopes.searchable["text"]])
    assert len(list(tables.missing(set_id, notes.id, begun=False))) == 9
