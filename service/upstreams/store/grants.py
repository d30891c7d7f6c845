"""Grants: what a token may read, frozen when it is made.

    grant_id, token = create(db, {"streams": [{"connection_id": "mail"}]}, label="laptop")
    find(db, token).streams       # every stream and field that "mail" had at that moment

Only the SHA-256 of a token is stored. `docs/grants.md` shows the document.
"""

import hashlib
import secrets
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from evidence.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated
from service.upstreams.store.grant_document import StreamGrant, freeze, read
from service.upstreams.store.values import microseconds, moment

TOKEN_PREFIX = "rung_"
OWNER_PREFIX = "rung_owner_"
TOKEN_BYTES = 32
ID_BYTES = 8

__all__ = ["Grant", "GrantEntry", "StreamGrant", "create", "find", "list_grants", "revoke"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What one token may read."""

    grant_id: str
    label: str | None
    streams: tuple[StreamGrant, ...]
    expires_at: str | None = None


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
        if self.revoked_at:
            return "revoked"
        return "expired" if _is_past(self.expires_at, now) else "active"


def create(
    db: sqlite3.Connection,
    document: Any,
    *,
    label: str | None = None,
    expires_at: str | None = None,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Stores a grant and returns (grant id, token); the token cannot be shown again."""
    if expires_at is not None and microseconds(expires_at) is None:
        raise InvalidRequest(f"expires_at {expires_at!r} is not an ISO 8601 date-time.")
    frozen = freeze(db, document)
    grant_id = f"grt_{secrets.token_hex(ID_BYTES)}"
    token = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    db.execute(
        'INSERT INTO "grant" (grant_id, token_hash, label, document, created_at, expires_at)'
        " VALUES (?, ?, ?, ?, ?, ?)",
        (grant_id, _hash(token), label, orjson.dumps(frozen).decode(), _iso(now), expires_at),
    )
    db.commit()
    return grant_id, token


def find(db: sqlite3.Connection, token: str, *, now: datetime | None = None) -> Grant:
    """The grant a token stands for; raises Unauthenticated or Forbidden."""
    if token.startswith(OWNER_PREFIX):
        raise Forbidden("Owner tokens are refused here. Create a client token: rung grant create.")
    row = db.execute(
        'SELECT grant_id, label, document, expires_at, revoked_at FROM "grant"'
        " WHERE token_hash = ?",
        (_hash(token),),
    ).fetchone()
    if row is None:
        raise Unauthenticated("This token is not known. Ask the owner: rung grant create.")
    grant_id, label, document, expires_at, revoked_at = row
    if revoked_at:
        raise Forbidden(
            "This grant was revoked by its owner. Ask for a new one.", code="grant_revoked"
        )
    if _is_past(expires_at, now):
        raise Forbidden(
            f"This grant expired at {expires_at}. Ask for a new one.", code="grant_expired"
        )
    return Grant(grant_id, label, read(document), expires_at)


def list_grants(db: sqlite3.Connection) -> list[GrantEntry]:
    """All grants, oldest first, without their tokens."""
    rows = db.execute(
        "SELECT grant_id, label, created_at, expires_at, revoked_at, document"
        ' FROM "grant" ORDER BY id'
    )
    return [
        GrantEntry(grant_id, label, created, expires, revoked, read(document))
        for grant_id, label, created, expires, revoked, document in rows
    ]


def revoke(db: sqlite3.Connection, name: str, *, now: datetime | None = None) -> list[str]:
    """Ends the grant with this id, or all with this label, at once; returns their ids."""
    rows = db.execute(
        'UPDATE "grant" SET revoked_at = ? WHERE revoked_at IS NULL'
        " AND (grant_id = ? OR label = ?) RETURNING grant_id",
        (_iso(now), name, name),
    ).fetchall()
    db.commit()
    if not rows:
        raise NotFound(f"No active grant is named {name!r}. See them with: rung grant list.")
    return [row[0] for row in rows]


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _is_past(expires_at: str | None, now: datetime | None) -> bool:
    if expires_at is None:
        return False
    end = microseconds(expires_at)
    return end is None or end <= (microseconds(_iso(now)) or 0)


def _iso(now: datetime | None) -> str:
    return moment(microseconds((now or datetime.now(UTC)).isoformat()) or 0)
