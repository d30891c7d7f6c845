"""`/authorize`: a client asks for access, and the owner decides on one page what it may read.

The whole request is in the address of the page. Nothing is stored until the owner has decided.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from authlib.oauth2 import OAuth2Error
from flask import Blueprint, Response, request

from evidence.errors import EvidenceError, InvalidRequest, Unavailable
from service.signin import consent, redirects
from service.signin.clients import Client
from service.signin.consent import Choice
from service.signin.desk import Desk, see_other
from service.signin.metadata import AUTHORIZE
from service.signin.server import InvalidTarget, Server

#: Requests of one address: (most, seconds).
REQUESTS: Final = (60, 60)
DENIED: Final = "access_denied"


@dataclass(frozen=True, slots=True)
class Asked:
    """A valid authorization request. `words` are the client's own on what it wants."""

    client: Client
    redirect_uri: str
    state: str | None
    code: dict[str, Any]
    choices: list[Choice]
    words: list[str]
    limited: bool


class Refused(Exception):
    """A request that is answered by sending the browser back to the client, with an error."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def add(routes: Blueprint, desk: Desk, server: Server) -> None:
    """Adds the page."""

    def answered() -> Response:
        desk.sessions.limit("authorize", *REQUESTS)
        session = desk.sessions.current()
        try:
            asked = _asked(desk, server)
        except Refused as refused:  # anybody can register: no link of ours leads strangers away
            return see_other(refused.location) if session else desk.sign_in_page()
        if session is None:
            return desk.sign_in_page()
        if request.method == "POST":
            desk.sessions.check_form(session, _purpose())
            return _decided(desk, server, asked, session)
        return _page(desk, asked, session, asked.choices)

    view = desk.view(answered)
    routes.add_url_rule(AUTHORIZE, "authorize", view, methods=["GET", "POST"])


def _asked(desk: Desk, server: Server) -> Asked:
    """The request; raises `InvalidRequest` before the client and its redirect URI are proven."""
    try:
        grant = server.get_consent_grant()
    except OAuth2Error as error:
        if error.redirect_uri is None:
            raise InvalidRequest(
                f"The application sent an invalid request: {error.get_error_description()}",
                hint="Nothing was shared. Start again in the application.",
            ) from None
        raise _refused(server, error.redirect_uri, error.error, error.description) from None
    except ValueError:
        raise InvalidRequest("The application sent an invalid request.") from None
    payload, uri = grant.request.payload, grant.redirect_uri
    try:
        targets = server.targets(payload)
        choices, words = desk.choices(), list[str]()
        details = payload.data.get("authorization_details")
        if details:
            choices, words = consent.asked_for(details, [one.about for one in choices])
    except (InvalidTarget, InvalidRequest) as error:
        why = error.error if isinstance(error, InvalidTarget) else error.code
        raise _refused(server, uri, why, str(error)) from None
    code = {
        "client_id": grant.client.client_id,
        "redirect_uri": uri,
        "challenge": payload.data["code_challenge"],
        "scope": grant.request.scope,
        "resource": targets,
    }
    return Asked(grant.client, uri, payload.state, code, choices, words, bool(details))


def _refused(server: Server, uri: str, error: str, why: str) -> Refused:
    return Refused(_location(server, uri, error=error, error_description=ascii(why).strip("'\"")))


def _location(server: Server, uri: str, **answer: str) -> str:
    """The redirect URI with an answer, the state and the issuer."""
    parameters = {**answer, "state": request.args.get("state"), "iss": server.resources.base}
    sent = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{sent}"


def _page(
    desk: Desk,
    asked: Asked,
    session: str,
    choices: list[Choice],
    error: EvidenceError | None = None,
) -> Response:
    place, kind = redirects.destination(asked.redirect_uri)
    return desk.page(
        "consent.html",
        error=error,
        asked=asked,
        place=place,
        kind=kind,
        action=request.full_path,
        token=desk.sessions.form(session, _purpose()),
        **desk.form(choices),
    )


def _purpose() -> str:
    """What a form of this page is bound to: the whole request."""
    return request.query_string.decode("latin-1")


def _decided(desk: Desk, server: Server, asked: Asked, session: str) -> Response:
    """Leads the browser back to the client, with a code or with the refusal."""
    uri = asked.redirect_uri
    place, _ = redirects.destination(uri)
    if request.form.get("decision") != "allow":
        return desk.page("leave.html", url=_location(server, uri, error=DENIED), place=place)
    choices = desk.sent(asked.choices)
    client = asked.client
    try:
        grant_id, _ = desk.grant(choices, f"{client.name} ({place})")
    except (InvalidRequest, Unavailable) as error:
        return _page(desk, asked, session, choices, error)
    known = {"client_id": client.client_id, "name": client.name, "place": place}
    code = desk.signins.consented(grant_id, known, asked.code)
    return desk.page("leave.html", url=_location(server, uri, code=code), place=place)
