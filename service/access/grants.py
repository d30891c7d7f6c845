"""Grants: what a token can read, fixed at creation.

    grant_id, token = create(registry, {"streams": [{"connection_id": "mail"}]}, label="laptop")
    find(registry, token).streams    # every stream and field that "mail" had at that moment

Only the SHA-256 of a token is stored. `docs/grants.md` shows the document.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from evidence.errors import UNKNOWN_TOKEN, Forbidden, NotFound, Unauthenticated
from service.access import tokens
from service.access.grant_document import StreamGrant, freeze, read
from service.access.registry import GrantRow, Registry, RegistryReader

__all__ = ["Grant", "GrantEntry", "StreamGrant", "create", "find", "list_grants", "revoke"]


@dataclass(frozen=True)
class Grant:
    """The data that one token can read."""

    grant_id: str
    label: str | None
    streams: tuple[StreamGrant, ...]
    expires_at: str | None = None

    @cached_property
    def connection_ids(self) -> set[str]:
        """The connections of the grant."""
        return {stream.connection_id for stream in self.streams}


@dataclass(frozen=True, slots=True)
class GrantEntry:
    """A grant as its owner sees it in a list; times are ISO 8601."""

    grant_id: str
    label: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    streams: tuple[StreamGrant, ...]

    def state(self, *, now: datetime | None = None) -> str:
        """`active`, `revoked` or `expired`."""
        return tokens.state(self.revoked_at, self.expires_at, now)


def create(
    registry: Registry,
    document: Any,
    *,
    label: str | None = None,
    expires_at: str | None = None,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Stores a grant and returns (grant id, token); the token cannot be shown again."""
    tokens.check_expiry(expires_at)
    grant_id, token = tokens.new_id("grt_"), tokens.new(tokens.PREFIX)
    with registry.transaction():
        frozen = freeze(registry, document)
        row = GrantRow(grant_id, label, frozen, tokens.iso(now), expires_at)
        registry.add_grant(row, tokens.hashed(token))
    return grant_id, token


def find(registry: RegistryReader, token: str, *, now: tokens.Now = None) -> Grant:
    """Return the grant of a token.

    Raises `Unauthenticated` for an unknown, revoked or expired token and `Forbidden` for the
    owner's.
    """
    if token.startswith(tokens.OWNER_PREFIX):
        raise Forbidden("Owner tokens are refused here. Create a client token: rung grant create.")
    return _active(registry.grant_of_token(tokens.hashed(token)), now)


def by_id(registry: RegistryReader, grant_id: str, *, now: tokens.Now = None) -> Grant:
    """Return the grant with this id, which is a member of a package.

    Raises `Forbidden` if it has ended: the caller's own token is still good.
    """
    try:
        return _active(registry.grant(grant_id), now)
    except Unauthenticated as error:
        raise Forbidden(error.message, code=error.code) from None


def _active(row: GrantRow | None, now: tokens.Now) -> Grant:
    if row is None:
        raise Unauthenticated(
            "This token is unknown. Ask the owner for a new one (rung grant create).",
            code=UNKNOWN_TOKEN,
        )
    tokens.check_active("grant", row.revoked_at, row.expires_at, now)
    return Grant(row.grant_id, row.label, read(row.document), row.expires_at)


def list_grants(registry: RegistryReader) -> list[GrantEntry]:
    """All grants, oldest first, without their tokens."""
    return [
        GrantEntry(
            row.grant_id,
            row.label,
            row.created_at,
            row.expires_at,
            row.revoked_at,
            read(row.document),
        )
        for row in registry.grants()
    ]


def revoke(registry: Registry, name: str, *, now: datetime | None = None) -> list[str]:
    """Ends the grant with this id, or all with this label, at once; returns their ids."""
    revoked = registry.revoke_grants(name, tokens.iso(now))
    if not revoked:
        raise NotFound(f"There is no active grant {name!r}. List them with `rung grant list`.")
    return revoked
