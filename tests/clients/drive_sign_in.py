"""Signs in with the official Python SDK, 2.x. Speaks in JSON lines with who plays the owner.

It prints `{"open": URL}` for each page it wants a browser to open and reads what comes back, and
prints `{"text": …}` after each search. Before each further search it reads a line.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


class Memory:
    """Keeps what the SDK wants kept."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def drive(url: str, redirect: str) -> None:
    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=[redirect])
    auth = OAuthClientProvider(url, metadata, Memory(), opened, came_back)
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            for _ in range(2):
                result = await client.call_tool("search", {"query": "lantern"})
                told(text="\n".join(getattr(block, "text", "") for block in result.content))
                heard()
                auth.context.token_expiry_time = 1
            await client.call_tool("search", {"query": "lantern"})


async def opened(url: str) -> None:
    told(open=url)


async def came_back() -> AuthorizationCodeResult:
    return AuthorizationCodeResult(**heard())


def told(**step: Any) -> None:
    print(json.dumps(step), flush=True)


def heard() -> Any:
    return json.loads(sys.stdin.readline() or sys.exit("nobody is there"))


asyncio.run(drive(*sys.argv[1:]))
