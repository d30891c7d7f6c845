"""Drives the official Python SDK, 2.x. Reads a task and calls, prints one JSON line per step."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from python_sign_in import provider


async def drive(task: dict[str, Any]) -> None:
    """Lists the tools, then makes each call as it is read."""
    auth = provider(task["url"]) if task["sign_in"] else None
    async with transport(task, auth) as way, Client(way, mode=task["mode"]) as client:
        listed = await client.list_tools()
        told(tools=[tool.name for tool in listed.tools], version=client.protocol_version)
        for call in map(json.loads, sys.stdin):
            if auth and call.get("expired"):
                auth.context.token_expiry_time = 1
            result = await client.call_tool(call["tool"], call.get("arguments", {}))
            texts = [getattr(block, "text", "") for block in result.content]
            told(text="\n".join(texts), failed=bool(result.is_error))


@asynccontextmanager
async def transport(task: dict[str, Any], auth: Any) -> AsyncIterator[Any]:
    """The way to the server: a process of its own, or HTTP."""
    if task["command"]:
        program, *arguments = task["command"]
        yield stdio_client(StdioServerParameters(command=program, args=arguments))
        return
    async with create_mcp_http_client(headers=task["headers"], auth=auth) as http:
        yield streamable_http_client(task["url"], http_client=http)


def told(**step: Any) -> None:
    """One step, as a line."""
    print(json.dumps(step), flush=True)


asyncio.run(drive(json.loads(sys.stdin.readline())))
