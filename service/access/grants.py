"""Grants: what a token may read, frozen when it is made.

    grant_id, token = create(db, {"streams": [{"connection_id": "mail"}]}, label="laptop")
    find(db, token).streams       # every stream and field that "mail" had at that moment

Only the SHA-256 of a token is stored. `docs/grants.md` shows the document.
"""

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from evidence.errors import UNKNOWN_TOKEN, Forbidden, NotFound, Unauthenticated
from service.access import tokens
from service.access.grant_document import StreamGrant, freeze, read

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
        return tokens.state(self.revoked_at, self.expires_at, now)


def create(
    db: sqlite3.Connection,
    document: Any,
    *,
    label: str | None = None,
    expires_at: str | None = None,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Stores a grant and returns (grant id, token); the token cannot be shown again."""
    tokens.check_expiry(expires_at)
    frozen = freeze(db, document)
    grant_id, token = tokens.new_id("grt_"), tokens.new(tokens.PREFIX)
    db.execute(
        'INSERT INTO "grant" (grant_id, token_hash, label, document, created_at, expires_at)'
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            grant_id,
            tokens.hashed(token),
            label,
            orjson.dumps(frozen).decode(),
            tokens.iso(now),
            expires_at,
        ),
    )
    db.commit()
    return grant_id, token


def find(db: sqlite3.Connection, token: str, *, now: datetime | None = None) -> Grant:
    """Return the grant of a token.

    Raises `Unauthenticated` for an unknown, revoked or expired token and `Forbidden` for the
    owner's.
    """
    if token.startswith(tokens.OWNER_PREFIX):
        raise Forbidden("Owner tokens are refused here. Create a client token: rung grant create.")
    return _found(db, "token_hash", tokens.hashed(token), now)


def by_id(db: sqlite3.Connection, grant_id: str, *, now: datetime | None = None) -> Grant:
    """Return the grant with this id, which is a member of a package.

    Raises `Forbidden` if it has ended: the caller's own token is still good.
    """
    try:
        return _found(db, "grant_id", grant_id, now)
    except Unauthenticated as error:
        raise Forbidden(error.message, code=error.code) from None


def _found(db: sqlite3.Connection, column: str, value: Any, now: datetime | None) -> Grant:
    row = db.execute(
        f'SELECT grant_id, label, document, expires_at, revoked_at FROM "grant" WHERE {column} = ?',
        (value,),
    ).fetchone()
    if row is None:
        raise Unauthenticated(
            "This token is not known. Ask the owner: rung grant create.", code=UNKNOWN_TOKEN
        )
    grant_id, label, document, expires_at, revoked_at = row
    tokens.check_active("grant", revoked_at, expires_at, now)
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
        (tokens.iso(now), name, name),
    ).fetchall()
    db.commit()
    if not rows:
        raise NotFound(f"No active grant is named {name!r}. See them with: rung grant list.")
    return [row[0] for row in rows]
