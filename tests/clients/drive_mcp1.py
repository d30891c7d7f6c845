"""Drives the official Python SDK, 1.x. Reads a task and calls, prints one JSON line per step."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from python_sign_in import provider


async def drive(task: dict[str, Any]) -> None:
    """Opens a session, lists the tools, then makes each call as it is read."""
    auth = provider(task["url"]) if task["sign_in"] else None
    async with transport(task, auth) as (read, write, *_):
        async with ClientSession(read, write) as session:
            opened = await session.initialize()
            listed = await session.list_tools()
            told(tools=[tool.name for tool in listed.tools], version=opened.protocolVersion)
            for call in map(json.loads, sys.stdin):
                if auth and call.get("expired"):
                    auth.context.token_expiry_time = 1
                result = await session.call_tool(call["tool"], call.get("arguments", {}))
                texts = [getattr(block, "text", "") for block in result.content]
                told(text="\n".join(texts), failed=bool(result.isError))


def transport(task: dict[str, Any], auth: Any) -> Any:
    """The way to the server: a process of its own, or HTTP."""
    if task["command"]:
        program, *arguments = task["command"]
        return stdio_client(StdioServerParameters(command=program, args=arguments))
    return streamablehttp_client(task["url"], headers=task["headers"], auth=auth)


def told(**step: Any) -> None:
    """One step, as a line."""
    print(json.dumps(step), flush=True)


asyncio.run(drive(json.loads(sys.stdin.readline())))
