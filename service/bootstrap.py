"""Settings to services: the only place that names concrete upstreams."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from hmac import compare_digest
from pathlib import Path
from secrets import token_bytes

from evidence.errors import EvidenceError, Unauthenticated
from evidence.limits import BUDGETS
from evidence.work import Each, serial
from renderers.pool import WorkerPool
from service.operations.base import PaperSession, Session
from service.settings import SETTINGS, Settings, SettingsError
from service.upstreams import keys
from service.upstreams.authority import Authority
from service.upstreams.breaker import Bulkhead
from service.upstreams.origin import Origin
from service.upstreams.papers import download
from service.upstreams.papers.snapshot_library import Papers
from service.upstreams.remote_authority import Introspection, RemoteAuthority
from service.upstreams.store import Store, tokens

#: Where a snapshot is kept that is fetched at start, unless RUNG_PAPERS_DB names a place.
PAPERS_FOLDER = Path("var/papers")
DEFAULT_STORE: Path = next(found.default for found in SETTINGS if found.name == "store")


@dataclass(frozen=True)
class Services:
    """What the surfaces stand on: records, papers or both. Tests pass their own.

    Records are there where `authority` is, which opens them in the store, the upstream or both.
    """

    settings: Settings
    authority: Authority | None = None
    store: Store | None = None
    upstream: Origin | None = None
    papers: Papers | None = None
    each: Each = serial
    _own_secret: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    def open_session(self, token: str | None) -> Session:
        """A caller of records; raises `Unauthenticated`, `Forbidden`, and what an upstream says."""
        assert self.authority is not None, "the records surface is mounted over some records"
        server = self.authority.open(token or "")
        return Session(server, self.settings.public_url or "", self.fence_key, self.each)

    def open_papers(self, token: str | None) -> PaperSession:
        """A caller of papers; raises `Unauthenticated` where tokens close the library."""
        assert self.papers is not None, "the papers surface is mounted over a snapshot"
        known = self.settings.papers_tokens
        if known and not any(compare_digest(each, token or "") for each in known):
            raise Unauthenticated(
                "This token does not open the papers.",
                hint="Send one of the library's tokens as `Authorization: Bearer <token>`.",
            )
        return PaperSession(self.papers.open(), self.settings.public_url or "", self.each)

    @cached_property
    def fence_key(self) -> bytes:
        """What fences of record text are made with: the same in all workers."""
        if self.store is not None and (self.upstream is None or self.settings.store.exists()):
            return self.store.fence_key
        told = self.settings.secret_key
        return keys.fence_key(told.encode() if told else self._own_secret)


def build(settings: Settings) -> Services:
    """The services of a deployment. Opens nothing yet: workers fork first.

    Data decides: papers where a snapshot is named, an upstream where its address is, and the store
    unless there is only one of those.
    """
    snapshot = _snapshot(settings)
    papers = Papers(snapshot, settings.papers_assets) if snapshot else None
    upstream = Origin(settings.upstream_url) if settings.upstream_url else None
    no_store = settings.store == DEFAULT_STORE and not settings.store.exists()
    store = None
    if not (no_store and (papers or upstream)):
        store = Store(settings.store, settings.secret_key)
    rendering = WorkerPool(os.cpu_count() or 1, "render").map
    authority = _authority(settings, store, upstream) if store or upstream else None
    return Services(settings, authority, store, upstream, papers, rendering)


def _authority(settings: Settings, store: Store | None, upstream: Origin | None) -> Authority:
    """Who may ask for records. All that waits on other servers takes a seat at one bulkhead."""
    bulkhead = Bulkhead(settings.threads)
    remote = None
    if upstream is not None:
        remote = RemoteAuthority(
            upstream,
            _introspection(settings),
            settings.audience,
            bulkhead,
            reserved=tokens.PREFIX if store else None,
        )
    each = WorkerPool(BUDGETS.fan_out_threads, "fan-out").map
    return Authority(store, remote, bulkhead, each)


def _introspection(settings: Settings) -> Introspection | None:
    if settings.introspection_url is None:
        return None
    return Introspection(
        settings.introspection_url,
        settings.introspection_client_id or "",
        settings.introspection_client_secret or "",
    )


def _snapshot(settings: Settings) -> Path | None:
    """The snapshot to serve, fetched first where an address is given."""
    if settings.papers_url is None:
        return settings.papers_db
    folder = settings.papers_db.parent if settings.papers_db else PAPERS_FOLDER
    try:
        return download.fetch(settings.papers_url, settings.papers_sha256 or "", folder)
    except EvidenceError as error:
        advice = f" {error.hint}" if error.hint else ""
        raise SettingsError(f"RUNG_PAPERS_URL: {error.message}{advice}") from error
