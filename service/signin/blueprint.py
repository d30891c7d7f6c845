"""The endpoints of the authorization server: metadata, registration, tokens, revocation.

Programs use these endpoints. The pages at `/authorize` and `/owner` are mounted here too.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial, wraps
from typing import Any

import orjson
from authlib.oauth2 import OAuth2Error
from flask import Blueprint, Flask, Response, request

from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS, parse_json
from evidence.routes import AUTHORIZATION_SERVER
from service.access import grants
from service.access.guard import is_loopback, read_body
from service.access.owner import Owner
from service.bootstrap import Services
from service.pages.layout import Layout
from service.signin import authorize, metadata, owner_pages
from service.signin.clients import Clients, Documents
from service.signin.owner_site import OwnerSite, Sessions, with_error
from service.signin.metadata import Paths, Resources
from service.signin.server import Server
from service.sources.remote.outbound import is_public
from service.statuses import STATUS

#: The most requests of one address, and the window in seconds.
REGISTRATIONS, EXCHANGES = (20, 3_600), (120, 60)
JSON = {"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"}


def sessions_of(services: Services) -> Sessions:
    """The owner's sessions at a server with sign-in."""
    assert services.signins is not None
    found = services.settings
    return Sessions(Owner(services.signins.entries), found.base, found.trusted_proxy_hops > 0)


def mount(app: Flask, layout: Layout, sessions: Sessions, paths: Paths) -> None:
    """Adds the endpoints and the pages."""
    services = layout.services
    assert services.store is not None and services.signins is not None
    store, base = services.store, services.settings.base
    clients = Clients(store.secret)
    resources = Resources(base, paths)

    def ends(grant_id: str) -> datetime | None:
        end = store.granted(partial(grants.active, grant_id=grant_id)).expires_at
        return datetime.fromisoformat(end) if end else None

    documents, allowed = None, services.settings.documents
    local = allowed == "loopback"

    def accepts(address: str) -> bool:
        return is_public(address) or (local and is_loopback(address))

    if allowed != "off":
        documents = Documents(services.signins.entries, accepts, any_port=local)
    server = Server(services.signins, clients, documents, resources, ends)
    closed = services.papers is not None and bool(services.settings.papers_tokens)
    site = OwnerSite(services.signins, store, layout, sessions, closed)
    routes = Blueprint("signin", __name__)
    routes.before_request(_allow_long_forms)
    described = metadata.document(base, documents=documents is not None)
    routes.add_url_rule(AUTHORIZATION_SERVER, "metadata", lambda: _json(described))
    for path, view in {
        metadata.REGISTER: lambda: _register(clients, sessions),
        metadata.TOKEN: lambda: _token(server, sessions),
        metadata.REVOKE: lambda: server.create_endpoint_response("revocation"),
    }.items():
        routes.add_url_rule(path, path.strip("/"), _answered(view), methods=["POST"])
    authorize.add(routes, site, server)
    owner_pages.add(routes, site)
    app.register_blueprint(routes)


def _allow_long_forms() -> None:
    """Allows long forms: a large store has a box for each field."""
    request.max_content_length = request.max_form_memory_size = BUDGETS.body_bytes


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


def _register(clients: Clients, sessions: Sessions) -> Response:
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
