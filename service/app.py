"""The Flask application: settings, services, blueprints and errors."""

import codecs
import logging
import sys
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from service import bootstrap, settings
from service.access.guard import SCOPE, WELL_KNOWN, Access, Guard, loopback_origins, origins
from service.bootstrap import Services
from service.mcp import blueprint as mcp
from service.mcp.surface import PapersSurface, RecordsSurface
from service.mcp.answer_cache import AnswerCache
from service.pages import blueprint as pages, session_path
from service.pages.layout import Layout
from service.rest import blueprint as rest, metadata, web
from service.running import hooks, metrics
from service.settings import explanation
from service.records.engine.health import Depth
from service.records.opening import engine_of

log = logging.getLogger(__name__)

MCP_PATH = "/mcp"
PAPERS_PATH = "/mcp/papers"

# Addresses and templates need these; workers may run as users who cannot load them.
for codec in ("idna", "unicode-escape"):
    codecs.lookup(codec)


def create_app(services: Services | None = None) -> Flask:
    """The application over the given services, or over those of the environment."""
    services = services or _services()
    app = hooks.Application("rung", static_folder=None)
    app.extensions["rung"] = services
    mounts, paths = {}, dict[str, list[str]]()
    if services.authority is not None:
        mounts[rest.PREFIX] = rest.HEADERS
        paths |= _opened(MCP_PATH, rest.PREFIX)
    if services.papers is not None:
        # Caches may keep answers of an open library, but none that need a token.
        closed = services.settings.papers_tokens
        mounts[rest.PAPERS_PREFIX] = {} if closed else rest.OPEN_HEADERS
        paths |= _opened(PAPERS_PATH, rest.PAPERS_PREFIX) if closed else {}
    owner: Callable[[], str | None] = lambda: None
    if services.signins is not None:
        from service.signin import blueprint as signin

        sessions = signin.sessions_of(services)
        owner = sessions.current
    activity = services.store.activity if services.store else None
    guard = _guard(services, Access.OPEN)
    hooks.prepare(app, guard, services.settings, mounts, activity, services.rates, owner)
    web.prepare(app, mounts)
    if services.authority is not None:
        _mount_records(app, services)
    if services.papers is not None:
        _mount_papers(app, services)
    layout = Layout(services, MCP_PATH, PAPERS_PATH, owner)
    front, missing = pages.mount(app, layout)
    app.extensions[web.MISSING] = missing
    metadata.mount(app, services, list(paths), front)
    if services.signins is not None:
        signin.mount(app, layout, sessions, paths)
    metrics.mount(app, services)
    app.wsgi_app = session_path.routed(app.wsgi_app)  # type: ignore[method-assign]
    hops = services.settings.trusted_proxy_hops
    if hops:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=0, x_prefix=0
        )
    return app


def _services() -> Services:
    """The services of the environment; exits with the errors if it is invalid."""
    try:
        services = bootstrap.build(settings.load())
    except settings.SettingsError as error:
        sys.exit(f"rung cannot start:\n{error}")
    # Likely mistakes that do not prevent the start.
    for line in explanation.strangers(settings.environment()):
        log.warning(line)
    if services.store is not None:
        location = services.store.place
        state = engine_of(location).check(Depth.HEADER).state
        if state.problem:
            log.warning(
                f"Cannot serve the store {location}: {state.message}. /readyz reports when the "
                "store is available."
            )
    return services


def _opened(mcp_path: str, prefix: str) -> dict[str, list[str]]:
    """For each path of a surface that needs a token, the paths that accept its tokens.

    Answers of an MCP surface link to its routes.
    """
    return {mcp_path: [mcp_path, prefix], prefix: [prefix]}


def _mount_records(app: Flask, services: Services) -> None:
    routes = mcp.blueprint(
        RecordsSurface(),
        path=MCP_PATH,
        guard=_guard(services, Access.CLIENT_TOKEN, MCP_PATH),
        open_session=partial(services.open_session, path=MCP_PATH),
        answers=AnswerCache(most) if (most := services.settings.answer_cache_bytes) else None,
        batch_messages=services.settings.batch_messages,
    )
    app.register_blueprint(routes)
    rest.mount(app, services, _guard(services, Access.CLIENT_TOKEN, rest.PREFIX))


def _mount_papers(app: Flask, services: Services) -> None:
    """Mounts papers at their own path, and at the default path if there are no records."""
    closed = bool(services.settings.papers_tokens)
    access = Access.CLIENT_TOKEN if closed else Access.OPEN
    surface = PapersSurface(private=closed)
    paths = {"mcp_papers": PAPERS_PATH} | ({} if services.authority else {"mcp": MCP_PATH})
    for name, path in paths.items():
        guard = _guard(services, access, path)
        open_session = partial(services.open_papers, path=path)
        app.register_blueprint(
            mcp.blueprint(
                surface,
                path=path,
                guard=guard,
                open_session=open_session,
                name=name,
                batch_messages=services.settings.batch_messages,
            )
        )
    rest.mount_papers(app, services, _guard(services, access, rest.PAPERS_PREFIX))


def _guard(services: Services, access: Access, path: str = MCP_PATH) -> Guard:
    """The guard of the surface at a path."""
    config = services.settings
    own = loopback_origins(config.port)
    public = origins([config.public_url]) if config.public_url else frozenset[str]()
    public_hosts = frozenset(filter(None, [urlsplit(config.public_url or "").hostname]))
    # A proxy on this machine forwards names that only a public URL would reveal.
    any_name = config.trusted_proxy_hops > 0 and not public_hosts
    return Guard(
        access=access,
        allowed_origins=own | public | frozenset(config.allowed_origins),
        allowed_hosts=(
            frozenset(config.allowed_hosts) | public_hosts if config.allowed_hosts else None
        ),
        loopback_hosts=None if any_name else public_hosts,
        metadata_url=config.base + WELL_KNOWN + path if services.issuers else None,
        scope=SCOPE if services.signins else None,
    )
