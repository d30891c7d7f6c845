"""Rung's own search inside another server, with the same token, proof and channels."""

import os
from collections.abc import Mapping
from typing import Any

from service import bootstrap, settings
from service.access.guard import Access, Guard
from service.mcp.surface import RecordsSurface

_services = bootstrap.build(settings.load(os.environ))
_surface, _guard = RecordsSurface(), Guard(Access.CLIENT_TOKEN)


def answer(query: str, limit: int, headers: Mapping[str, str]) -> dict[str, Any]:
    """The result of the tool call with the token in these headers."""
    session = _services.open_session(_guard.token(headers.get("authorization")))
    return _surface.call("search", {"query": query, "limit": limit}, session)
