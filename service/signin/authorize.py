"""`/authorize`: a client requests access, and the owner decides on one page what it may read.

The URL of the page contains the whole request. Nothing is stored before the owner decides.
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
from service.signin.owner_site import OwnerSite, see_other
from service.signin.metadata import AUTHORIZE
from service.signin.server import InvalidTarget, Server

#: The most requests of one address, and the window in seconds.
REQUESTS: Final = (60, 60)
DENIED: Final = "access_denied"


@dataclass(frozen=True, slots=True)
class Asked:
    """A valid authorization request. `words` are the client's statements about its purpose."""

    client: Client
    redirect_uri: str
    code: dict[str, Any]
    choices: list[Choice]
    words: list[str]
    limited: bool


class Refused(Exception):
    """An invalid request; the browser is redirected to the client with an error."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def add(routes: Blueprint, site: OwnerSite, server: Server) -> None:
    """Adds the route of the page."""

    def answered() -> Response:
        site.sessions.limit("authorize", *REQUESTS)
        session = site.sessions.current()
        if session is None:  # strangers are not redirected, and let the server fetch nothing
            return site.sign_in_page()
        try:
            asked = _asked(site, server)
        except Refused as refused:
            return see_other(refused.location)
        if request.method == "POST":
            site.sessions.check_form(session, _purpose())
            return _decided(site, server, asked, session)
        return _page(site, asked, session, asked.choices)

    view = site.view(answered)
    routes.add_url_rule(AUTHORIZE, "authorize", view, methods=["GET", "POST"])


def _asked(site: OwnerSite, server: Server) -> Asked:
    """Validates the request. Raises `InvalidRequest` if the client or redirect URI is invalid, and
    `Refused` for other errors."""
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
        paths = server.resources.opened(targets)
        records = set(paths) & set(server.resources.paths[site.layout.mcp_path])
        choices, words = site.choices() if records else [], list[str]()
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
        "paths": paths,
    }
    return Asked(grant.client, uri, code, choices, words, bool(details))


def _refused(server: Server, uri: str, error: str, why: str) -> Refused:
    return Refused(_location(server, uri, error=error, error_description=ascii(why).strip("'\"")))


def _location(server: Server, uri: str, **answer: str) -> str:
    """Returns the redirect URI with an answer, the state and the issuer."""
    parameters = {**answer, "state": request.args.get("state"), "iss": server.resources.base}
    sent = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{sent}"


def _page(
    site: OwnerSite,
    asked: Asked,
    session: str,
    choices: list[Choice],
    error: EvidenceError | None = None,
) -> Response:
    place, kind = redirects.destination(asked.redirect_uri)
    return site.page(
        "consent.html",
        error=error,
        asked=asked,
        place=place,
        kind=kind,
        action=request.full_path,
        token=site.sessions.form(session, _purpose()),
        **site.form(choices),
    )


def _purpose() -> str:
    """Returns the request that a form of this page is bound to."""
    return request.query_string.decode("latin-1")


def _decided(site: OwnerSite, server: Server, asked: Asked, session: str) -> Response:
    """Sends the browser back to the client with a code or a refusal."""
    uri = asked.redirect_uri
    place, _ = redirects.destination(uri)
    if request.form.get("decision") != "allow":
        return site.page("leave.html", url=_location(server, uri, error=DENIED), place=place)
    choices = site.sent(asked.choices)
    client = asked.client
    known = {"client_id": client.client_id, "name": client.name, "place": place}
    more = server.resources.paths[site.layout.papers_path] if site.papers_ticked else ()
    body = {**asked.code, "paths": [*asked.code["paths"], *more]}
    try:
        with site.granting(choices, f"{client.host or client.name} ({place})") as (grant_id, _):
            code = site.signins.consented(grant_id, known, body)
    except (InvalidRequest, Unavailable) as error:
        return _page(site, asked, session, choices, error)
    return site.page("leave.html", url=_location(server, uri, code=code), place=place)
