"""What the pages for people share: the store and its owner, the frame, errors as pages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from flask import Response, request

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
class Desk:
    """One server as its owner uses it. `papers` can be granted if they are not open to all."""

    signins: Signins
    store: Store
    layout: Layout
    sessions: Sessions
    papers: bool

    def page(
        self, template: str, *, error: EvidenceError | None = None, **context: Any
    ) -> Response:
        """A page that nobody keeps, and whose form tells us where it was sent from.

        With an error, it has its status, and when to try again.
        """
        status = STATUS[error.kind] if error else 200
        response = self.layout.page(template, here=OWNER, status=status, error=error, **context)
        if error and ("retry_after" in error.details or error.kind == "unavailable"):
            response.headers["Retry-After"] = str(error.details.get("retry_after", 1))
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "same-origin"
        return response

    def view(self, view: Callable[[], Response]) -> Callable[[], Response]:
        """A view whose errors are pages."""

        @wraps(view)
        def answered() -> Response:
            try:
                return view()
            except EvidenceError as error:
                return self.page("refused.html", error=error)

        return answered

    def owned(self, view: Callable[[str], Response]) -> Callable[[], Response]:
        """The same for a view of the owner, which gets the session; others sign in first."""

        def answered() -> Response:
            session = self.sessions.current()
            return self.sign_in_page() if session is None else view(session)

        return self.view(answered)

    def sign_in_page(self, code: str = "", onward: str | None = None) -> Response:
        """The page to sign in, which then leads to `onward`, by default the page asked for."""
        onward = onward or request.full_path.rstrip("?")
        return self.page("sign_in.html", code=code, onward=onward)

    def choices(self) -> list[Choice]:
        """Everything that can be shared."""
        return consent.everything(self.store.overview(samples=SAMPLES))

    def form(self, choices: list[Choice]) -> dict[str, Any]:
        """What the template of the form needs. Values that were sent stay."""
        sent = request.form
        return {
            "choices": choices,
            "lifetimes": consent.LIFETIMES,
            "lifetime": sent.get("lifetime", consent.DEFAULT_LIFETIME),
            "since": sent.get("since", ""),
            "until": sent.get("until", ""),
            "papers": self.papers,
            "papers_chosen": "papers" in sent,
        }

    def sent(self, choices: list[Choice]) -> list[Choice]:
        """The choices as the form was sent."""
        sent = request.form
        return consent.filled(choices, sent.getlist("stream"), sent.getlist("field"))

    def grant(self, choices: list[Choice], label: str) -> tuple[str, str]:
        """(grant id, token) of a new grant of what was ticked.

        Raises `InvalidRequest`, and `Unavailable` if the store is being written.
        """
        sent = request.form
        since, until = (consent.time_of(sent.get(name)) for name in ("since", "until"))
        papers = self.papers and "papers" in sent
        document = consent.document(choices, since, until, papers=papers)
        ends = consent.ends(sent.get("lifetime", ""))
        with open_writer(self.store.place, lock_seconds=LOCK_SECONDS) as writer:
            return grants.create(Registry(writer), document, label=label, expires_at=ends)

    def revoke(self, grant_id: str) -> None:
        """Ends a grant; raises `Unavailable` if the store is being written."""
        if not grant_id.startswith("grt_"):
            raise InvalidRequest("This is not the id of a grant.")
        with open_writer(self.store.place, lock_seconds=LOCK_SECONDS) as writer:
            grants.revoke(Registry(writer), grant_id)


def see_other(location: str) -> Response:
    """A redirect after a form."""
    return Response("", 303, {"Location": location, "Cache-Control": "no-store"})
