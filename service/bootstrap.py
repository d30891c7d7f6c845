"""Settings to services: the only place that names concrete upstreams."""

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from secrets import token_bytes
from threading import Event
from typing import TypeVar

from evidence import account
from evidence.errors import EvidenceError, Unauthenticated
from evidence.limits import BUDGETS
from evidence.work import Deadline, Done, Each, Outcome, serial
from renderers.pool import WorkerPool
from service.operations.base import PaperSession, Session
from service.rates import Rates
from service.settings import SETTINGS, Settings, SettingsError
from service.upstreams import download, keys, outbound
from service.upstreams.authority import Authority
from service.upstreams.breaker import Bulkhead
from service.upstreams.download import Parcel
from service.upstreams.origin import Origin
from service.upstreams.papers.snapshot_library import Papers
from service.upstreams.remote_authority import Introspection, RemoteAuthority
from service.upstreams.store import Store, tokens

A = TypeVar("A")
T = TypeVar("T")

#: Where files are kept that are fetched at start, unless RUNG_STORE or RUNG_PAPERS_DB name a
#: place. Where it cannot be written: a folder of ours among the temporary files.
FETCHED_FOLDER = Path("var")
OWN_FOLDER = 0o700
DEFAULT_STORE: Path = next(found.default for found in SETTINGS if found.name == "store")


@dataclass(frozen=True)
class Services:
    """What the surfaces stand on: records, papers or both. Tests pass their own.

    Records are there where `authority` is, which opens them in the store, the upstream or both.
    `closing` is set once this worker is about to stop.
    """

    settings: Settings
    authority: Authority | None = None
    store: Store | None = None
    upstream: Origin | None = None
    papers: Papers | None = None
    each: Each = serial
    rates: Rates | None = None
    closing: Event = field(default_factory=Event)
    _own_secret: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    def open_session(self, token: str | None) -> Session:
        """A caller of records; raises `Unauthenticated`, `Forbidden`, and what an upstream says.

        Raises `RateLimited` for who asks too often, as `open_papers` does.
        """
        authority = self.authority
        assert authority is not None, "the records surface is mounted over some records"
        server = self._admitted(token, lambda: authority.open(token or ""))
        return Session(server, self.settings.public_url or "", self.fence_key, self.each)

    def open_papers(self, token: str | None) -> PaperSession:
        """A caller of papers; raises `Unauthenticated` where tokens close the library."""
        papers = self.papers
        assert papers is not None, "the papers surface is mounted over a snapshot"
        self._admitted(token, lambda: self._check_reader(token))
        return PaperSession(papers.open(), self.settings.public_url or "", self.each)

    def _admitted(self, token: str | None, open: Callable[[], T]) -> T:
        return open() if self.rates is None else self.rates.opened(token, open)

    def _check_reader(self, token: str | None) -> None:
        known = self.settings.papers_tokens
        if known and not any(compare_digest(each, token or "") for each in known):
            raise Unauthenticated(
                "This token does not open the papers.",
                hint="Send one of the library's tokens as `Authorization: Bearer <token>`.",
            )

    @property
    def fence_key(self) -> bytes:
        """What fences of record text are made with: the same in all workers."""
        if self.store is not None and (self.upstream is None or self.store.reader.path.exists()):
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
    if upstream or settings.papers_assets:
        outbound.prepare()
    no_store = settings.store == DEFAULT_STORE and not settings.store.exists()
    store = _fetched_store(settings)
    if store is None and not (no_store and (papers or upstream)):
        store = Store(settings.store, settings.secret_key)
    rendering = noted(WorkerPool(os.cpu_count() or 1, "render").map)
    authority = _authority(settings, store, upstream) if store or upstream else None
    rates = Rates(settings)
    return Services(settings, authority, store, upstream, papers, rendering, rates)


def noted(each: Each) -> Each:
    """The same, but the account of the request says so where something was not ready in time."""

    def map(fn: Callable[[A], T], items: Sequence[A], deadline: Deadline, /) -> list[Outcome[T]]:
        outcomes = each(fn, items, deadline)
        if not all(isinstance(outcome, Done) for outcome in outcomes):
            account.current().cut = True
        return outcomes

    return map


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
    folder = settings.papers_db.parent if settings.papers_db else _folder("papers")
    return _fetched(download.SNAPSHOT, settings.papers_url, settings.papers_sha256, folder)


def _fetched_store(settings: Settings) -> Store | None:
    """The store that an address is given for, fetched and looked into; nothing writes to it."""
    if settings.store_url is None:
        return None
    named = settings.store != DEFAULT_STORE
    folder = settings.store.parent if named else _folder("store")
    path = _fetched(download.STORE, settings.store_url, settings.store_sha256, folder)
    store = Store(path, settings.secret_key, fixed=True)
    try:
        store.ready()
    except EvidenceError as error:
        raise SettingsError(
            f"RUNG_STORE_URL: what it gives cannot be served. {error.message}"
        ) from error
    finally:
        store.reader.close()  # connections must not cross a fork
    return store


def _fetched(parcel: Parcel, url: str, sha256: str | None, folder: Path) -> Path:
    try:
        return download.fetch(parcel, url, sha256 or "", folder)
    except EvidenceError as error:
        advice = f" {error.hint}" if error.hint else ""
        raise SettingsError(f"{parcel.variable}: {error.message}{advice}") from error


def _folder(name: str) -> Path:
    """Where to keep what is fetched: under var/, or where that cannot be, in a temporary place.

    Others may write among the temporary files: a folder there must be ours alone.
    """
    folder = FETCHED_FOLDER / name
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    try:
        own = Path(tempfile.gettempdir()) / f"rung-{os.geteuid()}"
        with suppress(FileExistsError):
            own.mkdir(OWN_FOLDER)
        found = own.lstat()
    except OSError as error:
        raise SettingsError(
            "There is no place for what is fetched: neither var/ nor a temporary folder can be "
            "written. Set TMPDIR to a folder that can."
        ) from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != OWN_FOLDER:
        raise SettingsError(
            f"{own} is not a folder of this user alone. Remove it, or set TMPDIR to another folder."
        )
    return own / name
