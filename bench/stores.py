"""The files that a run measures, built once and kept under `var/bench`.

Rung's store and the peers' file contain the same records. A folder's name has a hash of what it
depends on: a change of layout, importer, folding or corpus makes a new folder and deletes the old.
"""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from bench import corpus, queries
from bench.corpus import Record
from bench.peers import plain
from bench.queries import Queries
from evidence import language
from evidence.fold import FOLD_VERSION
from service.access import grants
from service.access.registry import Registry
from service.records.engine import large
from evidence.manifest import values
from service.records.writing import derived, ingest, languages, passages, vocabulary
from service.records.writing import steps
from service.records.writing.ingest import Batch
from service.records.intake import Row
from evidence.manifest import parse
from service.records.sqlite import catalog, ddl, indexing, writer
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import connect, declare, open_stream
from service.records.sqlite.writer import Writer, open_writer

HOME = Path("var/bench")
#: The modules that decide what a store contains.
WRITERS = (
    *(catalog, ddl, derived, indexing, ingest, language, languages, large, passages),
    *(steps, values, vocabulary, writer),
)
VERSION = 6
EMITTED_AT = "2026-08-01T00:00:00Z"

SHALLOW_CHARS = 8 * 1024
#: Occurs only at the end of the huge field; its inner part is not a word.
LAST_WORD, INNER_PART = "zwyrkonfalt", "yrkonfal"

_RANGE = ["gte", "gt", "lte", "lt"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Two files with the same records, and tokens for the first 1, 8 and all connections."""

    folder: Path
    tokens: dict[int, str]

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def plain(self) -> Path:
        return self.folder / "plain.db"

    @property
    def token(self) -> str:
        """The token for everything."""
        return self.tokens[corpus.CONNECTIONS]


@dataclass(frozen=True, slots=True)
class Deep:
    """A store of two records: the field `text` is huge in one and small in the other."""

    store: Path
    token: str
    huge_id: str
    small_id: str
    huge_chars: int


def seeded() -> str:
    """What files made from the corpus alone depend on."""
    own = hashlib.sha256(Path(corpus.__file__).read_bytes()).hexdigest()
    return repr((VERSION, own))


def layout() -> str:
    """What a kept store depends on."""
    sources = [
        hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest() for module in WRITERS
    ]
    return repr((FOLD_VERSION, sources, seeded(), plain.TABLES))


def open_queries(count: int) -> Queries:
    """The queries of the corpus of `count` records, also used for larger and smaller ones."""

    def build(folder: Path) -> None:
        found = queries.choose(corpus.frequencies(corpus.records(count)), count)
        (folder / "queries.json").write_bytes(orjson.dumps(asdict(found)))

    own = Path(corpus.__file__).read_text() + Path(queries.__file__).read_text()
    folder = kept(f"queries-{count}", own, build)
    found = orjson.loads((folder / "queries.json").read_bytes())
    return Queries(**{name: tuple(words) for name, words in found.items()})


def open_corpus(count: int) -> Corpus:
    """The corpus of `count` records, built if it does not exist."""
    folder = kept(f"corpus-{count}", layout(), lambda folder: _build_corpus(folder, count))
    tokens = orjson.loads((folder / "tokens.json").read_bytes())
    return Corpus(folder, {int(most): token for most, token in tokens.items()})


def open_deep(chars: int) -> Deep:
    """The store with the huge field, built if it does not exist."""
    folder = kept(f"deep-{chars}", layout(), lambda folder: _build_deep(folder, chars))
    token = (folder / "token").read_text()
    return Deep(folder / "store.db", token, "deep/texts:huge", "deep/texts:small", chars)


def open_rows(count: int) -> Path:
    """The corpus as one NDJSON file of one stream, for imports."""

    def build(folder: Path) -> None:
        with open(folder / "rows.ndjson", "wb") as file:
            for record in corpus.records(count):
                file.write(orjson.dumps(data_of(record)) + b"\n")

    return kept(f"rows-{count}", seeded(), build) / "rows.ndjson"


def kept(name: str, layout: str, build: Callable[[Path], None]) -> Path:
    """The folder with this name, built if it does not exist; it never appears half-built."""
    folder = HOME / f"{name}-{hashlib.sha256(layout.encode()).hexdigest()[:8]}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        build(unfinished)
        for old in HOME.glob(f"{name}-????????"):
            shutil.rmtree(old)
        unfinished.rename(folder)
    return folder


def data_of(record: Record) -> dict[str, Any]:
    """A record in the form that is imported."""
    return {
        "id": record.id,
        "title": record.title,
        "body": record.body,
        "sent_at": record.sent_at,
        "kind": record.kind,
    }


def stream_document(name: str) -> dict[str, Any]:
    """The manifest of one stream of the corpus."""
    return {
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
            "aggregations": {"group_by": ["kind"], "group_by_time": ["sent_at"]},
        },
    }


def grant(writer: Writer, connections: Iterable[str]) -> str:
    """A token for everything in these connections."""
    document = {"streams": [{"connection_id": name} for name in connections]}
    _, token = grants.create(Registry(writer), document, label="bench")
    return token


def _build_corpus(folder: Path, count: int) -> None:
    """Fills both files in one pass over the records."""
    names = [f"source-{number}" for number in range(corpus.CONNECTIONS)]
    peers_file = _Plain(folder / "plain.db")
    with open_writer(folder / "store.db") as writer:
        streams = [{each: _stream(writer, name, each) for each in corpus.STREAMS} for name in names]
        batch = Batch(writer)
        for record in corpus.records(count):
            row = Row(data_of(record), record.id, EMITTED_AT)
            batch.add(streams[record.connection][record.stream], row)
            peers_file.add(record)
        _finish(batch)
        tokens = {str(most): grant(writer, names[:most]) for most in (1, 8, len(names))}
    peers_file.finish()
    (folder / "tokens.json").write_bytes(orjson.dumps(tokens))


class _Plain:
    """The peers' file, open for writing."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {plain.TABLES}"
        )
        self._db.execute("BEGIN")

    def add(self, record: Record) -> None:
        source = f"source-{record.connection}"
        row = (record.id, source, record.stream, record.title, record.body, record.sent_at)
        self._db.execute("INSERT INTO record VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)

    def finish(self) -> None:
        self._db.execute("INSERT INTO fts (fts) VALUES ('rebuild')")
        self._db.execute("INSERT INTO fts (fts) VALUES ('optimize')")
        self._db.execute("COMMIT")
        self._db.close()


def _finish(batch: Batch) -> None:
    batch.flush()
    batch.writer.finish()
    if batch.counts.refused:
        raise RuntimeError(f"the store refuses the corpus: {batch.counts.refusals}")


def _stream(writer: Writer, connection_id: str, name: str) -> StreamHandle:
    connect(writer, connection_id, connector_key="made-up", label=connection_id.capitalize())
    declare(writer, connection_id, parse({"streams": [stream_document(name)]}))
    return open_stream(writer, connection_id, name)


def _build_deep(folder: Path, chars: int) -> None:
    page = " ".join(record.body for record in islice(corpus.records(1_000), 1_000))
    ending = f" {LAST_WORD}."
    huge = (page * (chars // len(page) + 1))[: chars - len(ending)] + ending
    with open_writer(folder / "store.db") as writer:
        connect(writer, "deep", connector_key="made-up")
        properties = {"id": {"type": "string"}, "text": {"type": "string"}}
        schema = {"type": "object", "properties": properties}
        manifest = {
            "name": "texts",
            "primary_key": ["id"],
            "schema": schema,
            "query": {"search": {"lexical_fields": ["text"]}},
        }
        declare(writer, "deep", parse({"streams": [manifest]}))
        texts = open_stream(writer, "deep", "texts")
        batch = Batch(writer)
        for name, text in (("huge", huge), ("small", page[:SHALLOW_CHARS])):
            batch.add(texts, Row({"id": name, "text": text}, name, EMITTED_AT))
        _finish(batch)
        (folder / "token").write_text(grant(writer, ["deep"]))
