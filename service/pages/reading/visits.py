"""Sessions of the reading pages: a token, encrypted in a cookie and opened again for every page.

The server stores no token. A revoked or expired token leads back to the form. A signed-in owner
needs no token and reads everything.
"""

from dataclasses import dataclass
from typing import Any, Final

from flask import Response, g, redirect, request

from evidence import request_log
from evidence.errors import EvidenceError, InvalidRequest, Unauthenticated
from service.access.guard import bearer, check_form
from service.operations.base import PaperSession, Session
from service.pages.holdings import PAPERS, RECORDS
from service.pages.layout import Layout
from service.pages.reading.shown import PAPER_PATH, PATH
from service.statuses import STATUS

COOKIES: Final = {RECORDS: "rung_records", PAPERS: "rung_papers"}
#: Browsers silently drop cookies over 4,096 bytes; encryption adds a third.
TOKEN_CHARS: Final = 2_800
FORM_BYTES: Final = 16_384
FIRST: Final = "Enter a token."


@dataclass(frozen=True)
class Visits:
    """Opens the sessions of visitors, and shows a form to those who have none."""

    layout: Layout

    def records(self) -> Session:
        """The visitor as a caller of records; raises as `Services.open_session` does.

        A token that was entered overrides the session of the owner.
        """
        services, owner = self.layout.services, self._owner(RECORDS)
        return services.open_owner(owner) if owner else services.open_session(self._token(RECORDS))

    def papers(self) -> PaperSession:
        """The visitor as a caller of papers; an open library needs no token."""
        services = self.layout.services
        if not services.settings.papers_tokens:
            return services.open_papers(None)
        owner = self._owner(PAPERS)
        return services.open_papers(None if owner else self._token(PAPERS), owner=owner)

    def _owner(self, surface: str) -> str | None:
        """The session of the owner, unless a token was entered."""
        g.owner = None if COOKIES[surface] in request.cookies else self.layout.owner()
        session: str | None = g.owner
        return session

    def _token(self, surface: str) -> str:
        cookie = request.cookies.get(COOKIES[surface])
        if cookie is None:
            raise Unauthenticated(FIRST)
        try:
            token: str = self.layout.services.sessions.open(cookie, bound=surface)
        except InvalidRequest:
            raise Unauthenticated("This session has ended. Enter the token again.") from None
        return token

    def page(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """One of the reading pages; `leaves` shows the button that ends the session."""
        services = self.layout.services
        shared = {
            "leaves": any(name in request.cookies for name in COOKIES.values()),
            "owner": g.get("owner") is not None,
            "both_surfaces": services.authority is not None and services.papers is not None,
        }
        return self.layout.page(
            f"reading/{template}", here=PATH, status=status, **shared, **context
        )

    def post(self) -> Response:
        """Begins a session with the token from the form, or ends all sessions."""
        check_form(request.environ, self.layout.services.settings.base)
        request.max_content_length = FORM_BYTES
        form = request.form
        if "leave" in form:
            response = redirect(PATH, 303)
            for name in COOKIES.values():
                response.delete_cookie(name, path=PATH)
            return response  # type: ignore[return-value]
        surface = PAPERS if form.get("surface") == PAPERS else RECORDS
        place = form.get("to", "")
        place = place if place.startswith(PATH) and place.isprintable() else PATH
        try:
            token = self._checked(form.get("token", "").strip(), surface)
        except EvidenceError as error:
            return self._form(surface, place, error)
        services, response = self.layout.services, redirect(place, 303)
        response.set_cookie(
            COOKIES[surface],
            services.sessions.seal(token, bound=surface),
            path=PATH,
            secure=request.is_secure or (services.settings.public_url or "").startswith("https:"),
            httponly=True,
            samesite="Lax",
        )
        return response  # type: ignore[return-value]

    def _checked(self, token: str, surface: str) -> str:
        """The token, if the surface accepts it and it fits a cookie."""
        token, services = bearer(f"Bearer {token}"), self.layout.services
        if len(token) > TOKEN_CHARS:
            raise InvalidRequest("This token is too long for a browser session.")
        (services.open_papers if surface == PAPERS else services.open_session)(token)
        return token

    def refused(self, error: EvidenceError) -> Response:
        """The form for a visitor whose token is missing or has ended; else the error as a page."""
        surface = PAPERS if request.path.startswith(PAPER_PATH) else RECORDS
        if error.kind == "unauthenticated":
            return self._form(surface, request.full_path.rstrip("?"), error)
        request_log.current().error = error.code
        return self.page("error.html", status=STATUS[error.kind], error=error)

    def _form(self, surface: str, place: str, error: EvidenceError) -> Response:
        """The form; without an error on a first visit."""
        begins = error.message == FIRST
        request_log.current().error = "" if begins else error.code
        status = 200 if begins else 403
        response = self.page(
            "enter.html",
            status=status,
            surface=surface,
            to=place,
            sign_in=self.layout.services.signins is not None,
            error=None if begins else error,
        )
        response.delete_cookie(COOKIES[surface], path=PATH)
        return response
