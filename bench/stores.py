"""The files a run measures, made once and kept under `var/bench`.

The store of Rung and the database of the limit hold the very same records. What is kept is thrown
away by name: a new layout, another fold or another corpus get another folder.
"""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench import corpus
from bench.corpus import Queries, Record
from bench.limit import TABLES
from evidence.fold import FOLD_VERSION
from service.upstreams.store import grants
from service.upstreams.store.ddl import MIGRATIONS
from service.upstreams.store.ingest import Batch
from service.upstreams.store.intake import Row
from service.upstreams.store.manifest import parse
from service.upstreams.store.streams import StreamHandle, connect, declare, open_stream
from service.upstreams.store.writer import Writer, open_writer

HOME = Path("var/bench")
CORPUS_VERSION = 3
LAYOUT = repr((MIGRATIONS, FOLD_VERSION, CORPUS_VERSION, corpus.SEED, TABLES))
EMITTED_AT = "2026-08-01T00:00:00Z"

DEEP_CHARS = 100 * 1024 * 1024
SHALLOW_CHARS = 8 * 1024

_RANGE = ["gte", "gt", "lte", "lt"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A store, a token for all of it, the limit's database, and the queries for both."""

    store: Path
    limit: Path
    token: str
    queries: Queries


@dataclass(frozen=True, slots=True)
class Deep:
    """A store with one record whose field `text` is huge and one where it is small."""

    store: Path
    token: str
    huge_id: str
    small_id: str


def open_corpus(count: int) -> Corpus:
    """The corpus of `count` records, built if it is not there."""
    folder = kept(f"{count}", LAYOUT, lambda folder: _build_corpus(folder, count))
    found = orjson.loads((folder / "corpus.json").read_bytes())
    queries = Queries(**{name: tuple(words) for name, words in found["queries"].items()})
    return Corpus(folder / "store.db", folder / "limit.db", found["token"], queries)


def open_deep() -> Deep:
    """The store with the huge field, built if it is not there."""
    folder = kept("deep", LAYOUT, _build_deep)
    token = (folder / "token").read_text()
    return Deep(folder / "store.db", token, "deep/texts:huge", "deep/texts:small")


def kept(name: str, layout: str, build: Callable[[Path], None]) -> Path:
    """The folder of something built before, or now; half-built ones are never seen."""
    folder = HOME / f"{name}-{hashlib.sha256(layout.encode()).hexdigest()[:8]}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        build(unfinished)
        unfinished.rename(folder)
    return folder


def _build_corpus(folder: Path, count: int) -> None:
    found = corpus.queries(corpus.frequencies(corpus.records(count)))
    with open_writer(folder / "store.db") as writer:
        token = _fill(writer, corpus.records(count))
    _fill_limit(folder / "limit.db", corpus.records(count))
    groups = {"rare": found.rare, "medium": found.medium, "two": found.two}
    (folder / "corpus.json").write_bytes(orjson.dumps({"token": token, "queries": groups}))


def _fill(writer: Writer, records: Iterator[Record]) -> str:
    """Imports the records and returns a token for all of them."""
    streams = [
        {name: _stream(writer, f"source-{number}", name) for name in corpus.STREAMS}
        for number in range(corpus.CONNECTIONS)
    ]
    batch = Batch(writer)
    for record in records:
        row = Row(_data(record), record.id, EMITTED_AT)
        batch.add(streams[record.connection][record.stream], row)
    return _finish(batch, [f"source-{number}" for number in range(corpus.CONNECTIONS)])


def _finish(batch: Batch, connections: list[str]) -> str:
    batch.flush()
    batch.writer.finish()
    if batch.counts.refused:
        raise AssertionError(f"the store refuses the corpus: {batch.counts.refusals}")
    document = {"streams": [{"connection_id": name} for name in connections]}
    _, token = grants.create(batch.writer.db, document, label="bench")
    return token


def _data(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": record.title,
        "body": record.body,
        "sent_at": record.sent_at,
        "kind": record.kind,
    }


def _stream(writer: Writer, connection_id: str, name: str) -> StreamHandle:
    connect(writer, connection_id, connector_key="made-up", label=connection_id.capitalize())
    manifest = {
        "name": name,
        "primary_key": ["id"],
        "cursor_field": "sent_at",
        "schema": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "title": {"type": "string", "x_pdpp_role": "primary-title"},
                "body": {"type": "string", "x_pdpp_role": "primary-text"},
                "sent_at": {
                    "type": "string",
                    "format": "date-time",
                    "x_pdpp_role": "event-time",
                },
                "kind": {"type": "string"},
            },
        },
        "query": {
            "exact_filters": ["id", "kind"],
            "range_filters": {"sent_at": _RANGE},
            "search": {"lexical_fields": ["title", "body"]},
        },
    }
    declare(writer, connection_id, parse({"streams": [manifest]}))
    return open_stream(writer, connection_id, name)


def _fill_limit(path: Path, records: Iterator[Record]) -> None:
    db = sqlite3.connect(path)
    db.executescript(f"PRAGMA journal_mode = WAL; {TABLES}")
    for record in records:
        source = f"source-{record.connection}"
        row = (record.id, source, record.stream, record.title, record.body, record.sent_at)
        db.execute("INSERT INTO record VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)
    db.execute("INSERT INTO fts (fts) VALUES ('rebuild')")
    db.execute("INSERT INTO fts (fts) VALUES ('optimize')")
    db.commit()
    db.close()


def _build_deep(folder: Path) -> None:
    page = " ".join(record.body for record in corpus.records(1_000))
    page = page.encode("ascii", "ignore").decode()
    huge = (page * (DEEP_CHARS // len(page) + 1))[:DEEP_CHARS]
    with open_writer(folder / "store.db") as writer:
        connect(writer, "deep", connector_key="made-up")
        properties = {"id": {"type": "string"}, "text": {"type": "string"}}
        schema = {"type": "object", "properties": properties}
        manifest = {"name": "texts", "primary_key": ["id"], "schema": schema, "query": {}}
        declare(writer, "deep", parse({"streams": [manifest]}))
        texts = open_stream(writer, "deep", "texts")
        batch = Batch(writer)
        for name, text in (("huge", huge), ("small", page[:SHALLOW_CHARS])):
            batch.add(texts, Row({"id": name, "text": text}, name, EMITTED_AT))
        (folder / "token").write_text(_finish(batch, ["deep"]))
