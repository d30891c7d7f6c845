"""Drives Claude Code or Codex, by task.mode. Reads a task and calls, prints one JSON line per step.

Neither needs an account to sign in to a server. Their model is a script on loopback: it asks for
the tool of the call, and ends the turn when the result comes back.
"""

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

BIN = Path(__file__).with_name("agents") / "node_modules" / ".bin"
HOME = Path(os.environ["HOME"])
SERVER = "rung"
Event = dict[str, Any]


class Agent(ABC):
    """One agent: how it is set up and asked, and what its model reads and writes."""

    environ: dict[str, str]
    turn: tuple[str, ...]
    tools: tuple[str, ...] = ()
    call: dict[str, Any] | None = None
    result: dict[str, Any] | None = None

    def run(self, *command: str) -> str:
        """Runs the agent; returns what it printed."""
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=HOME,
            env={**os.environ, **self.environ},
        )
        return done.stdout

    def ask(self, call: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns the step of one turn, in which the model makes this call."""
        self.call, self.result, self.tools = call, None, ()
        words = self.run(*self.turn)
        if call is None:
            return {"tools": self.tools, "text": words}
        return self.result or {"text": words, "failed": True}

    def answer(self, body: dict[str, Any]) -> Iterator[Event]:
        """Returns the events of the model's answer to a request."""
        self.tools = self.tools or tuple(self.listed(body))
        self.result = self.result or self.returned(body)
        wanted = self.call and self.call["tool"] in self.tools and not self.result
        return self.events(self.call if wanted else None)

    @abstractmethod
    def sign_in(self, url: str) -> str:
        """Adds the server and signs in; returns what was printed."""

    @abstractmethod
    def listed(self, body: dict[str, Any]) -> Iterator[str]:
        """Returns the server's tools that the model is offered."""

    @abstractmethod
    def returned(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the result of the call, if it is in a request."""

    @abstractmethod
    def events(self, call: dict[str, Any] | None) -> Iterator[Event]:
        """Returns an answer that makes a call, or one that ends the turn."""


class Claude(Agent):
    """Claude Code, with a model behind the Messages API."""

    prefix = f"mcp__{SERVER}__"
    turn = (f"{BIN}/claude", "-p", "Go.", "--allowedTools", f"mcp__{SERVER}")

    def __init__(self, model: str) -> None:
        self.environ = {
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "TERM": "xterm",
        }

    def sign_in(self, url: str) -> str:
        claude = self.turn[0]
        added = self.run(claude, "mcp", "add", "--transport", "http", SERVER, url)
        login = f"{claude} mcp login {SERVER}"  # it wants a terminal
        return added + self.run("script", "--quiet", "--return", "--command", login, "/dev/null")

    def listed(self, body: dict[str, Any]) -> Iterator[str]:
        names = (tool["name"] for tool in body.get("tools", []))
        return (name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix))

    def returned(self, body: dict[str, Any]) -> dict[str, Any] | None:
        for block in body["messages"][-1]["content"]:
            if isinstance(block, dict) and block["type"] == "tool_result":
                return {"text": text_of(block["content"]), "failed": block.get("is_error", False)}
        return None

    def events(self, call: dict[str, Any] | None) -> Iterator[Event]:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "script"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
        if call:
            name = self.prefix + call["tool"]
            block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
            given = json.dumps(call.get("arguments", {}))
            delta = {"type": "input_json_delta", "partial_json": given}
        ended = {"stop_reason": "tool_use" if call else "end_turn"}
        yield {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": ended, "usage": usage}
        yield {"type": "message_stop"}


class Codex(Agent):
    """Codex, with a model behind the Responses API."""

    namespace = f"mcp__{SERVER}"
    turn = (f"{BIN}/codex", "exec", "--skip-git-repo-check", "Go.")

    def __init__(self, model: str) -> None:
        folder = HOME / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            'model = "script"\nmodel_provider = "script"\n'
            f'[model_providers.script]\nname = "script"\nbase_url = "{model}"\n'
            'wire_api = "responses"\n[analytics]\nenabled = false\n'
        )
        self.environ = {"CODEX_HOME": str(folder)}

    def sign_in(self, url: str) -> str:
        return self.run(self.turn[0], "mcp", "add", SERVER, "--url", url)

    def listed(self, body: dict[str, Any]) -> Iterator[str]:
        for space in body["tools"]:
            if space.get("name") == self.namespace:
                yield from (tool["name"] for tool in space["tools"])

    def returned(self, body: dict[str, Any]) -> dict[str, Any] | None:
        item = body["input"][-1]
        if item["type"] != "function_call_output":
            return None
        return {"text": text_of(item["output"]), "failed": False}

    def events(self, call: dict[str, Any] | None) -> Iterator[Event]:
        content = [{"type": "output_text", "text": "Done."}]
        item: Event = {"type": "message", "role": "assistant", "id": "m", "content": content}
        if call:
            item = {
                "type": "function_call",
                "call_id": "call_1",
                "namespace": self.namespace,
                "name": call["tool"],
                "arguments": json.dumps(call.get("arguments", {})),
            }
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        yield {"type": "response.output_item.done", "item": item}
        yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


def text_of(content: Any) -> str:
    """The text of a result: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)


class Model(BaseHTTPRequestHandler):
    """Answers the requests of the agent to its model."""

    agent: Agent

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in self.agent.answer(body):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def told(step: dict[str, Any]) -> None:
    """One step, as a line."""
    print(json.dumps(step), flush=True)


task = json.loads(sys.stdin.readline())
with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
    Thread(target=server.serve_forever, daemon=True).start()
    kind = {"claude": Claude, "codex": Codex}[task["mode"]]
    Model.agent = agent = kind(f"http://127.0.0.1:{server.server_port}")
    print(agent.sign_in(task["url"]), file=sys.stderr)
    told(agent.ask())
    for line in sys.stdin:
        told(agent.ask(json.loads(line)))
