"""The owner's sign-in and browser sessions.

The owner signs in with a code, which works once within ten minutes, with a passphrase, or with a
passkey (WebAuthn). `rung owner` creates the first two. A session is not valid as a bearer token.
What enlarges access takes such a proof again: it is given in the transaction that it allows.

The sidecar has the public keys of passkeys. The challenge is the token of a form: random, valid
once, for ten minutes and one browser. Callers of this module have checked the form. fido2 is
imported when a passkey is used.
"""

import hashlib
import hmac
import ipaddress
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_bytes, token_hex
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from evidence.cached import cached_property
from evidence.errors import Forbidden, InvalidRequest, Unauthenticated
from evidence.work import parse_json
from service import keys
from service.access import tokens
from service.access.entries import FOREVER, Entries, Kept

if TYPE_CHECKING:
    from fido2.server import Fido2Server

T = TypeVar("T")

LINK_SECONDS: Final = 600
SESSION_SECONDS: Final = 12 * 3_600
PASSPHRASE_CHARS: Final = 12
#: The most passphrases that all callers together may try, and the window in seconds. Codes and
#: passkeys cannot be guessed and are not counted, so that no stranger can lock the owner out.
TRIES, TRY_SECONDS = 50, 900
_SESSION, _PASSKEY, _LINK, _PASSPHRASE = "session", "passkey", "link", "passphrase"
_SALT_BYTES, _CODE_BYTES = 16, 10
_CODE: Final = re.compile(f"[0-9a-f]{{{2 * _CODE_BYTES}}}")
#: A hash takes 32 MB and a tenth of a second.
_HASHING: Final = threading.Lock()
#: The length of the name of a passkey, and of a date.
_NAME_CHARS, _DATE_CHARS = 60, 10


class Owner:
    """The owner of one store, with codes, passphrase and sessions in its sidecar."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def new_code(self) -> str:
        """A code that signs in once, within ten minutes."""
        code = token_hex(_CODE_BYTES)
        with self.entries.changing() as transaction:
            transaction.put(_LINK, code, {}, seconds=LINK_SECONDS)
        return code

    def set_passphrase(self, passphrase: str) -> None:
        """Replaces the passphrase and ends all sessions."""
        if len(passphrase) < PASSPHRASE_CHARS:
            raise InvalidRequest(f"Use a passphrase of at least {PASSPHRASE_CHARS} characters.")
        if _CODE.fullmatch(_code(passphrase)):
            raise InvalidRequest("This looks like a code from Rung. Choose another passphrase.")
        salt = token_bytes(_SALT_BYTES)
        body = {"salt": salt.hex(), "hash": _scrypt(passphrase, salt).hex()}
        with self.entries.changing() as transaction:
            transaction.put(_PASSPHRASE, "", body, seconds=FOREVER)
            for passkey in ("", *transaction.owned(_PASSKEY)):
                transaction.end(_SESSION, passkey)

    def sign_in(self, secret: str, path: str) -> str:
        """A new session below a path for a code or the passphrase; raises as `proven` does."""
        session = _new_session(path)
        with self.proven(secret) as transaction:
            transaction.put(_SESSION, session, {}, seconds=SESSION_SECONDS)
        return session

    @contextmanager
    def proven(self, secret: str) -> Iterator[Kept]:
        """A transaction that begins once a code, which it uses up, or the passphrase is valid.

        Raises `Unauthenticated`, and `RateLimited` after too many passphrases. Text in the form of
        a code is looked up and never hashed or counted.
        """
        if _CODE.fullmatch(_code(secret)):
            with self.entries.changing() as transaction:
                link = transaction.use(_LINK, _code(secret))
                if link is None or link.uses > 1:
                    raise _invalid()
                yield transaction
            return
        checked = self._checked_passphrase(secret)
        with self.entries.changing() as transaction:
            now = transaction.use(_PASSPHRASE, "")  # in PostgreSQL, locks it until the commit
            if now is None or now.body != checked:
                raise _invalid()
            yield transaction

    def _checked_passphrase(self, passphrase: str) -> dict[str, str]:
        """Returns the salt and hash that match a passphrase; raises as `proven` does."""
        with self.entries.changing() as transaction:
            instead = " You can sign in now with a code (rung owner link) or a passkey."
            transaction.limit("passphrase", "", TRIES, TRY_SECONDS, instead)
            entry = transaction.get(_PASSPHRASE, "")
        if entry is None:
            raise _invalid()
        body: dict[str, str] = entry.body
        hashed = _scrypt(passphrase, bytes.fromhex(body["salt"])).hex()
        if not hmac.compare_digest(hashed, body["hash"]):
            raise _invalid()
        return body

    def is_signed_in(self, session: str | None) -> bool:
        """Whether a session is valid; it then lasts another twelve hours."""
        if not session:
            return False
        with self.entries.changing() as transaction:
            return transaction.extend(_SESSION, session, seconds=SESSION_SECONDS)

    def sign_out(self, session: str) -> None:
        """Ends a session."""
        with self.entries.changing() as transaction:
            transaction.remove(_SESSION, session)


def _new_session(path: str) -> str:
    return f"{path}/{tokens.new('')}"


def _code(secret: str) -> str:
    """What was entered, in the spelling of codes."""
    return secret.strip().lower()


def _invalid() -> Unauthenticated:
    return Unauthenticated(
        "This code or passphrase is not valid. Each code works once and expires after ten minutes.",
        hint="Create a new code: rung owner link.",
    )


def _scrypt(passphrase: str, salt: bytes) -> bytes:
    text = passphrase.encode("utf-8", "surrogateescape")
    with _HASHING:
        return hashlib.scrypt(text, salt=salt, n=1 << 15, r=8, p=1, maxmem=1 << 26)


@dataclass(frozen=True)
class Passkeys:
    """The passkeys of one owner for the server at the URL `base`."""

    owner: Owner
    base: str

    @cached_property
    def host(self) -> str | None:
        """The host name that passkeys belong to; None if the server has only an IP address."""
        name = urlsplit(self.base).hostname or ""
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name
        return None

    @cached_property
    def _server(self) -> "Fido2Server":
        from fido2.server import Fido2Server
        from fido2.webauthn import PublicKeyCredentialRpEntity

        rp = PublicKeyCredentialRpEntity(id=self._host(), name="Rung")
        return Fido2Server(rp, verify_origin=self.base.__eq__)

    def _host(self) -> str:
        if self.host is None:
            raise Forbidden("Passkeys require a server with a host name.")
        return self.host

    def listed(self) -> dict[str, dict[str, Any]]:
        """The passkeys by their ids: `name`, and the dates `added` and `used` (may be None)."""
        with self.owner.entries.reading() as transaction:
            return {key: entry.body for key, (entry, *_) in transaction.owned(_PASSKEY).items()}

    def creation(self, challenge: str) -> dict[str, Any]:
        """What a browser needs to create a passkey, as JSON (`PublicKeyCredentialCreationOptions`).

        An authenticator that already has one does not create a second one.
        """
        return dict(self._creating(challenge, self.listed().values())[0].public_key)

    def _creating(self, challenge: str, existing: Iterable[dict[str, Any]] = ()) -> Any:
        from fido2.webauthn import (
            AttestedCredentialData,
            PublicKeyCredentialUserEntity,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        user = PublicKeyCredentialUserEntity(
            id=keys.hashed(self.base), name="owner", display_name=f"Owner of {self.host}"
        )
        return self._server.register_begin(
            user,
            [AttestedCredentialData(_key(body)) for body in existing],
            ResidentKeyRequirement.REQUIRED,
            UserVerificationRequirement.REQUIRED,
            challenge=challenge.encode(),
        )

    def add(self, transaction: Kept, challenge: str, answer: str, name: str) -> None:
        """Adds the passkey that a browser created; raises `InvalidRequest` if it cannot be used."""
        _, state = self._creating(challenge)
        try:
            data = _read(answer, lambda response: self._server.register_complete(state, response))
        except Unauthenticated as error:
            raise InvalidRequest("The browser did not create a usable passkey.") from error
        created = data.credential_data
        assert created is not None  # fido2 has checked it
        body = {
            "name": name.strip()[:_NAME_CHARS] or "Passkey",
            "added": tokens.iso(None)[:_DATE_CHARS],
            "used": None,
            "signs": data.counter,
            "key": bytes(created).hex(),
        }
        id = created.credential_id.hex()
        transaction.put(_PASSKEY, id, body, seconds=FOREVER, owner=id)

    def remove(self, transaction: Kept, id: str) -> None:
        """Removes a passkey and ends its sessions."""
        transaction.remove(_PASSKEY, id)
        transaction.end(_SESSION, id)

    def request(self, challenge: str) -> dict[str, Any]:
        """What a browser needs to sign in, as JSON (`PublicKeyCredentialRequestOptions`)."""
        return dict(self._requesting(challenge)[0].public_key)

    def _requesting(self, challenge: str) -> Any:
        from fido2.webauthn import UserVerificationRequirement

        return self._server.authenticate_begin(
            user_verification=UserVerificationRequirement.REQUIRED, challenge=challenge.encode()
        )

    def sign_in(self, challenge: str, answer: str, path: str) -> str:
        """A new session for the answer of a passkey to a challenge; raises as `proven` does."""
        session = _new_session(path)
        with self.proven(challenge, answer) as (transaction, id):
            transaction.put(_SESSION, session, {}, seconds=SESSION_SECONDS, owner=id)
        return session

    @contextmanager
    def proven(self, challenge: str, answer: str) -> Iterator[tuple[Kept, str]]:
        """A transaction that begins once a passkey has answered a challenge, and the passkey's id.

        Raises `Unauthenticated`.
        """
        from fido2.webauthn import AttestedCredentialData, AuthenticationResponse

        _, state = self._requesting(challenge)
        assertion: AuthenticationResponse = _read(answer, AuthenticationResponse.from_dict)
        id, signs = assertion.raw_id.hex(), assertion.response.authenticator_data.counter
        with self.owner.entries.changing() as transaction:
            entry = transaction.use(_PASSKEY, id)  # in PostgreSQL, locks it until the commit
            if entry is None:
                raise _invalid_passkey()
            stored = [AttestedCredentialData(_key(entry.body))]
            _read(answer, lambda reply: self._server.authenticate_complete(state, stored, reply))
            before = entry.body["signs"]
            if (signs or before) and signs <= before:  # someone else has a copy of the key
                raise _invalid_passkey()
            body = {**entry.body, "signs": signs, "used": tokens.iso(None)[:_DATE_CHARS]}
            transaction.put(_PASSKEY, id, body, seconds=FOREVER)
            yield transaction, id


def _key(body: dict[str, Any]) -> bytes:
    return bytes.fromhex(body["key"])


def _read(answer: str, read: Callable[[Any], T | None]) -> T:
    """Parses the answer of a browser; raises `Unauthenticated` for any error in it."""
    try:
        parsed = read(parse_json(answer.encode()))
    except Exception as error:  # each parser of fido2 raises its own
        raise _invalid_passkey() from error
    if parsed is None:
        raise _invalid_passkey()
    return parsed


def _invalid_passkey() -> Unauthenticated:
    return Unauthenticated(
        "This passkey is not valid.", hint="Use another passkey, or create a code: rung owner link."
    )
