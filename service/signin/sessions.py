"""Browsers of the owner: session cookies, and forms that no other browser can send."""

from dataclasses import dataclass
from typing import Final

from flask import Response, request

from evidence import request_log
from evidence.errors import Forbidden
from service.access import tokens
from service.access.owner import SESSION_SECONDS, Owner, limit
from service.access.rates import client

FORM_SECONDS: Final = 600
_FORM: Final = "form"
#: Addresses that may stand for many clients; they share the limits of sign-in.
_SHARED: Final = "shared"


@dataclass(frozen=True)
class Sessions:
    """The sessions of one server. `base` is its URL, `proxied` whether a proxy names addresses."""

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
        """The session of this request; None if the owner is not signed in."""
        session = request.cookies.get(self._cookie)
        return session if self.owner.is_signed_in(session) else None

    def sign_in(self, secret: str, response: Response) -> Response:
        """Begins a session with a code or the passphrase; raises as `Owner.sign_in` does."""
        session = self.owner.sign_in(secret, self.address() or _SHARED)
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
        """A token for one form of a session, valid once and for ten minutes."""
        token = tokens.new("")
        with self.owner.entries.changing() as kept:
            kept.put(_FORM, token, {"for": _of(session, purpose)}, seconds=FORM_SECONDS)
        return token

    def check_form(self, session: str, purpose: str) -> None:
        """Raises `Forbidden` unless the form was made for this session and was not sent before."""
        self.check_same_site()
        with self.owner.entries.changing() as kept:
            entry = kept.use(_FORM, request.form.get("form", ""))
        if entry is None or entry.uses > 1 or entry.body["for"] != _of(session, purpose):
            raise Forbidden("This form was sent before, or is too old. Open the page again.")

    def check_same_site(self) -> None:
        """Raises `Forbidden` for a form that a page of another site sent."""
        site = request.headers.get("Sec-Fetch-Site")
        origin = request.headers.get("Origin")
        if site not in (None, "same-origin") or (site is None and origin not in (None, self.base)):
            raise Forbidden("Another site sent this form. Open the page here and send it again.")

    def limit(self, what: str, most: int, seconds: int) -> None:
        """Counts this request; raises `RateLimited` over `most` of its address in a window."""
        address = self.address()
        if address is not None:
            with self.owner.entries.changing() as kept:
                limit(kept, what, address, most, seconds)

    def address(self) -> str | None:
        """Who asks; None if the address may stand for many clients."""
        return client(request_log.current().address, private=self.proxied)


def _of(session: str, purpose: str) -> str:
    return tokens.hashed(f"{session}\n{purpose}").hex()
