"""The owner's sign-in and browser sessions.

The owner signs in with a code, which works once within ten minutes, with a passphrase, or with a
passkey (`passkeys`). `rung owner` creates the first two. A session is not valid as a bearer token.
"""

import hashlib
import hmac
from secrets import token_bytes, token_hex
from typing import Final

from evidence.errors import InvalidRequest, RateLimited, Unauthenticated
from service.access import tokens
from service.access.entries import FOREVER, Entries, Kept

LINK_SECONDS: Final = 600
SESSION_SECONDS: Final = 12 * 3_600
PASSPHRASE_CHARS: Final = 12
#: Attempts to sign in within a window: per address, and with a passphrase from all addresses.
TRIES, ALL_TRIES, TRY_SECONDS = 5, 50, 900
SESSION, PASSKEY = "session", "passkey"
_LINK, _PASSPHRASE = "link", "passphrase"
_SALT_BYTES, _CODE_BYTES = 16, 10


class Owner:
    """The owner of one store, with codes, passphrase and sessions in its sidecar."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def new_code(self) -> str:
        """A code that signs in once, within ten minutes."""
        code = token_hex(_CODE_BYTES)
        with self.entries.changing() as kept:
            kept.put(_LINK, code, {}, seconds=LINK_SECONDS)
        return code

    def set_passphrase(self, passphrase: str) -> None:
        """Replaces the passphrase and ends all sessions."""
        if len(passphrase) < PASSPHRASE_CHARS:
            raise InvalidRequest(f"Use a passphrase of at least {PASSPHRASE_CHARS} characters.")
        salt = token_bytes(_SALT_BYTES)
        body = {"salt": salt.hex(), "hash": _scrypt(passphrase, salt).hex()}
        with self.entries.changing() as kept:
            kept.put(_PASSPHRASE, "", body, seconds=FOREVER)
            for passkey in ("", *kept.owned(PASSKEY)):
                kept.end(SESSION, passkey)

    def sign_in(self, secret: str, address: str) -> str:
        """A new session for a code or the passphrase.

        Raises `Unauthenticated`, and `RateLimited` after too many attempts.
        """
        self.attempt(address)
        with self.entries.changing() as kept:
            link = kept.use(_LINK, secret.strip().lower())
        checked = None if link and link.uses == 1 else self._checked_passphrase(secret)
        session = tokens.new("")
        with self.entries.changing() as kept:
            if checked is not None:
                now = kept.use(_PASSPHRASE, "")  # in PostgreSQL, locks it until the commit
                if now is None or now.body != checked:
                    raise _invalid()
            kept.put(SESSION, session, {}, seconds=SESSION_SECONDS)
        return session

    def attempt(self, address: str) -> None:
        """Counts an attempt to sign in; raises `RateLimited` after too many of an address."""
        with self.entries.changing() as kept:
            limit(kept, "sign-in", address, TRIES, TRY_SECONDS)

    def _checked_passphrase(self, passphrase: str) -> dict[str, str]:
        """Returns the salt and hash that match a passphrase; raises `Unauthenticated`."""
        with self.entries.changing() as kept:
            limit(kept, "passphrase", "", ALL_TRIES, TRY_SECONDS)
            known = kept.get(_PASSPHRASE, "")
        body = known.body if known else {"salt": "", "hash": ""}
        given = _scrypt(passphrase, bytes.fromhex(body["salt"])).hex()
        if not hmac.compare_digest(given, body["hash"]):
            raise _invalid()
        return body

    def is_signed_in(self, session: str | None) -> bool:
        """Whether a session is valid; it then lasts another twelve hours."""
        if not session:
            return False
        with self.entries.changing() as kept:
            return kept.extend(SESSION, session, seconds=SESSION_SECONDS)

    def sign_out(self, session: str) -> None:
        """Ends a session."""
        with self.entries.changing() as kept:
            kept.remove(SESSION, session)


def limit(kept: Kept, what: str, address: str, most: int, seconds: int) -> None:
    """Counts a request of an address; raises `RateLimited` after `most` in a window."""
    if kept.count(f"rate {what}", address, seconds=seconds) > most:
        wait = seconds - kept.now % seconds
        raise RateLimited(
            f"Too many attempts: the limit is {most} in {seconds // 60} minutes.",
            hint=f"Retry in {wait} seconds.",
            retry_after=wait,
        )


def _invalid() -> Unauthenticated:
    return Unauthenticated(
        "This code or passphrase is not valid. A code works once, for ten minutes.",
        hint="Create a new one: rung owner link.",
    )


def _scrypt(passphrase: str, salt: bytes) -> bytes:
    text = passphrase.encode("utf-8", "surrogateescape")
    return hashlib.scrypt(text, salt=salt, n=1 << 15, r=8, p=1, maxmem=1 << 26)
