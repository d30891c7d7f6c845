"""Applications that serve the fixture surface, for tests and for `serving`."""

import os

from flask import Flask

from service.access.guard import Access, Guard, loopback_origins, origins
from service.mcp.blueprint import blueprint
from tests.helpers.fixture_surface import FixtureSurface, open_session

ORIGIN = "https://app.example"


def create_app(guard: Guard | None = None) -> Flask:
    """Serves the fixture surface at `/mcp` to all, and at `/private/mcp` to the token `good`."""
    port = int(os.environ.get("PORT", "8000"))
    allowed = origins([ORIGIN]) | loopback_origins(port)
    open_guard = guard or Guard(Access.OPEN, allowed)
    token_guard = Guard(Access.CLIENT_TOKEN, allowed)
    app = Flask(__name__)
    app.register_blueprint(
        blueprint(FixtureSurface(), path="/mcp", guard=open_guard, open_session=open_session)
    )
    app.register_blueprint(
        blueprint(
            FixtureSurface(private=True),
            path="/private/mcp",
            guard=token_guard,
            open_session=open_session,
            name="private",
        )
    )
    return app
