"""Sign-in codes, each exchanged once for tokens, which are rotated and revoked together.

Each belongs to one grant, which decides what it reads and for how long. Tokens are opaque.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Final

from evidence.errors import UNKNOWN_TOKEN, Unauthenticated, Unavailable
from service.access import tokens
from service.access.entries import FOREVER, Body, Entries, Entry, Kept

CODE_SECONDS: Final = 60
ACCESS_SECONDS: Final = 3_600
REFRESH_SECONDS: Final = 30 * 86_400
#: A used refresh token works for this long, because clients send requests in parallel.
GRACE_SECONDS: Final = 120
#: The most refreshes of a grant, and the window in seconds.
REFRESHES: Final = (10, 60)
#: Used refresh tokens of a grant whose reuse is noticed; older ones are unknown.
USED_MOST: Final = 100
_CODE, _ACCESS, _REFRESH, _CONSENT = "code", "access", "refresh", "consent"
_MAPPED: Final = "mapped"


class Signins:
    """The codes and tokens of one store. Safe to share between threads."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def grant_of(self, access_token: str, path: str | None = None) -> str | None:
        """The id of the grant that an access token reads; None for an unknown or expired one.

        Raises `Unauthenticated` if the token is not for the surface at a path.
        """
        with self.entries.reading() as transaction:
            entry = transaction.get(_ACCESS, access_token)
        if entry and path and path not in entry.body["paths"]:
            raise Unauthenticated(
                f"This token is not valid for {path}. Sign in again, and request access to {path}.",
                code=UNKNOWN_TOKEN,
            )
        return entry.owner if entry else None

    def map(self, issuer: str, subject: str, grant_id: str | None) -> None:
        """Lets a subject of another issuer read a grant; None removes the mapping."""
        key, body = _subject(issuer, subject), {"issuer": issuer.rstrip("/"), "subject": subject}
        with self.entries.changing() as transaction:
            transaction.remove(_MAPPED, key)
            if grant_id:
                transaction.put(_MAPPED, key, body, seconds=FOREVER, owner=grant_id)

    def mapped(self, issuer: str, subject: str) -> str | None:
        """The id of the grant that is mapped to a subject of an issuer, if any."""
        with self.entries.reading() as transaction:
            entry = transaction.get(_MAPPED, _subject(issuer, subject))
        return entry.owner if entry else None

    def mapped_issuers(self) -> set[str]:
        """The issuers that a grant is mapped to."""
        with self.entries.reading() as transaction:
            owned = transaction.owned(_MAPPED).values()
        return {entry.body["issuer"] for entries in owned for entry in entries}

    def consented(self, grant_id: str, client: Body, code: Body) -> str:
        """Stores the client of a new grant; returns its authorization code."""
        text = tokens.new(tokens.CODE_PREFIX)
        with self.entries.changing() as transaction:
            transaction.put(_CONSENT, grant_id, client, seconds=FOREVER, owner=grant_id)
            transaction.put(_CODE, text, code, seconds=CODE_SECONDS, owner=grant_id)
        return text

    def clients(self) -> dict[str, Body]:
        """The client of each grant that sign-in created, by grant id."""
        with self.entries.reading() as transaction:
            return {owner: rows[0].body for owner, rows in transaction.owned(_CONSENT).items()}

    def check_code(self, text: str) -> Entry | None:
        """Returns an authorization code. For a used one, revokes its tokens and returns None."""
        with self.entries.reading() as transaction:
            entry = transaction.get(_CODE, text)
        if entry and entry.uses:
            with self.entries.changing() as transaction:
                _end(transaction, entry.owner)
            return None
        return entry

    def refresh_token(self, text: str) -> Entry | None:
        """A refresh token, used or not."""
        with self.entries.reading() as transaction:
            return transaction.get(_REFRESH, text)

    def exchange(self, code: str, body: Body, ends: datetime | None) -> Body:
        """Returns new tokens for a code. For a used code, revokes its tokens and returns none.

        `body` is stored with the tokens, `ends` is the end of the grant.
        """
        with self.entries.changing() as transaction:
            entry = transaction.use(_CODE, code)
            if entry is None or entry.uses > 1:
                _end(transaction, entry.owner if entry else "")
                return {}
            return _issue(transaction, entry.owner, body, ends)

    def rotate(self, refresh: str, body: Body, ends: datetime | None) -> Body:
        """Returns new tokens for a refresh token. If it was used too long ago, revokes all.

        Raises `RateLimited` after too many refreshes of the grant.
        """
        with self.entries.changing() as transaction:
            if entry := transaction.get(_REFRESH, refresh):
                _lock(transaction, entry.owner)
            entry = transaction.use(_REFRESH, refresh)
            if entry is None or transaction.now - entry.used_at > GRACE_SECONDS:
                _end(transaction, entry.owner if entry else "")
                return {}
            transaction.limit("refresh", entry.owner, *REFRESHES)
            transaction.prune(_REFRESH, entry.owner, USED_MOST)
            return _issue(transaction, entry.owner, body, ends)

    def revoke(self, token: str, client_id: str) -> None:
        """Revokes all tokens of the grant of a token, if the token belongs to this client."""
        with self.entries.changing() as transaction:
            entry = transaction.get(_ACCESS, token) or transaction.get(_REFRESH, token)
            if entry and entry.body["client_id"] == client_id:
                _end(transaction, entry.owner)

    def forget(self, grant_ids: Iterable[str]) -> None:
        """Deletes the codes and tokens of revoked grants, which are refused in any case."""
        with suppress(Unavailable), self.entries.changing() as transaction:
            for grant_id in grant_ids:
                _end(transaction, grant_id)


def _subject(issuer: str, subject: str) -> str:
    return f"{issuer.rstrip('/')}\n{subject}"


def _issue(transaction: Kept, grant_id: str, body: Body, ends: datetime | None) -> Body:
    """Creates and stores a pair of tokens."""
    remaining = FOREVER if ends is None else int(ends.timestamp()) - transaction.now
    seconds = min(ACCESS_SECONDS, remaining)
    access, refresh = tokens.new(tokens.ACCESS_PREFIX), tokens.new(tokens.REFRESH_PREFIX)
    transaction.put(_ACCESS, access, body, seconds=seconds, owner=grant_id)
    transaction.put(
        _REFRESH, refresh, body, seconds=min(REFRESH_SECONDS, remaining), owner=grant_id
    )
    return {
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": seconds,
        "refresh_token": refresh,
        "scope": body["scope"],
    }


def _lock(transaction: Kept, grant_id: str) -> None:
    """Locks the consent of a grant in PostgreSQL, so that its tokens change one at a time."""
    transaction.use(_CONSENT, grant_id)


def _end(transaction: Kept, grant_id: str) -> None:
    _lock(transaction, grant_id)
    for kind in (_CODE, _ACCESS, _REFRESH):
        transaction.end(kind, grant_id)
