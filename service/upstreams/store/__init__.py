"""The embedded resource server: a PDPP resource server without a socket, over one SQLite file."""

import hashlib
import sqlite3
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from evidence.envelope import Envelope
from evidence.errors import Unauthenticated, Unavailable
from evidence.handles import RecordRef
from service.upstreams.cursors import Sealer
from service.upstreams.ports import (
    AggregateQuery,
    Blob,
    RecordQuery,
    RecordRead,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)
from service.upstreams.store import (
    aggregate,
    blobs,
    changes,
    field,
    grants,
    records,
    schema,
    search,
)
from service.upstreams.store.reader import Reader
from service.upstreams.store.visible import View, open_view

GRANTS_CACHED = 512


class Store:
    """The store of one deployment: opens a grant by its token. Safe to share between threads."""

    def __init__(self, path: Path, secret: str | None = None) -> None:
        self.reader = Reader(path)
        self._secret = secret
        # Per thread: generations of different connections cannot be compared.
        self._local = threading.local()

    def open(self, token: str) -> "StoreResourceServer":
        """The resource server inside a token's grant.

        Raises `Unauthenticated` for unknown tokens, `Forbidden` for owner, revoked and expired
        ones. Revocation works from the next request on.
        """
        if not token.startswith(grants.TOKEN_PREFIX):
            raise Unauthenticated("This token is not known here. Ask the owner for a client token.")
        server = StoreResourceServer(self, token)
        with self.reader.snapshot() as db:
            self.view(db, token)
        return server

    def view(self, db: sqlite3.Connection, token: str) -> View:
        """What a token may see in this snapshot. Worked out anew after every commit."""
        key = hashlib.sha256(token.encode()).digest()
        generation = self.reader.generation(db)
        views: dict[bytes, tuple[int, View]] = self._local.__dict__.setdefault("views", {})
        known = views.get(key)
        if known is not None and known[0] == generation:
            return known[1]
        view = open_view(db, grants.find(db, token))
        if view.grant.expires_at is None:  # expiry has no commit that would empty the cache
            if len(views) >= GRANTS_CACHED:
                views.clear()
            views[key] = generation, view
        return view

    @cached_property
    def fence_key(self) -> bytes:
        """What fences of record text are made with; record text cannot know it."""
        return hashlib.sha256(b"rung fence\0" + self.secret()).digest()

    @cached_property
    def sealer(self) -> Sealer:
        """What seals cursors."""
        return Sealer(self.secret())

    def secret(self) -> bytes:
        """The deployment's secret, or the one kept in the store."""
        if self._secret is None:
            with self.reader.snapshot() as db:
                row = db.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()
            self._secret = str(row[0])
        return self._secret.encode()

    def ready(self) -> None:
        """Raises `Unavailable` with the reason when the store cannot answer."""
        with self.reader.snapshot() as db:
            if db.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone() is None:
                raise Unavailable("The store is empty. Import something first.")
            db.execute("SELECT rowid FROM fts WHERE fts MATCH 'ready' LIMIT 1").fetchall()


class StoreResourceServer:
    """One grant over the store; every method is one snapshot. See `ports.ResourceServer`."""

    def __init__(self, store: Store, token: str) -> None:
        self._store = store
        self._token = token

    def schema(self, query: SchemaQuery) -> Envelope:
        return self._ask(lambda db, view: schema.schema(view, query))

    def streams(self, *, connection_id: str | None = None) -> Envelope:
        return self._ask(lambda db, view: schema.list_streams(db, view, connection_id))

    def stream(self, name: str, *, connection_id: str | None = None) -> Envelope:
        return self._ask(lambda db, view: schema.stream_document(view, name, connection_id))

    def connectors(self) -> Envelope:
        return self._ask(lambda db, view: schema.connectors(view))

    def records(self, query: RecordQuery) -> Envelope:
        lister = changes.list_changes if changes.asked(query) else records.list_records
        sealer = self._store.sealer
        return self._ask(lambda db, view: lister(db, view, query, sealer))

    def record(self, read: RecordRead) -> Envelope:
        return self._ask(lambda db, view: records.read_record(db, view, read))

    def aggregate(self, query: AggregateQuery) -> Envelope:
        return self._ask(lambda db, view: aggregate.aggregate(db, view, query))

    def search(self, query: SearchQuery) -> Envelope:
        sealer = self._store.sealer
        return self._ask(lambda db, view: search.search(db, view, query, sealer))

    def field_window(self, ref: RecordRef, field_path: str, window: WindowRequest) -> Envelope:
        return self._ask(lambda db, view: field.read_window(db, view, ref, field_path, window))

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> Blob:
        with self._store.reader.snapshot() as db:
            view = self._store.view(db, self._token)
        return blobs.open_blob(self._store.reader, view, blob_id, connection_id)

    def _ask(self, answer: Callable[[sqlite3.Connection, View], dict[str, Any]]) -> Envelope:
        with self._store.reader.snapshot() as db:
            return Envelope(answer(db, self._store.view(db, self._token)))
