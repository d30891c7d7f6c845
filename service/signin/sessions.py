"""The owner's browser sessions: cookies, and forms that only the same session can send."""

from dataclasses import dataclass
from typing import Final

from flask import Response, request

from evidence import request_log
from evidence.errors import Forbidden
from service.access import tokens
from service.access.guard import check_form
from service.access.owner import SESSION_SECONDS, Owner, limit
from service.access.rates import client

FORM_SECONDS: Final = 600
_FORM: Final = "form"
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
        session = self.owner.sign_in(secret, self.address() or _SHARED)
        self.owner.sign_out(request.cookies.get(self._cookie, ""))
        self._set(response, session, SESSION_SECONDS)
        return response

    def sign_out(self, session: str, response: Response) -> Response:
        """Ends a session."""
        self.owner.sign_out(session)
        self._set(response, "", 0)
        return response

    def _set(self, response: Response, session: str, seconds: int) -> None:
        response.set_cookie(
            self._cookie,
            session,
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
