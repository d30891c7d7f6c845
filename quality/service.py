"""The search under test: a collection in a fresh store, asked through the real operation."""

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import orjson

from evidence.errors import EvidenceError
from quality.collections import SEARCHED, Collection, Document, Query
from quality.metrics import DEPTH
from renderers.rendering import Context
from service.meaning.building import build
from service.meaning.encoder import Encoder
from service.operations.base import Session, run_bounded
from service.operations.records import SEARCH
from service.access import grants
from service.place import Place
from service.access.registry import Registry
from service.records.store import Store
from service.importing.process.guard import header, records
from service.importing.importer import Import
from service.importing.plan import Plan
from service.importing.source import Repair, Source
from service.records.writing.streams import connect
from service.records.opening import open_writer
from service.records.writing import Writing
from service.settings import load
from tests.helpers.places import new_place

STREAM = "records"
#: The role of each field of a document, as the manifest declares it.
ROLES = {
    "title": "primary-title",
    "text": "primary-text",
    "author": "actor",
    "at": "event-time",
    "session": "thread",
    "order": "position",
}
#: A field has its role only in streams that have this other field too.
NEEDED = {"order": "session"}


@dataclass(frozen=True, slots=True)
class Answer:
    """One page: the ids of its hits, the bytes of its text, seconds and the first coverage."""

    ids: Sequence[str]
    size: int
    seconds: float
    coverage: float | None = None
    failed: bool = False


class Service:
    """A session for each group of a collection; answers have record ids, or `whole_ids`."""

    def __init__(self, sessions: dict[str, Session], *, whole_ids: bool = False) -> None:
        self._sessions, self._whole_ids = sessions, whole_ids

    def ask(self, query: Query) -> Answer:
        """The answer to a query as it was typed, in one call for ten hits."""
        session = self._sessions[query.group]
        start = time.perf_counter()
        try:
            arguments = SEARCH.load({"query": query.text, "limit": DEPTH})
            page = run_bounded(SEARCH, session, arguments)
            # Rendering may shorten the page; the ids are those a client sees.
            rendering = SEARCH.render(page, Context(fence_key=session.fence_key))
        except EvidenceError:
            return Answer((), 0, time.perf_counter() - start, failed=True)
        seconds = time.perf_counter() - start
        return Answer(
            ids=[hit.id if self._whole_ids else hit.ref.record_id for hit in page.hits],
            size=sum(len(block.encode()) for block in rendering.blocks),
            seconds=seconds,
            coverage=getattr(page.hits[0], "coverage", None) if page.hits else None,
        )


@contextmanager
def serving(collection: Collection, encoder: Encoder | None = None) -> Iterator[Service]:
    """The collection in a store of its own: a connection and a grant for each group.

    With an encoder its texts have vectors.
    """
    with TemporaryDirectory() as folder:
        place = new_place(Path(folder))
        with open_writer(place) as writer:
            tokens = {
                group: _fill(writer, group, documents)
                for group, documents in collection.groups.items()
            }
        if encoder is not None:
            build(place, encoder, Event(), on_commit=lambda progress: None)
        store = opened(place, encoder)
        yield Service(
            {
                group: Session(store.open(token), fence_key=store.fence_key)
                for group, token in tokens.items()
            }
        )


def opened(place: Place, encoder: Encoder | None) -> Store:
    """A store that ranks as RUNG_COMPILED says."""
    store = Store(place, encoder=encoder)
    store.reader.ranks = load().compiled == "on"
    return store


def manifest(documents: Sequence[Document]) -> dict[str, Any]:
    """The manifest of a stream with the fields these documents have."""
    fields = {name: value for document in documents for name, value in document.items()}
    del fields["group"]
    properties: dict[str, Any] = {}
    for name, value in fields.items():
        properties[name] = {"type": "integer" if isinstance(value, int) else "string"}
        if name == "at":
            properties[name]["format"] = "date-time"
        if name in ROLES and NEEDED.get(name, name) in fields:
            properties[name]["x_pdpp_role"] = ROLES[name]
    searched = [name for name in SEARCHED if name in fields]
    stream: dict[str, Any] = {
        "name": STREAM,
        "primary_key": ["id"],
        "schema": {"type": "object", "properties": properties},
        "query": {"search": {"lexical_fields": searched}},
    }
    if "at" in fields:
        stream["cursor_field"] = "at"
        stream["query"]["range_filters"] = {"at": ["gte", "gt", "lte", "lt"]}
    return {"streams": [stream]}


def _fill(writer: Writing, group: str, documents: Sequence[Document]) -> str:
    """Imports the documents of a group and returns the token that reads them."""
    rows = ({name: row[name] for name in row if name != "group"} for row in documents)
    lines = b"\n".join(map(orjson.dumps, rows))
    task = Import(writer, Plan(group, stream=STREAM))

    connect(writer, group, connector_key="quality")
    task.declare(manifest(documents))
    source = Source(f"{STREAM}.ndjson", "ndjson", io.BytesIO(lines), Repair())
    task.read(header(source), records(source))
    assert not task.counts.refused
    writer.finish()
    document = {"streams": [{"connection_id": group}]}
    return grants.create(Registry(writer), document, label=group)[1]
