"""Stored packages: one token for several grants, from this store and from other servers.

    members = [overview.local_member(registry, snapshot, "laptop"), remote]
    package_id, token = create(registry, members, keys.of_tokens(secret))
    find(registry, token).members

The streams of a member are stored when the package is created, because grants do not change. Only
the SHA-256 of the package's own token is stored. The tokens of members at other servers are
encrypted, each bound to its place.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from evidence.errors import InvalidRequest, NotFound, Unavailable
from evidence.limits import BUDGETS
from evidence.text import clip
from service import keys
from service.access import tokens
from service.access.registry import Grant, Member, Package, Registry, RegistryReader
from service.keys import Sealer
from evidence.model import MemberStream


def active_grant(registry: RegistryReader, name: str) -> Grant:
    """The active grant of this store with this id or label."""
    matches = (grant for grant in registry.grants() if name in (grant.grant_id, grant.label))
    active = [grant for grant in matches if grant.state(None) == "active"]
    if not active:
        raise NotFound(f"There is no active grant {name!r}. List grants: rung grant list.")
    if len(active) > 1:
        ids = ", ".join(grant.grant_id for grant in active)
        raise InvalidRequest(f"Several grants have the label {name!r}. Use one of these: {ids}.")
    return active[0]


def name_of(streams: Sequence[MemberStream]) -> str:
    """The display name of a member: the names of its connections."""
    labels = {entry.connection_id: entry.display_name or entry.connection_id for entry in streams}
    names = ", ".join(clip(label, BUDGETS.label_chars) for label in labels.values())
    return clip(names, BUDGETS.message_chars) or "nothing"


def create(
    registry: Registry,
    members: Sequence[Member],
    sealer: Sealer,
    *,
    label: str | None = None,
    expires_at: str | None = None,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Stores a package and returns (package id, token); the token cannot be shown again."""
    tokens.check_expiry(expires_at)
    _check(members)
    package_id, token = tokens.new_id("pkg_"), tokens.new(tokens.PACKAGE_PREFIX)
    sealed = tuple(
        replace(
            member,
            token=member.token and sealer.seal(member.token, bound=_bound(package_id, member)),
        )
        for member in members
    )
    entry = Package(package_id, label, sealed, tokens.iso(now), expires_at)
    registry.add_package(entry, keys.hashed(token))
    return package_id, token


def find(registry: RegistryReader, token: str, *, now: tokens.Now = None) -> Package | None:
    """The package of a token, if any.

    Raises `Unauthenticated` for a package that has ended.
    """
    package = registry.package_of_token(keys.hashed(token))
    if package is not None:
        tokens.check_active("package", package.revoked_at, package.expires_at, now)
    return package


def unsealed(package_id: str, member: Member, sealer: Sealer) -> str:
    """The token of a member at another server; raises `Unavailable` if the key has changed."""
    try:
        return str(sealer.open(member.token or "", bound=_bound(package_id, member)))
    except InvalidRequest:
        raise Unavailable(
            "The token of this source cannot be decrypted, because RUNG_SECRET_KEY has changed "
            "since the package was created. The operator can restore the key or create the "
            "package again.",
            code="member_token_sealed",
        ) from None


def revoke(registry: Registry, name: str, *, now: datetime | None = None) -> list[str]:
    """Ends the package with this id, or all with this label, immediately; returns their ids.

    The tokens of its members at other servers are erased; its grants stay valid.
    """
    revoked = registry.revoke_packages(name, tokens.iso(now))
    if not revoked:
        raise NotFound(f"There is no active package {name!r}. List packages: rung package list.")
    return revoked


def _check(members: Sequence[Member]) -> None:
    if not members:
        raise InvalidRequest(
            "A package needs at least one grant, from this store or another server."
        )
    if len(members) > BUDGETS.package_members:
        raise InvalidRequest(
            f"A package can have at most {BUDGETS.package_members} grants, not {len(members)}. "
            "Create two packages."
        )
    places = [(member.origin, member.grant_id) for member in members]
    twice = next((pair for pair in places if places.count(pair) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"The grant {twice[1]} is listed twice. List it once.")
    origins: dict[str, str | None] = {}
    for member in members:
        for stream in member.held:
            if origins.setdefault(stream.connection_id, member.origin) != member.origin:
                raise InvalidRequest(
                    f"Two servers have a connection {stream.connection_id!r}, but connection ids "
                    "must be unique in a package. Create a package for each server."
                )


def _bound(package_id: str, member: Member) -> list[str | None]:
    """The context that an encrypted token is bound to."""
    return ["member token", package_id, member.origin, member.grant_id]
