"""Resolves a bearer token to a grant, a package of grants, or an upstream grant."""

from functools import partial
from typing import TYPE_CHECKING

from evidence.limits import BUDGETS
from evidence.work import Deadline, Each
from service.sources.remote.origin import Bulkhead, Origin, Permit
from service.sources.remote.server import HttpResourceServer
from service.sources.package import Child, PackageResourceServer
from service.ports import ResourceServer
from service.sources.remote.remote_authority import RemoteAuthority
from service.records.store import Store
from service.access import grants
from service.access.registry import Grant, Member, Package
from service.access.signins import Signins
from service.access.tokens import ACCESS_PREFIX, PREFIX

if TYPE_CHECKING:
    from service.issuers import Issuers


class Authority:
    """Opens tokens. Made before workers fork, shared by all threads of one.

    With a store, tokens spelled like its own are looked up there and go nowhere else; all
    others go to the upstream, if any. `each` waits for the members of a package. `signins` are
    the tokens that sign-in issued for grants of the store, `issuers` those of other servers.
    """

    def __init__(
        self,
        store: Store | None,
        upstream: RemoteAuthority | None,
        bulkhead: Bulkhead,
        each: Each,
        signins: Signins | None = None,
        issuers: "Issuers | None" = None,
    ) -> None:
        self._store, self._upstream = store, upstream
        self._signins, self._issuers = signins, issuers
        self._bulkhead, self._each = bulkhead, each
        self._origins: dict[str, Origin] = {}

    def open(self, token: str, path: str | None = None) -> ResourceServer:
        """The resource server for one request to the surface at a path.

        Raises `Forbidden`, and `Unauthenticated`, as for a token that is for others.
        """
        deadline = Deadline.after(BUDGETS.upstream_seconds)
        store, upstream = self._store, self._upstream
        if upstream is not None and (store is None or not token.startswith(PREFIX)):
            return upstream.open(token, deadline)
        assert store is not None, "there are records somewhere"
        if grant_id := self._signed_in(token, path):
            return store.open_granted(grant_id)
        package = store.package(token)
        return self._open_package(store, package, deadline) if package else store.open(token)

    def grant(self, token: str, path: str | None = None) -> Grant | None:
        """The grant of a token of the store, None if it is not one; raises as `open` does."""
        if self._store is None:
            return None
        grant_id = self._signed_in(token, path)
        if not (grant_id or token.startswith(PREFIX)):
            return None
        by_id = partial(grants.active, grant_id=grant_id or "")
        return self._store.granted(by_id if grant_id else partial(grants.find, token=token))

    def _signed_in(self, token: str, path: str | None) -> str | None:
        """The id of the grant that a token of sign-in, or of another issuer, reads."""
        if self._issuers is not None and not token.startswith(PREFIX):
            return self._issuers.grant_of(token, path)
        if self._signins is None or not token.startswith(ACCESS_PREFIX):
            return None
        return self._signins.grant_of(token, path)

    def _open_package(
        self, store: Store, package: Package, deadline: Deadline
    ) -> PackageResourceServer:
        permit = Permit(self._bulkhead)

        def child(member: Member) -> Child:
            def open(deadline: Deadline) -> ResourceServer:
                if member.origin is None:
                    return store.open_member(member.grant_id)
                token = store.member_token(package, member)
                origin = self._origin(member.origin)
                return HttpResourceServer(origin, token, deadline, permit, own=False)

            return Child(member.name, member.grant_id, member.held, open)

        children = [child(member) for member in package.members]
        return PackageResourceServer(children, self._each, deadline, store.sealer)

    def _origin(self, url: str) -> Origin:
        """One origin for all requests, because its breaker counts all their outcomes."""
        return self._origins.get(url) or self._origins.setdefault(url, Origin(url))
