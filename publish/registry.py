"""`server.json`: how the MCP registry describes Rung."""

from typing import Any, Final

from publish.identity import Identity
from service.mcp.surface import RecordsSurface
from service.operations import OPERATIONS

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
DESCRIPTION: Final = (
    "Search your own mail, notes, chats and papers, and quote the passage that answers."
)
STORE: Final = "The path of the store. `rung import` creates it."
TOKEN: Final = "The token that rung grant create printed. Its grant limits what can be read."
#: The key of what a publisher adds.
PUBLISHER: Final = "io.modelcontextprotocol.registry/publisher-provided"


def server(identity: Identity) -> dict[str, Any]:
    """The document for the registry: a package that a host starts, and a server it connects to."""
    return {
        "$schema": SCHEMA,
        "name": identity.identity,
        "title": RecordsSurface.title,
        "description": DESCRIPTION,
        "version": identity.version,
        "repository": {"url": identity.repository, "source": "github"},
        "packages": [_package(identity)],
        "remotes": [_remote()],
        "_meta": {PUBLISHER: {"tools": [operation.name for operation in OPERATIONS]}},
    }


def _package(identity: Identity) -> dict[str, Any]:
    return {
        "registryType": "pypi",
        "identifier": identity.name,
        "version": identity.version,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [
            {"type": "positional", "value": "stdio"},
            {
                "type": "named",
                "name": "--store",
                "description": STORE,
                "format": "filepath",
                "isRequired": True,
            },
        ],
        "environmentVariables": [
            {"name": "RUNG_TOKEN", "description": TOKEN, "isRequired": True, "isSecret": True}
        ],
    }


def _remote() -> dict[str, Any]:
    return {
        "type": "streamable-http",
        "url": "https://{host}/mcp",
        "variables": {
            "host": {
                "description": "The host of your own server, with the port if it is not 443.",
                "isRequired": True,
                "placeholder": "rung.example.org",
            }
        },
        "headers": [
            {
                "name": "Authorization",
                "description": "Leave this header out to sign in, if the server supports sign-in.",
                "value": "Bearer {token}",
                "isSecret": True,
                "variables": {"token": {"description": TOKEN, "isSecret": True}},
            }
        ],
    }
