"""Sessions of the reading pages: a token in an encrypted cookie, checked again for every page.

The server stores no token. A revoked or expired token leads back to the form. A signed-in owner
needs no token and reads everything. Each token that is entered begins a session below a new path:
another program could have chosen the path of the page with the form.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from flask import Response, g, request

from evidence import request_log
from evidence.errors import EvidenceError, InvalidRequest, Unauthenticated
from service.access.guard import bearer, check_form
from service.operations.base import PaperSession, Session
from service.pages import session_path
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
        """The visitor as a caller of records; raises as `Services.open_session` does."""
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
        """The session of the owner, unless this is the session of a token."""
        g.owner = None if self._cookie(surface) is not None else self.layout.owner()
        session: str | None = g.owner
        return session

    def _token(self, surface: str) -> str:
        cookie = self._cookie(surface)
        if cookie is None:
            raise Unauthenticated(FIRST)
        bound = f"{surface} {session_path.current()}"
        try:
            token: str = self.layout.services.sessions.open(cookie, bound=bound)
        except InvalidRequest:
            raise Unauthenticated("This session has ended. Enter the token again.") from None
        return token

    @property
    def _secure(self) -> bool:
        return request.is_secure or self.layout.services.settings.base.startswith("https:")

    def _cookie(self, surface: str) -> str | None:
        return session_path.cookie(COOKIES[surface], secure=self._secure)

    def _set(self, response: Response, path: str, surface: str, token: str) -> None:
        """Sets the cookie of a session below a path; an empty token removes it."""
        bound, seal = f"{surface} {path}", self.layout.services.sessions.seal
        session_path.set_cookie(
            response,
            path,
            COOKIES[surface],
            seal(token, bound=bound) if token else "",
            secure=self._secure,
            seconds=None if token else 0,
        )

    def _without_session(self, response: Response) -> Response:
        """Removes the cookies of the session of this request."""
        for surface in COOKIES:
            if self._cookie(surface) is not None:
                self._set(response, session_path.current(), surface, "")
        return response

    @property
    def _has_token(self) -> bool:
        return any(self._cookie(surface) is not None for surface in COOKIES)

    def page(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """One of the reading pages; `leaves` shows the button that ends the session."""
        services = self.layout.services
        shared = {
            "leaves": self._has_token,
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
            return self._without_session(self.layout.ended(PATH))
        surface = PAPERS if form.get("surface") == PAPERS else RECORDS
        target = form.get("to", "")
        target = target if target.startswith(PATH) and target.isprintable() else PATH
        try:
            tokens = {surface: self._checked(form.get("token", "").strip(), surface)}
        except EvidenceError as error:
            return self._form(surface, target, error)
        counterpart = RECORDS if surface == PAPERS else PAPERS
        with suppress(Unauthenticated):
            tokens[counterpart] = self._token(counterpart)
        path = session_path.new()
        response = self._without_session(self.layout.begun(path, target))
        for name, token in tokens.items():
            self._set(response, path, name, token)
        return response

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

    def _form(self, surface: str, target: str, error: EvidenceError) -> Response:
        """The form; without an error on a first visit. The page of a plain address, or of a session
        that has ended, goes on to the session of this browser."""
        begins, counterpart = error.message == FIRST, RECORDS if surface == PAPERS else PAPERS
        seeks = request.method != "POST" and self._cookie(counterpart) is None
        request_log.current().error = "" if begins else error.code
        status = 200 if begins else 403
        response = self.page(
            "enter.html",
            status=status,
            surface=surface,
            to=target,
            sign_in=self.layout.services.signins is not None,
            error=None if begins else error,
            session={"act": "seek"} if seeks and not self.layout.owner() else None,
        )
        if self._cookie(surface) is not None:
            self._set(response, session_path.current(), surface, "")
        return response
