"""What the sign-in pages share: sessions, forms, the store, the layout and error pages.

Only the session that a form was made for can send it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Final

from flask import Response, request

from evidence import request_log
from evidence.errors import EvidenceError, Forbidden, InvalidRequest
from service import keys
from service.access import grants, tokens
from service.access.entries import Kept
from service.access.guard import check_form
from service.access.owner import Owner, Passkeys
from service.access.rates import client
from service.access.registry import Registry
from service.access.signins import Signins
from service.pages import session_path
from service.pages.layout import Layout
from service.records.opening import open_writer
from service.records.store import Store
from service.signin import consent
from service.signin.consent import Choice
from service.statuses import STATUS

FORM_SECONDS: Final = 600
#: Longer than a session, which the server ends.
COOKIE_SECONDS: Final = 30 * 86_400
_FORM = "form"
#: The purpose of the form that signs in.
SIGN_IN: Final = "sign-in"
#: The field with the answer of a passkey.
ASSERTION: Final = "assertion"
_COOKIE: Final = "rung_owner"
Page = Callable[[str], Response]
#: Whose budget of work pays for the pages of the owner.
OWNER_PAYS: Final = "owner"


class Sessions:
    """The sessions of one server at the URL `base`. `proxied` is true if a trusted proxy sends
    client addresses. A session is `path/secret`: the path below which its pages lie, and the value
    of its cookie."""

    def __init__(self, owner: Owner, base: str, proxied: bool) -> None:
        self.owner, self.base, self.passkeys = owner, base, Passkeys(owner, base)
        self._proxied, self._secure = proxied, base.startswith("https:")
        self._visit_cookie = "__Host-rung_visit" if self._secure else "rung_visit"

    def current(self) -> str | None:
        """Returns the session of this request; None if the owner is not signed in."""
        session = self._sent
        if not self.owner.is_signed_in(session):
            return None
        request_log.current().payer = OWNER_PAYS
        return session

    @property
    def _sent(self) -> str | None:
        """The session of this request, valid or not."""
        value = session_path.cookie(_COOKIE, secure=self._secure)
        return f"{session_path.current()}/{value}" if value else None

    def sign_in(self, secret: str, page: Page) -> Response:
        """Starts a session with a code or the passphrase, and ends the one of this request.

        `page` makes the answer from the path of the session. Raises the errors of `Owner.sign_in`.
        """
        return self._started(self.owner.sign_in(secret, session_path.new()), page)

    def sign_in_with_passkey(self, page: Page) -> Response:
        """Starts a session with a passkey's answer to the sent form; see `sign_in`.

        Raises `Forbidden` for a form of another browser, and the errors of `Passkeys.sign_in`.
        """
        form = request.form
        self.check_form(self.visit, SIGN_IN)
        session = self.passkeys.sign_in(form["form"], form[ASSERTION], session_path.new())
        return self._started(session, page)

    @contextmanager
    def proof(self) -> Iterator[Kept]:
        """A transaction that begins once the sent form proves the owner, with a code, the
        passphrase or a passkey's answer to this form. Raises as `Owner.proven` does."""
        form = request.form
        if form.get(ASSERTION):
            with self.passkeys.proven(form.get("form", ""), form[ASSERTION]) as (entries, _):
                yield entries
        else:
            with self.owner.proven(form.get("code", "")) as entries:
                yield entries

    def challenge(self, token: str) -> dict[str, Any] | None:
        """What a browser needs to prove the owner by a passkey, for the form with this token; None
        if there is no passkey."""
        return self.passkeys.request(token) if self.has_passkeys() else None

    def has_passkeys(self) -> bool:
        """Whether a passkey can be used here."""
        return bool(self.passkeys.host and self.passkeys.listed())

    def _started(self, session: str, page: Page) -> Response:
        path, _, value = session.rpartition("/")
        response = page(path)
        if before := self._sent:
            self.sign_out(before, response)
        self._set(response, path, value, COOKIE_SECONDS)
        return response

    @property
    def visit(self) -> str:
        """Identifies a browser that is not signed in; empty for a new one."""
        return request.cookies.get(self._visit_cookie, "")

    def visited(self, purpose: str, page: Page, *, proven: bool = False) -> Response:
        """Returns a page with a form of a browser that is not signed in, from the form's token."""
        visit = self.visit or tokens.new("")
        response = page(self.form(visit, purpose, proven=proven))
        response.set_cookie(
            self._visit_cookie,
            visit,
            max_age=FORM_SECONDS,
            secure=self._secure,
            httponly=True,
            samesite="Lax",
        )
        return response

    def sign_out(self, session: str, response: Response) -> Response:
        """Ends the session of this request."""
        self.owner.sign_out(session)
        self._set(response, session_path.current(), "", 0)
        return response

    def _set(self, response: Response, path: str, value: str, seconds: int) -> None:
        secure = self._secure
        session_path.set_cookie(response, path, _COOKIE, value, secure=secure, seconds=seconds)

    def form(self, session: str, purpose: str, *, proven: bool = False) -> str:
        """Returns a token for one form of a session. It is valid once, for ten minutes.

        If the owner was `proven` for this form, the token stands for the proof.
        """
        token, body = tokens.new(""), {"for": _of(session, purpose), "proven": proven}
        with self.owner.entries.changing() as entries:
            entries.put(_FORM, token, body, seconds=FORM_SECONDS)
        return token

    def check_form(self, session: str, purpose: str) -> bool:
        """Returns whether the token of the sent form stands for a proof.

        Raises `Forbidden` unless the form belongs to this session and was not sent before.
        """
        check_form(request.environ, self.base)
        with self.owner.entries.changing() as entries:
            entry = entries.use(_FORM, request.form.get("form", ""))
        if entry is None or entry.uses > 1 or entry.body["for"] != _of(session, purpose):
            raise Forbidden("This form was already sent or has expired. Open the page again.")
        return bool(entry.body["proven"])

    def limit(self, what: str, most: int, seconds: int) -> None:
        """Counts this request; raises `RateLimited` after `most` from its address in a window."""
        address = self.address()
        if address is not None:
            with self.owner.entries.changing() as entries:
                entries.limit(what, address, most, seconds)

    def address(self) -> str | None:
        """Returns the client address; None if many clients can share it."""
        return client(request_log.current().address, private=self._proxied)


def _of(session: str, purpose: str) -> str:
    return keys.hashed(f"{session}\n{purpose}").hex()


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

        With an error, the page has the status of the error, and when to try again.
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
            return self.sign_in_page(act="seek") if session is None else view(session)

        return self.view(answered)

    def sign_in_page(
        self,
        code: str = "",
        onward: str | None = None,
        error: EvidenceError | None = None,
        act: str = "replace",
    ) -> Response:
        """Returns the sign-in page, which then opens `onward`, by default the requested page.

        `act` is what it does if this browser has a session; see `Layout.page`.
        """
        if request.method == "GET":
            onward = onward or request.full_path.rstrip("?")
        else:
            onward, act = onward or OWNER, "replace"
        page = partial(
            self.page, "sign_in.html", error=error, code=code, onward=onward, session={"act": act}
        )
        return page(passkey=None) if code else self.asking(SIGN_IN, page)

    def asking(self, purpose: str, page: Callable[..., Response]) -> Response:
        """Returns a page that asks a browser that is not signed in for a proof."""
        sessions = self.sessions
        if not sessions.has_passkeys():
            return page(passkey=None)
        return sessions.visited(
            purpose, lambda token: page(passkey=sessions.challenge(token), token=token)
        )

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
            return [replace(choice, chosen=True, ticked=()) for choice in choices]
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
        with self.signins.entries.changing() as entries:
            ends = consent.ends(sent.get("lifetime", ""), entries.time)
        with open_writer(self.store.place, lock_seconds=LOCK_SECONDS) as writer:
            registry = Registry(writer)
            with registry.transaction():
                yield grants.create(registry, document, label=label, expires_at=ends)

    def revoke(self, grant_id: str) -> None:
        """Revokes a grant; raises `Unavailable` if the store is being written."""
        if not grant_id.startswith("grt_"):
            raise InvalidRequest("This is not the id of a grant.")
        with open_writer(self.store.place, lock_seconds=LOCK_SECONDS) as writer:
            revoked = grants.revoke(Registry(writer), grant_id)
        self.signins.forget(revoked)


def with_error(response: Response, error: EvidenceError) -> Response:
    """Logs the code of an error, and adds when to try again to its response."""
    request_log.current().error = error.code
    if "retry_after" in error.details or error.kind == "unavailable":
        response.headers["Retry-After"] = str(error.details.get("retry_after", 1))
    return response
