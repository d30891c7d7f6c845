"""The embedded resource server: a PDPP resource server without a socket, on one store."""

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from typing import TypeVar

from evidence import request_log
from evidence.errors import UNKNOWN_TOKEN, Unauthenticated, Unavailable
from evidence.handles import RecordRef
from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from evidence.model import Buckets, SyncStatus
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from service import keys
from service.keys import Sealer
from service.meaning.encoder import Encoder, MeaningUnavailable
from service.place import Place
from service import ports
from service.ports import Answer
from service.access import grants, packages, tokens
from service.records.reading import aggregate, blobs, changes, fields, lists, schema
from service.records.reading.as_of import dated, searched
from service.records.search import by_meaning, pages
from service.access.activity import Activity
from service.access.registry import Grant, Member, Package, RegistryReader
from service.records.engine import Generation, Moved, Snapshot
from service.records.freshness import SourceStates
from service.records.engine.vectors import share_of
from service.records.opening import open_reader
from service.records.sidecar import open_sidecar
from service.records.overview import OWNER, StreamOverview, everything, overview
from service.records.view import View, open_view

#: The key of a grant between requests: the hash of its token, or its id.
Key = bytes | str
T = TypeVar("T")
#: Looks up the grant in a registry; None means the owner, who reads everything.
Find = partial[Grant] | None


class Store:
    """The store of one deployment: opens a grant by its token. Safe to share between threads."""

    def __init__(
        self,
        place: Place,
        secret: str | None = None,
        encoder: Encoder | None = None,
        *,
        fixed: bool = False,
    ) -> None:
        self.place, self.encoder = place, encoder
        self.reader = open_reader(place, fixed=fixed)
        self.sidecar = open_sidecar(place, fixed=fixed)
        self.activity = Activity(self.sidecar)
        self.source_states = SourceStates(self.sidecar)
        self._secret = secret
        # Per thread: generations of different connections cannot be compared.
        self._local = threading.local()

    def open(self, token: str) -> "StoreResourceServer":
        """The resource server inside a token's grant.

        Raises `Unauthenticated` for unknown, revoked and expired tokens, `Forbidden` for owner
        tokens. Revocation works from the next request on.
        """
        if not token.startswith(tokens.PREFIX):
            raise Unauthenticated(
                "This token is unknown. Ask the owner for a client token.", code=UNKNOWN_TOKEN
            )
        return self._open(keys.hashed(token), partial(grants.find, token=token))

    def open_member(self, grant_id: str) -> "StoreResourceServer":
        """The same for a grant of this store that is a member of a package.

        Raises `Forbidden` if the grant has ended.
        """
        return self._open(grant_id, partial(grants.by_id, grant_id=grant_id))

    def open_granted(self, grant_id: str) -> "StoreResourceServer":
        """The same for a grant by its id; raises `Unauthenticated` if it has ended."""
        return self._open(grant_id, partial(grants.active, grant_id=grant_id))

    def open_owner(self) -> "StoreResourceServer":
        """The same for the owner, who reads everything."""
        return self._open(OWNER, None)

    def granted(self, find: partial[Grant]) -> Grant:
        """A grant; raises `Unauthenticated` if it has ended."""
        now = self.activity.now()
        with self.reader.snapshot() as snapshot:
            return find(RegistryReader(snapshot), now=now)

    def grants(self) -> list[Grant]:
        """All grants, oldest first, for the owner."""
        with self.reader.snapshot() as snapshot:
            return RegistryReader(snapshot).grants()

    def overview(self, *, samples: int = 0) -> list[StreamOverview]:
        """All streams, for the owner, each with the titles of its newest records.

        Without titles, a thread counts only once after every commit.
        """
        with self.reader.snapshot() as snapshot:
            if samples:
                return overview(snapshot, samples)
            generation = snapshot.generation()
            cached: tuple[Generation, list[StreamOverview]] | None
            cached = getattr(self._local, "overview", None)
            if cached is None or cached[0] != generation:
                cached = self._local.overview = generation, overview(snapshot, 0)
            return cached[1]

    def vector_share(self) -> float | None:
        """The share of the records, from 0 to 1, that search by meaning covers; None without it."""
        with self.reader.snapshot() as snapshot:
            snapshot.confine(None)
            vectors = snapshot.vector_set()
            streams = [snapshot.stream(*name) for name in snapshot.names()] if vectors else []
            ids = [row.id for row in streams if row is not None and row.manifest.semantic_fields]
            if vectors is None or not ids:
                return None
            return share_of(snapshot.vector_coverage(vectors.id, ids).get())

    def searches_by_meaning(self) -> bool:
        """Whether questions can be answered by vectors."""
        if self.encoder is None:
            return False
        with self.reader.snapshot() as snapshot:
            return snapshot.vector_set() is not None

    def package(self, token: str) -> Package | None:
        """The package of a token, if any; raises `Unauthenticated` if it has ended."""
        if not token.startswith(tokens.PACKAGE_PREFIX):
            return None
        now = self.activity.now()
        with self.reader.snapshot() as snapshot:
            package = packages.find(RegistryReader(snapshot), token, now=now)
        request_log.current().grant = package.package_id if package else ""
        return package

    def member_token(self, package: Package, member: Member) -> str:
        """The token of a member at another server; see `packages.unsealed`."""
        return packages.unsealed(package.package_id, member, keys.of_tokens(self.secret()))

    def _open(self, key: Key, find: Find) -> "StoreResourceServer":
        server = StoreResourceServer(self, key, find)
        grant = server.read(lambda snapshot, view: view.grant)
        log = request_log.current()
        log.grant = log.grant or grant.grant_id
        return server

    def view(
        self, snapshot: Snapshot, key: Key, find: Find, now: datetime
    ) -> tuple[Generation, View]:
        """The view of a grant in this snapshot. Recomputed after every commit.

        `now` is the time before the snapshot.
        """
        views: dict[Key, tuple[Generation, View]] = self._local.__dict__.setdefault("views", {})
        cached = views.get(key)
        generation = snapshot.generation(cached[0] if cached else None)
        # Revoking is a commit; expiry is not.
        ends = cached[1].grant.expires_at if cached else None
        if cached and cached[0] == generation and not (ends and tokens.is_past(ends, now)):
            snapshot.confine(cached[1].grant.connection_ids)
            return cached
        registry = RegistryReader(snapshot)
        grant = find(registry, now=now) if find else everything(snapshot)
        snapshot.confine(grant.connection_ids)
        view = open_view(snapshot, grant)
        known = next(iter(views.values()), None)
        if len(views) >= BUDGETS.grants_cached or (known and known[0] != generation):
            views.clear()  # those of earlier commits would be computed again
        views[key] = generation, view
        return generation, view

    def forget_view(self, key: Key) -> None:
        """Makes the next `view` read the store."""
        self._local.views.pop(key, None)

    @property
    def fence_key(self) -> bytes:
        """The key of the fences around record text, which record text cannot know."""
        return keys.fence_key(self.secret())

    @property
    def sealer(self) -> Sealer:
        """Encrypts cursors."""
        return _sealer(self.secret())

    def sealer_in(self, snapshot: Snapshot) -> Sealer:
        """Encrypts the cursors of answers from a snapshot."""
        return _sealer(self._secret_in(snapshot))

    def secret(self) -> bytes:
        """The deployment's secret, or the one in the store that is currently at the path."""
        if self._secret is not None:
            return self._secret.encode()
        cached: tuple[int, bytes] | None = getattr(self._local, "secret", None)
        if cached is not None and cached[0] == self.reader.number():
            return cached[1]
        with self.reader.snapshot() as snapshot:
            return self._secret_in(snapshot)

    def _secret_in(self, snapshot: Snapshot) -> bytes:
        if self._secret is not None:
            return self._secret.encode()
        number = snapshot.generation()[0]
        cached: tuple[int, bytes] | None = getattr(self._local, "secret", None)
        if cached is None or cached[0] != number:
            cached = self._local.secret = number, _stored_secret(snapshot).encode()
        return cached[1]

    def ready(self) -> None:
        """Raises `Unavailable` with the reason if the store cannot answer."""
        with self.reader.snapshot() as snapshot:
            _stored_secret(snapshot)
            self.reader.require_index(snapshot)


_sealer = lru_cache(maxsize=4)(Sealer)


def _stored_secret(snapshot: Snapshot) -> str:
    secret = snapshot.meta("secret")
    if secret is None:
        raise Unavailable("The store is empty. Import records first: rung import.")
    return str(secret)


class StoreResourceServer:
    """One grant over the store; every method is one snapshot. See `ports.ResourceServer`."""

    def __init__(self, store: Store, key: Key, find: Find) -> None:
        self._store, self._key, self._find = store, key, find
        self._read: set[Generation] = set()
        self._is_settling = False
        self._statuses = dict[str, SyncStatus]()

    def view(self, snapshot: Snapshot, now: datetime) -> View:
        """The view of the grant in this snapshot; `now` is the time before it."""
        generation, view = self._store.view(snapshot, self._key, self._find, now)
        self._read.add(generation)
        return view

    def version(self) -> Hashable | None:
        """The grant, the generation of all reads so far, and how up to date its connections are.

        None if there were several generations, or if an answer will be another one as soon as its
        question can be embedded, or as more records have vectors. Two versions are equal only if
        both servers give the same answer to the same question.
        """
        is_settled = len(self._read) == 1 and not self._is_settling
        return (self._key, *self._read, *self._statuses.items()) if is_settled else None

    @property
    def searches_by_meaning(self) -> bool:
        """Whether it answers searches whose mode is `semantic` or `hybrid`."""
        return self._store.encoder is not None and self.read(
            lambda snapshot, view: view.vectors(snapshot) is not None
        )

    def schema(self, query: ports.SchemaQuery) -> Answer[Schema]:
        return self._answer(
            lambda snapshot, view: schema.schema(
                view,
                query,
                self._search_modes(snapshot, view, query.connection_id),
                self._statuses,
            )
        )

    def _search_modes(
        self, snapshot: Snapshot, view: View, connection_id: str | None
    ) -> Mapping[int, str]:
        """How each stream is searched, by its id; empty without search by meaning."""
        vectors = view.vectors(snapshot) if self._store.encoder else None
        if vectors is None:
            self._is_settling |= self._store.encoder is not None
            return {}
        covered = view.vector_coverage(snapshot, vectors)
        self._is_settling |= share_of(covered.values()) not in (None, 1)
        return schema.search_modes(view.within(connection_id), covered)

    def streams(self, *, connection_id: str | None = None) -> Answer[StreamList]:
        return self._answer(
            lambda snapshot, view: schema.list_streams(snapshot, view, connection_id)
        )

    def stream(self, name: str, *, connection_id: str | None = None) -> Answer[StreamDetails]:
        return self._answer(
            lambda snapshot, view: schema.stream_details(
                view, name, connection_id, self._search_modes(snapshot, view, connection_id)
            )
        )

    def connectors(self) -> Answer[ConnectorList]:
        return self._answer(lambda snapshot, view: schema.connectors(view))

    def records(self, query: ports.RecordQuery) -> Answer[RecordPage]:
        later = query.changes_since or (query.cursor or "").startswith(changes.CURSOR_PREFIX)
        lister = changes.list_changes if later else lists.list_records
        return self._answer(
            lambda snapshot, view: dated(
                lister(snapshot, view, query, self._store.sealer_in(snapshot)),
                self._statuses,
                lambda: view.stream(query.stream, query.connection_id),
            ),
            lambda view, page: _records(page.records),
        )

    def record(self, ref: RecordRef, read: ports.RecordRead = ports.RecordRead()) -> Answer[Record]:
        return self._answer(
            lambda snapshot, view: lists.read_record(snapshot, view, ref, read),
            lambda view, record: _records([record]),
        )

    def aggregate(self, query: ports.AggregateQuery) -> Answer[Buckets]:
        return self._answer(
            lambda snapshot, view: dated(
                aggregate.aggregate(snapshot, view, query, self._store.sealer_in(snapshot)),
                self._statuses,
                lambda: view.stream(query.stream, query.connection_id),
            ),
            lambda view, _: [
                RecordRef(stream.name, "", stream.connection_id)
                for stream in view.stream(query.stream, query.connection_id)
            ],
        )

    def search(self, query: ports.SearchQuery) -> Answer[SearchPage]:
        def page(snapshot: Snapshot, view: View) -> SearchPage:
            self._store.reader.require_index(snapshot)
            sealer, encoder = self._store.sealer_in(snapshot), self._store.encoder
            ask = by_meaning.search if query.mode == "semantic" else pages.search
            hits = ask(snapshot, view, query, sealer, encoder)
            codes = {warning["code"] for warning in hits.warnings}
            self._is_settling |= MeaningUnavailable.default_code in codes
            return dated(hits, self._statuses, lambda: searched(view, query))

        return self._answer(page, lambda view, page: [hit.ref for hit in page.hits])

    def field_window(
        self, ref: RecordRef, field_path: str, window: ports.WindowRequest
    ) -> Answer[FieldRead]:
        def read_window(snapshot: Snapshot, view: View) -> FieldRead:
            if window.query is not None:
                self._store.reader.require_index(snapshot)
            return fields.read_window(snapshot, view, ref, field_path, window)

        return self._answer(read_window, lambda view, read: [read.ref])

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> ports.Blob:
        view = self.read(lambda snapshot, view: view)
        return blobs.open_blob(self._store.reader, view, blob_id, connection_id)

    def read(self, answer: Callable[[Snapshot, View], T]) -> T:
        """The result of reading one snapshot, or a second one if the store changed meanwhile."""
        with suppress(Moved):
            return self._read_once(answer)
        self._store.forget_view(self._key)
        self._read.clear()
        return self._read_once(answer)

    def _read_once(self, answer: Callable[[Snapshot, View], T]) -> T:
        now = self._store.activity.now()
        with self._store.reader.snapshot() as snapshot:
            view = self.view(snapshot, now)
            self._statuses = self._store.source_states.statuses(now, view.grant.connection_ids)
            return answer(snapshot, view)

    def _answer(
        self,
        answer: Callable[[Snapshot, View], T],
        records: Callable[[View, T], Iterable[RecordRef]] = lambda view, value: (),
    ) -> Answer[T]:
        """An answer from one snapshot; `records` returns its records, for the owner's counts."""

        def noted(snapshot: Snapshot, view: View) -> T:
            value = answer(snapshot, view)
            view.note_use(records(view, value))
            return value

        return Answer(self.read(noted))


def _records(records: Iterable[Record]) -> list[RecordRef]:
    """The records and their related records."""
    related = (
        related_record
        for record in records
        for relation in record.expanded.values()
        for related_record in relation.records
    )
    return [*(record.ref for record in records), *(child.ref for child in related)]
