"""Builds services from settings, and checks tokens. No other module names concrete sources.

Optional parts are imported only if the settings need them, because the command line builds services
too, for one question. Everything is loaded before workers fork.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hmac import compare_digest
from pathlib import Path
from secrets import token_bytes
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from evidence import request_log
from evidence.errors import UNKNOWN_TOKEN, Unauthenticated, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline, Each, request_deadline, serial
from renderers.pool import WorkerPool
from service.operations.base import PaperSession, Session
from service.meaning.encoder import Encoder
from service.meaning.opening import encoder_of
from service.settings import SETTINGS, Settings, SettingsError
from service import keys
from service.keys import Sealer
from service.sources.remote import outbound
from service.ports import ResourceServer
from service.sources.package import Child, PackageResourceServer
from service.sources.remote.origin import Bulkhead, Origin, Permit
from service.sources.remote.remote_authority import Introspection, RemoteAuthority
from service.sources.remote.server import HttpResourceServer
from service.access import grants, tokens
from service.access.entries import Entries
from service.access.registry import Grant, Member, Package
from service.access.signins import Signins
from service.records.store import Store

if TYPE_CHECKING:
    from service.access.issuers import Issuers
    from service.access.rates import Rates
    from service.papers.snapshot_library import Papers

T = TypeVar("T")

DEFAULT_STORE: Path = next(setting.default for setting in SETTINGS if setting.name == "store")


class Authority:
    """Checks tokens, and opens the resource servers that they may read.

    Created before workers fork, shared by all threads of a worker. With a store, tokens in its
    format are looked up there and never sent elsewhere; all others are sent to the upstream, if
    any. `map_members` waits for the members of a package. `signins` has the tokens that sign-in
    issued for grants of the store, `issuers` checks those of other servers.
    """

    def __init__(
        self,
        store: Store | None,
        upstream: RemoteAuthority | None,
        bulkhead: Bulkhead,
        map_members: Each,
        signins: Signins | None = None,
        issuers: "Issuers | None" = None,
    ) -> None:
        self._store, self._upstream = store, upstream
        self._signins, self._issuers = signins, issuers
        self._bulkhead, self._map_members = bulkhead, map_members
        self._origins: dict[str, Origin] = {}

    def open(self, token: str, path: str | None = None) -> ResourceServer:
        """The resource server for one request to the surface at a path.

        Raises `Forbidden`, and `Unauthenticated`, for example for a token of another surface.
        """
        store, upstream = self._store, self._upstream
        if upstream is not None and (store is None or not token.startswith(tokens.PREFIX)):
            return upstream.open(token, request_deadline(BUDGETS.upstream_seconds))
        assert store is not None, "there are records somewhere"
        if grant_id := self._signed_in(token, path):
            return store.open_granted(grant_id)
        package = store.package(token)
        return self._open_package(store, package) if package else store.open(token)

    def grant(self, token: str, path: str | None = None) -> Grant | None:
        """The grant of a token of the store, None for other tokens; raises as `open` does."""
        if self._store is None:
            return None
        grant_id = self._signed_in(token, path)
        if not (grant_id or token.startswith(tokens.PREFIX)):
            return None
        active = partial(grants.active, grant_id=grant_id or "")
        return self._store.granted(active if grant_id else partial(grants.find, token=token))

    def _signed_in(self, token: str, path: str | None) -> str | None:
        """The id of the grant that a token of sign-in, or of another issuer, reads."""
        if self._issuers is not None and not token.startswith(tokens.PREFIX):
            return self._issuers.grant_of(token, path)
        if self._signins is None or not token.startswith(tokens.ACCESS_PREFIX):
            return None
        return self._signins.grant_of(token, path)

    def _open_package(self, store: Store, package: Package) -> PackageResourceServer:
        remote = any(member.origin is not None for member in package.members)
        seconds = BUDGETS.upstream_seconds if remote else BUDGETS.store_seconds
        permit, deadline = Permit(self._bulkhead), request_deadline(seconds)

        def child(member: Member) -> Child:
            def open(deadline: Deadline) -> ResourceServer:
                if member.origin is None:
                    return store.open_member(member.grant_id)
                token = store.member_token(package, member)
                origin = self._origin(member.origin)
                return HttpResourceServer(origin, token, deadline, permit, own=False)

            return Child(member.name, member.grant_id, member.held, open)

        children = [child(member) for member in package.members]
        return PackageResourceServer(children, self._map_members, deadline, store.sealer)

    def _origin(self, url: str) -> Origin:
        """The one origin for all requests, because its breaker counts all outcomes."""
        return self._origins.get(url) or self._origins.setdefault(url, Origin(url))


@dataclass(frozen=True)
class Services:
    """What the surfaces use: records, papers or both.

    Tests pass their own. Records exist if `authority` is set, which opens them in the store, the
    upstream or both. `each` renders the items of heavy pages. `closing` is set once this worker is
    about to stop.
    """

    settings: Settings
    authority: Authority | None = None
    store: Store | None = None
    upstream: Origin | None = None
    papers: "Papers | None" = None
    rates: "Rates | None" = None
    signins: Signins | None = None
    each: Each = serial
    closing: Event = field(default_factory=Event)
    _own_secret: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    def open_session(self, token: str | None, path: str | None = None) -> Session:
        """A caller of records; raises `Unauthenticated`, `Forbidden`, and errors of an upstream.

        `path` is the surface that a token of sign-in must be for; None accepts all. Raises
        `RateLimited` after too many requests, as `open_papers` does.
        """
        authority = self.authority
        assert authority is not None, "the records surface needs a store or an upstream"
        server = self._admitted(token, partial(authority.open, token or "", path))
        return self._session(server)

    def open_owner(self, session: str) -> Session:
        """The signed-in owner as a caller of all records of the store."""
        assert self.store is not None, "the owner signs in to a store"
        server = self._admitted(session, self.store.open_owner)
        return self._session(server)

    def _session(self, server: ResourceServer) -> Session:
        base = self.settings.public_url or ""
        return Session(server, base, self.fence_key, self.each, address=self.settings.base)

    def open_papers(
        self, token: str | None, path: str | None = None, *, owner: str | None = None
    ) -> PaperSession:
        """A caller of papers; raises `Unauthenticated` if the library requires a token.

        `owner` is the session of a signed-in owner, who needs no token.
        """
        papers = self.papers
        assert papers is not None, "the papers surface is mounted over a snapshot"
        self._admitted(token or owner, lambda: self._check_reader(token, path, owner))
        return PaperSession(papers.open(), self.settings.public_url or "", self.each)

    def _admitted(self, token: str | None, open: Callable[[], T]) -> T:
        return open() if self.rates is None else self.rates.opened(token, open)

    def _check_reader(self, token: str | None, path: str | None, owner: str | None) -> None:
        accepted = self.settings.papers_tokens
        if owner or not accepted or any(compare_digest(entry, token or "") for entry in accepted):
            return
        grant = self.authority.grant(token or "", path) if self.authority else None
        if grant is None or not grant.papers:
            raise Unauthenticated(
                "This token does not allow access to the papers.",
                code=UNKNOWN_TOKEN,
                hint="Send a token for the papers, or a token of a grant that includes papers, in "
                "the header `Authorization: Bearer <token>`.",
            )
        request_log.current().payer = f"grant:{grant.grant_id}"

    @property
    def has_encoder(self) -> bool:
        """Whether questions to the store can be embedded."""
        return self.store is not None and self.store.encoder is not None

    @property
    def issuers(self) -> tuple[str, ...]:
        """The authorization servers whose tokens are accepted here."""
        if self.authority is None:
            return ()
        own = (self.settings.base,) if self.signins else ()
        return own + self.settings.authorization_servers

    @property
    def fence_key(self) -> bytes:
        """The key of the fences around record text, the same in all workers."""
        return keys.fence_key(self._secret)

    @property
    def sessions(self) -> Sealer:
        """Encrypts the cookies of the reading pages."""
        return Sealer(self._secret, "reading session")

    @property
    def _secret(self) -> bytes:
        if self.store is not None and (self.upstream is None or self.store.place.exists()):
            return self.store.secret()
        return (self.settings.secret_key or "").encode() or self._own_secret


def build(settings: Settings) -> Services:
    """The services of a deployment. Opens nothing yet: workers fork first.

    The settings decide: papers if a snapshot is named, an upstream if its address is, and a store
    unless one of those is set, no store is named, and the default store does not exist.
    """
    encoder = encoder_of(settings)
    papers = _papers(settings, encoder)
    upstream = Origin(settings.upstream_url) if settings.upstream_url else None
    signs_in = settings.signs_in and settings.documents != "off"
    if upstream or settings.papers_assets or signs_in or settings.authorization_servers:
        outbound.prepare()
    no_store = settings.store == DEFAULT_STORE and not settings.store.exists()
    store = None
    if settings.store_url is not None:
        from service.fetching import store as fetched_store

        store = fetched_store(settings, settings.store_url, named=settings.store != DEFAULT_STORE)
    elif not (no_store and (papers or upstream)):
        store = Store(settings.served, settings.secret_key, encoder)
    if store is not None:
        store.reader.ranks = settings.compiled == "on"
    signins = None
    if store is not None and settings.signs_in:
        signins = Signins(Entries(store.sidecar))
    authority = _authority(settings, store, upstream, signins) if store or upstream else None
    rated = ("rate_limit_token", "rate_limit_address", "rate_limit_failures", "work_seconds")
    limits, rates = [getattr(settings, name) for name in rated], None
    if any(limits) or settings.rate_limit_storage is not None:  # a shared storage is always checked
        from service.access.rates import Rates

        rates = Rates(settings)
    each = rendering_pool()
    return Services(settings, authority, store, upstream, papers, rates, signins, each)


def rendering_pool() -> Each:
    """Renders the items of heavy pages, each with a deadline; threads start when needed."""
    return WorkerPool(BUDGETS.render_threads, "render").map


def _authority(
    settings: Settings, store: Store | None, upstream: Origin | None, signins: Signins | None
) -> Authority:
    """The authority for records. All upstream requests share one bulkhead."""
    bulkhead = Bulkhead(settings.threads)
    remote = None
    if upstream is not None:
        introspection = None
        if settings.introspection_url is not None:
            introspection = Introspection(
                settings.introspection_url,
                settings.introspection_client_id or "",
                settings.introspection_client_secret or "",
            )
        reserved = tokens.PREFIX if store else None
        remote = RemoteAuthority(
            upstream, introspection, settings.audience, bulkhead, reserved=reserved
        )
    each = WorkerPool(BUDGETS.fan_out_threads, "fan-out").map
    issuers = _issuers(settings, store) if store and not upstream else None
    return Authority(store, remote, bulkhead, each, signins, issuers)


def _issuers(settings: Settings, store: Store) -> "Issuers | None":
    """Checks tokens of other authorization servers; None if no such server is set. Raises
    `SettingsError` for a server without a mapped user, whose tokens would read nothing."""
    if not settings.authorization_servers:
        return None
    signins = Signins(Entries(store.sidecar))
    try:
        mapped = signins.mapped_issuers()
    except Unavailable:
        mapped = set()
    finally:
        store.sidecar.close()  # connections must not cross a fork
    for name in settings.authorization_servers:
        if name not in mapped:
            raise SettingsError(
                f"RUNG_AUTHORIZATION_SERVERS lists {name}, but no mapping of its users was found. "
                f"Check the store, or map a user: rung grant map {name} USER GRANT."
            )
    from service.access.issuers import Issuers

    names, now = settings.authorization_servers, store.activity.now
    return Issuers(names, settings.base, signins, now, outbound.fetch_json)


def _papers(settings: Settings, encoder: Encoder | None) -> "Papers | None":
    """The library of the snapshot, which is downloaded first if a URL is set."""
    path = settings.papers_db
    if settings.papers_url is not None:
        from service import fetching

        path = fetching.snapshot(settings, settings.papers_url)
    if path is None:
        return None
    from service.papers.snapshot_library import Papers

    if encoder is None:
        return Papers(path, settings.papers_assets)
    from service.meaning.papers import PaperMeaning

    return Papers(path, settings.papers_assets, PaperMeaning(settings.store.parent, encoder).open)
