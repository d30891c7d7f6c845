"""The Flask application: settings, services, blueprints, errors."""

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from service import bootstrap, settings
from service.access import Access, Guard, loopback_origins, metadata_paths, origins
from service.bootstrap import Services
from service.mcp import blueprint as mcp
from service.mcp.tools import RecordsSurface
from service.rest import blueprint as rest
from service.rest import metadata

MCP_PATH = "/mcp"


def create_app(services: Services | None = None) -> Flask:
    """The application over the given services, or over those of the environment."""
    services = services or bootstrap.build(settings.load())
    app = Flask("rung", static_folder=None)
    app.extensions["rung"] = services
    guard = _guard(services)
    surface = RecordsSurface()
    app.register_blueprint(
        mcp.blueprint(surface, path=MCP_PATH, guard=guard, open_session=services.open_session)
    )
    rest.mount(app, services, guard)
    metadata.mount(app, services, MCP_PATH)
    hops = services.settings.trusted_proxy_hops
    if hops:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=0, x_prefix=0
        )
    return app


def _guard(services: Services) -> Guard:
    found = services.settings
    own = loopback_origins(found.port)
    public = origins([found.public_url]) if found.public_url else frozenset[str]()
    base = found.public_url or f"http://127.0.0.1:{found.port}"
    return Guard(
        access=Access.CLIENT_TOKEN,
        allowed_origins=own | public | origins(found.allowed_origins),
        allowed_hosts=frozenset(found.allowed_hosts) or None,
        metadata_url=base + metadata_paths(MCP_PATH)[0] if found.authorization_servers else None,
    )
