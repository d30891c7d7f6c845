"""Drives a program that converts tools for a model's vendor, by task.mode, as other drivers do.

Every tool is converted; the calls are then made through the converted tools. There is no model:
the arguments of a call are those that it would write.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

Call = Callable[[str, dict[str, Any]], Awaitable[str]]
#: Arguments whose largest value a model may pick if it must pick one.
SIZES = ("limit", "page_size", "limit_chars", "max_chars")


async def session_of(task: dict[str, Any], stack: AsyncExitStack) -> ClientSession:
    read, write, _ = await stack.enter_async_context(
        streamablehttp_client(task["url"], headers=task["headers"])
    )
    session = await stack.enter_async_context(ClientSession(read, write))
    await session.initialize()
    return session


async def genai(task: dict[str, Any], stack: AsyncExitStack) -> tuple[list[str], Call]:
    """Google's SDK: Gemini refuses objects without properties and unknown types."""
    from google.genai import types
    from google.genai._adapters import McpToGenAiToolAdapter

    session = await session_of(task, stack)
    adapter = McpToGenAiToolAdapter(session, await session.list_tools())
    converted = [one for tool in adapter.tools for one in tool.function_declarations or ()]
    for one in converted:
        check_gemini(one.parameters)

    async def call(name: str, args: dict[str, Any]) -> str:
        result = await adapter.call_tool(types.FunctionCall(name=name, args=args))
        assert not result.isError, result
        return "\n".join(getattr(block, "text", "") for block in result.content)

    return [str(one.name) for one in converted], call


def check_gemini(schema: Any) -> None:
    """Fails where the API answers 400: an object without properties, a list without items."""
    assert schema.type is not None
    assert schema.properties or schema.type.value != "OBJECT", schema
    assert schema.items or schema.type.value != "ARRAY", schema
    for inner in [*(schema.properties or {}).values(), *filter(None, [schema.items])]:
        check_gemini(inner)


async def agents(task: dict[str, Any], stack: AsyncExitStack) -> tuple[list[str], Call]:
    """OpenAI's Agents SDK; in strict mode a model must write every argument."""
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStreamableHttp, MCPUtil
    from agents.tool_context import ToolContext

    way = {"url": task["url"], "headers": task["headers"]}
    server = await stack.enter_async_context(MCPServerStreamableHttp(params=way))
    strict = task["mode"].endswith("strict")
    listed = await MCPUtil.get_function_tools(
        server, strict, RunContextWrapper(None), Agent(name="reader")
    )
    tools: dict[str, Any] = {tool.name: tool for tool in listed}
    if strict:  # a tool with an open object is left as it is
        assert any(tool.strict_json_schema for tool in tools.values())
        assert all(open_objects(tool) != tool.strict_json_schema for tool in tools.values())

    async def call(name: str, args: dict[str, Any]) -> str:
        tool = tools[name]
        if tool.strict_json_schema:
            args = filled(tool.params_json_schema["properties"], args)
        text = json.dumps(args)
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        return str(await tool.on_invoke_tool(context, text))

    return list(tools), call


def filled(properties: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """The arguments with a value for each: nothing, or the default that its description names."""
    kinds: dict[str, Any] = {"string": "", "array": [], "object": {}, "boolean": False}
    return {
        name: args.get(
            name,
            shape.get("enum", [None])[0]
            or kinds.get(shape["type"], shape.get("maximum" if name in SIZES else "minimum")),
        )
        for name, shape in properties.items()
    }


def open_objects(tool: Any) -> bool:
    shapes = tool.params_json_schema["properties"].values()
    return any(shape["type"] == "object" for shape in shapes)


async def langchain(task: dict[str, Any], stack: AsyncExitStack) -> tuple[list[str], Call]:
    """LangChain's adapter."""
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.tools import load_mcp_tools

    tools = {tool.name: tool for tool in await load_mcp_tools(await session_of(task, stack))}
    for tool in tools.values():
        assert convert_to_openai_tool(tool)["function"]["parameters"]["properties"]

    async def call(name: str, args: dict[str, Any]) -> str:
        blocks = await tools[name].ainvoke(args)
        return blocks if isinstance(blocks, str) else "\n".join(one["text"] for one in blocks)

    return list(tools), call


MODES = {"genai": genai, "agents": agents, "agents strict": agents, "langchain": langchain}


async def drive(task: dict[str, Any]) -> None:
    """Converts all tools, then makes each call as it is read."""
    async with AsyncExitStack() as stack:
        names, call = await MODES[task["mode"]](task, stack)
        told(tools=names, version=task["mode"])
        for one in map(json.loads, sys.stdin):
            try:
                text = await call(one["tool"], one.get("arguments", {}))
                told(text=text, failed="error code=" in text)
            except Exception as error:
                told(text=repr(error), failed=True)


def told(**step: Any) -> None:
    """One step, as a line."""
    print(json.dumps(step), flush=True)


asyncio.run(drive(json.loads(sys.stdin.readline())))
