"""The owner's passkeys (WebAuthn): public keys in the sidecar, and sign-in with them.

The challenge is the token of a form: random, valid once, for ten minutes and one browser. Whoever
calls this module has checked the form. fido2 is imported when a passkey is used.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from evidence import json_text
from evidence.errors import Forbidden, InvalidRequest, Unauthenticated
from service.access import tokens
from service.access.entries import FOREVER
from service.access.owner import PASSKEY, SESSION, SESSION_SECONDS, Owner

if TYPE_CHECKING:
    from fido2.server import Fido2Server

NAME_CHARS: Final = 60
_DATE_CHARS: Final = 10
T = TypeVar("T")


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
        with self.owner.entries.reading() as kept:
            return {key: entry.body for key, (entry, *_) in kept.owned(PASSKEY).items()}

    def creation(self, challenge: str) -> dict[str, Any]:
        """What a browser needs to create a passkey, as JSON (`PublicKeyCredentialCreationOptions`).

        An authenticator that has one already creates no second one.
        """
        return dict(self._creating(challenge)[0].public_key)

    def _creating(self, challenge: str) -> Any:
        from fido2.webauthn import (
            AttestedCredentialData,
            PublicKeyCredentialUserEntity,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        user = PublicKeyCredentialUserEntity(
            id=tokens.hashed(self.base), name="owner", display_name=f"Owner of {self.host}"
        )
        return self._server.register_begin(
            user,
            [AttestedCredentialData(_key(body)) for body in self.listed().values()],
            ResidentKeyRequirement.REQUIRED,
            UserVerificationRequirement.REQUIRED,
            challenge=challenge.encode(),
        )

    def add(self, challenge: str, answer: str, name: str) -> None:
        """Adds the passkey that a browser created; raises `InvalidRequest` if it cannot be used."""
        _, state = self._creating(challenge)
        try:
            data = _read(answer, lambda found: self._server.register_complete(state, found))
        except Unauthenticated as error:
            raise InvalidRequest("The browser created no passkey that can be used.") from error
        created = data.credential_data
        assert created is not None  # fido2 has checked it
        body = {
            "name": name.strip()[:NAME_CHARS] or "Passkey",
            "added": tokens.iso(None)[:_DATE_CHARS],
            "used": None,
            "signs": data.counter,
            "key": bytes(created).hex(),
        }
        id = created.credential_id.hex()
        with self.owner.entries.changing() as kept:
            kept.put(PASSKEY, id, body, seconds=FOREVER, owner=id)

    def remove(self, id: str) -> None:
        """Removes a passkey and ends its sessions."""
        with self.owner.entries.changing() as kept:
            kept.remove(PASSKEY, id)
            kept.end(SESSION, id)

    def request(self, challenge: str) -> dict[str, Any]:
        """What a browser needs to sign in, as JSON (`PublicKeyCredentialRequestOptions`)."""
        return dict(self._requesting(challenge)[0].public_key)

    def _requesting(self, challenge: str) -> Any:
        from fido2.webauthn import UserVerificationRequirement

        return self._server.authenticate_begin(
            user_verification=UserVerificationRequirement.REQUIRED, challenge=challenge.encode()
        )

    def sign_in(self, challenge: str, answer: str, address: str) -> str:
        """A new session for the answer of a passkey to a challenge.

        Raises `Unauthenticated`, and `RateLimited` after too many attempts from an address.
        """
        from fido2.webauthn import AttestedCredentialData, AuthenticationResponse

        self.owner.attempt(address)
        _, state = self._requesting(challenge)
        given: AuthenticationResponse = _read(answer, AuthenticationResponse.from_dict)
        id, signs = given.raw_id.hex(), given.response.authenticator_data.counter
        session = tokens.new("")
        with self.owner.entries.changing() as kept:
            entry = kept.use(PASSKEY, id)  # in PostgreSQL, locks it until the commit
            if entry is None:
                raise _invalid()
            known = [AttestedCredentialData(_key(entry.body))]
            _read(answer, lambda found: self._server.authenticate_complete(state, known, found))
            before = entry.body["signs"]
            if (signs or before) and signs <= before:  # somebody else has a copy of the key
                raise _invalid()
            body = {**entry.body, "signs": signs, "used": tokens.iso(None)[:_DATE_CHARS]}
            kept.put(PASSKEY, id, body, seconds=FOREVER)
            kept.put(SESSION, session, {}, seconds=SESSION_SECONDS, owner=id)
        return session


def _key(body: dict[str, Any]) -> bytes:
    return bytes.fromhex(body["key"])


def _read(answer: str, read: Callable[[Any], T | None]) -> T:
    """Reads the answer of a browser; whatever is wrong with it, raises `Unauthenticated`."""
    try:
        found = read(json_text.parse(answer.encode()))
    except Exception as error:  # each parser of fido2 has its own
        raise _invalid() from error
    if found is None:
        raise _invalid()
    return found


def _invalid() -> Unauthenticated:
    return Unauthenticated(
        "This passkey is not valid here.", hint="Use another one, or a new code: rung owner link."
    )
