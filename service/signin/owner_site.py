"""What the browser pages of sign-in share: the store, the sessions, the layout and error pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from flask import Response, request

from evidence import request_log
from evidence.errors import EvidenceError, InvalidRequest
from service.access import grants
from service.access.registry import Registry
from service.access.signins import Signins
from service.pages.layout import Layout
from service.records.opening import open_writer
from service.records.store import Store
from service.signin import consent
from service.signin.consent import Choice
from service.signin.sessions import Sessions
from service.statuses import STATUS

#: How long a form waits for other writers of the store.
LOCK_SECONDS = 5
OWNER, LOGIN, LOGOUT = "/owner", "/owner/login", "/owner/logout"
SAMPLES = 2


@dataclass(frozen=True)
class OwnerSite:
    """The owner's pages of one server. If `papers`, grants can include research papers."""

    signins: Signins
    store: Store
    layout: Layout
    sessions: Sessions
    papers: bool

    def page(
        self, template: str, *, error: EvidenceError | None = None, **context: Any
    ) -> Response:
        """Returns a page that is not cached.

        With an error, it has its status, and when to try again.
        """
        status = STATUS[error.kind] if error else 200
        response = self.layout.page(template, here=OWNER, status=status, error=error, **context)
        response.headers["Cache-Control"] = "no-store"
        return with_error(response, error) if error else response

    def view(self, view: Callable[[], Response]) -> Callable[[], Response]:
        """Wraps a view so that errors become pages."""

        @wraps(view)
        def answered() -> Response:
            try:
                return view()
            except EvidenceError as error:
                return self.page("refused.html", error=error)

        return answered

    def owned(self, view: Callable[[str], Response]) -> Callable[[], Response]:
        """Wraps a view for the owner; it gets the session. Others see the sign-in page."""

        def answered() -> Response:
            session = self.sessions.current()
            return self.sign_in_page() if session is None else view(session)

        return self.view(answered)

    def sign_in_page(
        self, code: str = "", onward: str | None = None, error: EvidenceError | None = None
    ) -> Response:
        """Returns the sign-in page, which then opens `onward`, by default the requested page."""
        onward = onward or request.full_path.rstrip("?")
        passkeys = self.sessions.passkeys
        if code or not passkeys.host or not passkeys.listed():
            return self.page("sign_in.html", error=error, code=code, onward=onward, passkey=None)

        def page(form: str) -> Response:
            asked = passkeys.request(form)
            return self.page(
                "sign_in.html", error=error, code="", onward=onward, passkey=asked, token=form
            )

        return self.sessions.visited(page)

    def choices(self) -> list[Choice]:
        """Returns all streams that can be shared."""
        return consent.everything(self.store.overview(samples=SAMPLES))

    def form(self, choices: list[Choice]) -> dict[str, Any]:
        """Returns the variables of the form's template, with the values of a sent form."""
        sent = request.form
        return {
            "choices": choices,
            "lifetimes": consent.LIFETIMES,
            "lifetime": sent.get("lifetime", consent.DEFAULT_LIFETIME),
            "since": sent.get("since", ""),
            "until": sent.get("until", ""),
            "papers": self.papers,
            "papers_chosen": self.papers_ticked,
        }

    def sent(self, choices: list[Choice]) -> list[Choice]:
        """Returns the choices with the boxes ticked as in the sent form."""
        sent = request.form
        if "everything" in sent:
            return [replace(one, chosen=True) for one in choices]
        return consent.filled(choices, sent.getlist("stream"), sent.getlist("field"))

    @property
    def papers_ticked(self) -> bool:
        """Whether the sent form includes the research papers."""
        return self.papers and "papers" in request.form

    @contextmanager
    def granting(self, choices: list[Choice], label: str) -> Iterator[tuple[str, str]]:
        """Creates a grant of what was ticked, as (grant id, token). An error inside undoes it.

        Raises `InvalidRequest`, and `Unavailable` if the store is being written.
        """
        sent = request.form
        since, until = (consent.time_of(sent.get(name)) for name in ("since", "until"))
        document = consent.document(choices, since, until, papers=self.papers_ticked)
        ends = consent.ends(sent.get("lifetime", ""))
        with open_writer(self.store.place, lock_seconds=LOCK_SECONDS) as writer:
            registry = Registry(writer)
            with registry.transaction():
                yield grants.create(registry, document, label=label, expires_at=ends)

    def revoke(self, grant_id: str) -> None:
        """Revokes a grant; raises `Unavailable` if the store is being written."""
        if not grant_id.startswith("grt_"):
            raise InvalidRequest("This is not the id of a grant.")
        with open_writer(self.store.place, lock_seconds=LOCK_SECONDS) as writer:
            grants.revoke(Registry(writer), grant_id)


def with_error(response: Response, error: EvidenceError) -> Response:
    """Logs the code of an error, and adds when to try again to its response."""
    request_log.current().error = error.code
    if "retry_after" in error.details or error.kind == "unavailable":
        response.headers["Retry-After"] = str(error.details.get("retry_after", 1))
    return response


def see_other(location: str) -> Response:
    """Returns a redirect after a form."""
    return Response("", 303, {"Location": location, "Cache-Control": "no-store"})
