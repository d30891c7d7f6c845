"""The authorization server's endpoints: metadata, registration, tokens, revocation and consent.

At `/authorize` a client requests access. The owner gives a proof, and then decides on one page what
it may read. The proof counts for this page only and starts no session. The URL of the page contains
the whole request. Nothing of a client is stored before the owner decides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson
from authlib.oauth2 import OAuth2Error
from flask import Blueprint, Flask, Response, request

from evidence.errors import EvidenceError, Forbidden, InvalidRequest, Unavailable
from evidence.limits import BUDGETS
from evidence.values import AUTHORIZATION_SERVER
from evidence.work import parse_json, request_deadline
from service.access import grants
from service.access.guard import check_form, read_body
from service.access.owner import Owner
from service.bootstrap import Services
from service.pages.layout import Layout
from service.signin import consent, owner_pages
from service.signin.clients import TYPES, Client, Deployment, Registered
from service.signin.consent import Choice
from service.signin.owner_site import ASSERTION, OwnerSite, Sessions, with_error
from service.signin.redirects import destination
from service.signin.server import AUTHORIZE, REGISTER, REVOKE, TOKEN, Paths, Resources, Server
from service.signin.server import metadata
from service.statuses import STATUS

#: The most requests from one address, and the window in seconds.
REGISTRATIONS, EXCHANGES, AUTHORIZATIONS = (20, 3_600), (120, 60), (60, 60)
JSON = {"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"}


def sessions_of(services: Services) -> Sessions:
    """The owner's sessions at a server with sign-in."""
    assert services.signins is not None
    settings = services.settings
    return Sessions(Owner(services.signins.entries), settings.base, settings.trusted_proxy_hops > 0)


def mount(app: Flask, layout: Layout, sessions: Sessions, paths: Paths) -> None:
    """Adds the endpoints and the pages."""
    services = layout.services
    assert services.store is not None and services.signins is not None
    store, base = services.store, services.settings.base
    entries, documents = services.signins.entries, services.settings.documents
    deployment = Deployment(base, store.secret, entries, documents)
    resources = Resources(base, paths)

    def ends(grant_id: str) -> datetime | None:
        end = store.granted(partial(grants.active, grant_id=grant_id)).expires_at
        return datetime.fromisoformat(end) if end else None

    types = [of_deployment(deployment) for of_deployment in TYPES]
    server = Server(services.signins, types, resources, ends)
    closed = services.papers is not None and bool(services.settings.papers_tokens)
    site = OwnerSite(services.signins, store, layout, sessions, closed)
    routes = Blueprint("signin", __name__)
    routes.before_request(_allow_long_forms)
    routes.before_request(_allow_waiting)
    described = metadata(base, types)
    routes.add_url_rule(AUTHORIZATION_SERVER, "metadata", lambda: _json(described))
    for path, view in {
        REGISTER: lambda: _register(Registered(deployment), sessions),
        TOKEN: lambda: _token(server, sessions),
        REVOKE: lambda: server.create_endpoint_response("revocation"),
    }.items():
        routes.add_url_rule(path, path.strip("/"), _answered(view), methods=["POST"])
    _add_page(routes, site, server)
    owner_pages.add(routes, site)
    app.register_blueprint(routes)


def _allow_long_forms() -> None:
    """Allows long forms: a large store has a box for each field."""
    request.max_content_length = request.max_form_memory_size = BUDGETS.body_bytes


def _allow_waiting() -> None:
    """Gives a request time to wait for writers of the store and for the metadata of a client."""
    request_deadline(BUDGETS.upstream_seconds)


def _answered(view: Callable[[], Response]) -> Callable[[], Response]:
    """Wraps a view so that errors have the form of OAuth (RFC 6749, section 5.2)."""

    @wraps(view)
    def answered() -> Response:
        try:
            return view()
        except OAuth2Error as error:
            return _json(dict(error.get_body()), error.status_code)
        except EvidenceError as error:
            body = {"error": error.code, "error_description": error.message}
            return with_error(_json(body, STATUS[error.kind]), error)
        except ValueError:  # Authlib parsed a header or a parameter that is not text
            return _json({"error": "invalid_request"}, 400)

    return answered


def _register(clients: Registered, sessions: Sessions) -> Response:
    sessions.limit("register", *REGISTRATIONS)
    try:
        body = parse_json(read_body(request.environ))
    except ValueError:
        raise InvalidRequest(
            "The registration must be a JSON object.", code="invalid_client_metadata"
        ) from None
    return _json(clients.register(body), 201)


def _token(server: Server, sessions: Sessions) -> Response:
    answer: Response = server.create_token_response()
    if answer.status_code != 200:
        sessions.limit("token", *EXCHANGES)
    return answer


def _json(body: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, JSON)


DENIED = "access_denied"
_AGAIN = "Nothing was shared. Start again in the application."


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A valid authorization request. `words` are the client's statements with their labels."""

    client: Client
    redirect_uri: str
    code: dict[str, Any]
    choices: list[Choice]
    words: list[tuple[str, str]]
    limited: bool


class Refused(Exception):
    """An invalid request; its text is the redirect URI of the client with an error."""

    def __init__(self, uri: str, url: str) -> None:
        super().__init__(url)
        self.uri = uri


def _add_page(routes: Blueprint, site: OwnerSite, server: Server) -> None:
    """Adds the route of the page on which the owner decides."""

    def answered() -> Response:
        """GET asks for a proof; strangers are not redirected, and cannot trigger a fetch. POST with
        a proof shows the choices, and POST of their form decides."""
        sessions, form = site.sessions, request.form
        sessions.limit("authorize", *AUTHORIZATIONS)
        valid = _validated(server)
        if request.method != "POST":
            return _ask_for_proof(site)
        decides = "decision" in form
        if decides or form.get(ASSERTION):
            if sessions.check_form(sessions.visit, _purpose()) is not decides:
                raise Forbidden("Confirm that you are the owner before you open this form.")
        if not decides:
            check_form(request.environ, sessions.base)
            try:
                with sessions.proof():
                    pass
            except EvidenceError as error:
                return _ask_for_proof(site, error)
        try:
            authorization = _authorization_request(site, server, valid)
        except Refused as refused:
            target, _ = destination(refused.uri)
            return site.page("leave.html", url=str(refused), place=target)
        if decides:
            return _decide(site, server, authorization)
        return _page(site, authorization, authorization.choices)

    view = site.view(answered)
    routes.add_url_rule(AUTHORIZE, "authorize", view, methods=["GET", "POST"])


@dataclass(frozen=True, slots=True)
class ValidatedRequest:
    """What is valid without the store and without the metadata that a client publishes."""

    client: Client
    redirect_uri: str
    code: dict[str, Any]
    details: list[dict[str, Any]]


def _validated(server: Server) -> ValidatedRequest:
    """Validates the request before the proof. Raises `InvalidRequest`, because nobody is redirected
    yet."""
    try:
        grant = server.get_consent_grant()
        payload, uri = grant.request.payload, grant.redirect_uri
        targets = server.targets(payload)
    except OAuth2Error as error:
        raise InvalidRequest(
            f"The application sent an invalid request: {error.get_error_description()}", hint=_AGAIN
        ) from None
    except ValueError:
        raise InvalidRequest("The application sent an invalid request.", hint=_AGAIN) from None
    details = payload.data.get("authorization_details")
    code = {
        "client_id": grant.client.client_id,
        "redirect_uri": uri,
        "challenge": payload.data["code_challenge"],
        "scope": grant.request.scope,
        "resource": targets,
        "paths": server.resources.opened(targets),
    }
    parsed = consent.parse_details(details) if details else []
    return ValidatedRequest(grant.client, uri, code, parsed)


def _authorization_request(
    site: OwnerSite, server: Server, valid: ValidatedRequest
) -> AuthorizationRequest:
    """Completes the request after the proof. Raises `InvalidRequest` if the client's metadata
    cannot be used, and `Refused` if what it requests cannot be granted."""
    uri, details = valid.redirect_uri, valid.details
    client = server.complete(valid.client, uri)
    records = set(valid.code["paths"]) & set(server.resources.paths[site.layout.mcp_path])
    choices, words = site.choices() if records else [], list[tuple[str, str]]()
    try:
        if details:
            choices, words = consent.requested(details, [choice.about for choice in choices])
    except InvalidRequest as error:
        raise _refused(server, uri, error.code, error.message) from None
    return AuthorizationRequest(client, uri, valid.code, choices, words, bool(details))


def _refused(server: Server, uri: str, error: str, why: str) -> Refused:
    text = ascii(why).strip("'\"")
    return Refused(uri, _location(server, uri, error=error, error_description=text))


def _location(server: Server, uri: str, **answer: str) -> str:
    """Returns the redirect URI with an answer, the state and the issuer."""
    parameters = {**answer, "state": request.args.get("state"), "iss": server.resources.base}
    sent = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{sent}"


def _ask_for_proof(site: OwnerSite, error: EvidenceError | None = None) -> Response:
    page = partial(site.page, "prove.html", error=error, action=request.full_path)
    return site.asking(_purpose(), page)


def _page(
    site: OwnerSite,
    authorization: AuthorizationRequest,
    choices: list[Choice],
    error: EvidenceError | None = None,
) -> Response:
    """The choices, after a proof. The token of their form stands for it."""
    target, kind = destination(authorization.redirect_uri)
    return site.sessions.visited(
        _purpose(),
        lambda token: site.page(
            "consent.html",
            error=error,
            asked=authorization,
            place=target,
            kind=kind,
            action=request.full_path,
            token=token,
            **site.form(choices),
        ),
        proven=True,
    )


def _purpose() -> str:
    """Returns the request that a form of this page is bound to."""
    return request.query_string.decode("latin-1")


def _decide(site: OwnerSite, server: Server, authorization: AuthorizationRequest) -> Response:
    """Sends the browser back to the client with a code or a refusal."""
    uri = authorization.redirect_uri
    target, _ = destination(uri)
    if request.form.get("decision") != "allow":
        return site.page("leave.html", url=_location(server, uri, error=DENIED), place=target)
    choices = site.sent(authorization.choices)
    client = authorization.client
    client_details = {"client_id": client.client_id, "name": client.name, "place": target}
    paper_paths = server.resources.paths[site.layout.papers_path] if site.papers_ticked else ()
    body = {**authorization.code, "paths": [*authorization.code["paths"], *paper_paths]}
    try:
        with site.granting(choices, f"{client.host or client.name} ({target})") as (grant_id, _):
            code = site.signins.consented(grant_id, client_details, body)
    except (InvalidRequest, Unavailable) as error:
        return _page(site, authorization, choices, error)
    return site.page("leave.html", url=_location(server, uri, code=code), place=target)
