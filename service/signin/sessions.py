"""The owner's browser sessions: cookies, and forms that only the same session can send."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flask import Response, request

from evidence import request_log
from evidence.errors import Forbidden
from service.access import tokens
from service.access.guard import check_form
from service.access.owner import SESSION_SECONDS, Owner, Passkeys, limit
from service.access.rates import client

FORM_SECONDS: Final = 600
_FORM, _PASSKEY = "form", "passkey"
#: The key of addresses that many clients can share; these share one sign-in limit.
_SHARED: Final = "shared"


@dataclass(frozen=True)
class Sessions:
    """The sessions of one server at the URL `base`. `proxied` is true if a trusted proxy sends
    client addresses."""

    owner: Owner
    base: str
    proxied: bool

    @property
    def _cookie(self) -> str:
        return "__Host-rung" if self._secure else "rung_owner"

    @property
    def _visit_cookie(self) -> str:
        return f"{self._cookie}_visit"

    @property
    def _secure(self) -> bool:
        return self.base.startswith("https:")

    def current(self) -> str | None:
        """Returns the session of this request; None if the owner is not signed in."""
        session = request.cookies.get(self._cookie)
        return session if self.owner.is_signed_in(session) else None

    def sign_in(self, secret: str, response: Response) -> Response:
        """Starts a session with a code or the passphrase, and ends the one before.

        Raises the errors of `Owner.sign_in`.
        """
        return self._started(self.owner.sign_in(secret, self._counted), response)

    def sign_in_with_passkey(self, response: Response) -> Response:
        """Starts a session with the answer of a passkey to the sent form, and ends the one before.

        Raises `Forbidden` for a form of another browser, and the errors of `Passkeys.sign_in`.
        """
        form = request.form
        self.check_form(self._visit, _PASSKEY)
        session = self.passkeys.sign_in(form["form"], form["credential"], self._counted)
        return self._started(session, response)

    @property
    def _counted(self) -> str:
        """Whose attempts to sign in are counted together."""
        return self.address() or _SHARED

    def _started(self, session: str, response: Response) -> Response:
        self.owner.sign_out(request.cookies.get(self._cookie, ""))
        self._set(self._cookie, response, session, SESSION_SECONDS)
        return response

    @cached_property
    def passkeys(self) -> Passkeys:
        """The passkeys of the owner."""
        return Passkeys(self.owner, self.base)

    @property
    def _visit(self) -> str:
        """What a browser that is not signed in is known by; empty for a new one."""
        return request.cookies.get(self._visit_cookie, "")

    def visited(self, page: Callable[[str], Response]) -> Response:
        """Returns a page with a form that signs in this browser with a passkey, from its token."""
        visit = self._visit or tokens.new("")
        response = page(self.form(visit, _PASSKEY))
        self._set(self._visit_cookie, response, visit, FORM_SECONDS)
        return response

    def sign_out(self, session: str, response: Response) -> Response:
        """Ends a session."""
        self.owner.sign_out(session)
        self._set(self._cookie, response, "", 0)
        return response

    def _set(self, name: str, response: Response, value: str, seconds: int) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            secure=self._secure,
            httponly=True,
            samesite="Lax",
        )

    def form(self, session: str, purpose: str) -> str:
        """Returns a token for one form of a session. It is valid once, for ten minutes."""
        token = tokens.new("")
        with self.owner.entries.changing() as kept:
            kept.put(_FORM, token, {"for": _of(session, purpose)}, seconds=FORM_SECONDS)
        return token

    def check_form(self, session: str, purpose: str) -> None:
        """Raises `Forbidden` unless the form belongs to this session and was not sent before."""
        check_form(request.environ, self.base)
        with self.owner.entries.changing() as kept:
            entry = kept.use(_FORM, request.form.get("form", ""))
        if entry is None or entry.uses > 1 or entry.body["for"] != _of(session, purpose):
            raise Forbidden("This form was already sent or has expired. Open the page again.")

    def limit(self, what: str, most: int, seconds: int) -> None:
        """Counts this request; raises `RateLimited` after `most` of its address in a window."""
        address = self.address()
        if address is not None:
            with self.owner.entries.changing() as kept:
                limit(kept, what, address, most, seconds)

    def address(self) -> str | None:
        """Returns the client address; None if many clients can share it."""
        return client(request_log.current().address, private=self.proxied)


def _of(session: str, purpose: str) -> str:
    return tokens.hashed(f"{session}\n{purpose}").hex()
