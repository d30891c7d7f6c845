"""What a store derives from its records, computed again from the stored documents."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evidence import pointer
from evidence.fold import fold
from evidence.word_parts import joined
from service.records.writing.vocabulary import keys_of
from evidence.manifest.values import FieldType, sortable
from service.records.sqlite.writer import Writer

PASSAGE, STRIDE = 2_048, 1_536


@dataclass
class Derived:
    """`rows` (words, folded text), `passages` are by (record, field), counts by (word, field)."""

    rows: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    passages: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)
    places: dict[int, tuple[Any, Any]] = field(default_factory=dict)


def check(writer: Writer) -> None:
    """Fails unless words, passages, counts and places are exactly those of the records."""
    expected, found = _afresh(writer), _stored(writer)
    for name in Derived.__dataclass_fields__:
        assert getattr(found, name) == getattr(expected, name), name
    query = "SELECT 1 FROM word w WHERE NOT EXISTS (SELECT 1 FROM word_count WHERE word = w.id)"
    assert not writer.db.execute(query).fetchone()
    keys = """
        SELECT key, c.ordinal, text FROM word_key k JOIN word_count c ON c.word = k.word
        JOIN word ON word.id = k.word WHERE k.ordinal IN (-1, c.ordinal)
    """
    assert sorted(writer.db.execute(keys)) == sorted(
        (key, ordinal, word) for word, ordinal in expected.counts for key in keys_of(word)
    )


def documents(writer: Writer) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(stream, seq, record) of every live record, large values whole."""
    for stream, seq, data, big in writer.db.execute(
        "SELECT stream, seq, data, big FROM document JOIN record USING (seq)"
    ).fetchall():
        record = json.loads(data)
        for name, (first, chunks, _, _, kind) in json.loads(big or "{}").items():
            rows = writer.db.execute(
                "SELECT text FROM chunk WHERE id BETWEEN ? AND ? ORDER BY id",
                (first, first + chunks - 1),
            )
            text = "".join(row[0] for row in rows)
            record[name] = text if kind == "string" else json.loads(text)
        yield stream, seq, record


def words(text: str) -> tuple[set[str], int]:
    """(the words of a text and its pairs of unspaced characters, its length)."""
    run = fold(text).split()
    lone = [len(word) == 1 and word >= "\u0e00" for word in run]
    pairs = {run[n] + run[n + 1] for n in range(len(run) - 1) if lone[n] and lone[n + 1]}
    return {*run, *pairs, *(" ".join(found.words) for found in joined(text))}, len(run)


def _afresh(writer: Writer) -> Derived:
    found = Derived()
    manifests = {
        writer.db.execute(
            "SELECT s.id FROM stream s JOIN connection c ON c.id = s.connection"
            " WHERE c.connection_id = ? AND s.name = ?",
            (connection, manifest.name),
        ).fetchone()[0]: manifest
        for connection in writer.connection_ids()
        for manifest in writer.manifests(connection)
    }
    ordinals = {
        (stream, name): ordinal
        for stream, name, ordinal in writer.db.execute("SELECT stream, field, ordinal FROM scope")
    }
    for stream, seq, record in documents(writer):
        manifest = manifests[stream]
        found.records[stream] += 1
        found.places[seq] = tuple(
            _placed(record, manifest.roles.get(role), manifest.fields)
            for role in ("thread", "position")
        )
        for name in manifest.lexical_fields:
            held, ordinal = record.get(pointer.top_level(name)), ordinals[stream, name]
            value = pointer.searched_text(pointer.find(record, name))
            if value and (isinstance(held, str) or len(json.dumps(held)) < 65_536):
                _add(found, seq, ordinal, value)
    return found


def _add(found: Derived, seq: int, ordinal: int, value: str) -> None:
    held, length = words(value)
    found.counts.update((word, ordinal) for word in held if len(word) <= 500)
    if length:
        found.lengths[ordinal] += min(length, length * PASSAGE // len(fold(value)))
    if len(value) <= PASSAGE:
        found.rows[seq, ordinal] = length, fold(value)
        return
    starts = [0]
    while starts[-1] + PASSAGE < len(value):
        starts.append(starts[-1] + STRIDE)
    found.passages[seq, ordinal] = starts


def _placed(record: dict[str, Any], name: str | None, fields: dict[str, FieldType]) -> Any:
    return sortable(record[name], fields[name]) if name in record and name else None


def _stored(writer: Writer) -> Derived:
    db, found = writer.db, Derived()
    texts = dict(db.execute("SELECT rowid, body FROM fts"))
    starts = dict(db.execute("SELECT id, start FROM passage"))
    assert {row for (row,) in db.execute("SELECT id FROM fts_passage_docsize")} == set(starts)
    values = db.execute("SELECT id, first_passage, passages, words FROM value").fetchall()
    for row, first, passages, length in values:
        place = row & 0xFFFFFFFF, row >> 32
        if passages is None:
            found.rows[place] = length, texts.pop(row)
            continue
        base = (row >> 32 << 32) + first
        found.passages[place] = [starts.pop(base + number) for number in range(passages)]
        assert length is None
    assert not texts and not starts and len(values) == len(found.rows) + len(found.passages)
    found.counts = Counter(
        {
            (word, ordinal): n
            for word, ordinal, n in db.execute(
                "SELECT text, ordinal, n FROM word_count JOIN word ON word.id = word"
            )
        }
    )
    found.lengths = Counter(dict(db.execute("SELECT ordinal, words FROM scope WHERE words")))
    found.records = Counter(dict(db.execute("SELECT id, records FROM stream WHERE records")))
    found.places = {
        seq: (thread, place)
        for seq, thread, place in db.execute(
            "SELECT seq, thread, place FROM record WHERE deleted = 0"
        )
    }
    return found
