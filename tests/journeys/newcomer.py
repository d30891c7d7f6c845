"""A newcomer's first search: the README's commands, a client's own file, an agent that reads on.

Nothing is known here but what the README, the client's file and the answers say.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from evidence.text import unescape
from tests.helpers.loopback import free_port
from tests.helpers import pages
from tests.helpers.reading import Call, fenced, printed_calls
from tests.helpers.server import QUICK, ROOT

QUESTION = "quorum"
SENTENCE = "The quorum met beneath the elm."
FILE = "mcp.json"
REVISION = "2025-11-25"
MOST_READS = 200


@dataclass(slots=True)
class Walk:
    """What happened: commands with what they printed, messages with their answers."""

    commands: list[tuple[str, str]] = field(default_factory=list)
    file: str = ""
    messages: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    reads: list[tuple[Call, str]] = field(default_factory=list)
    found: str = ""
    token: str = ""

    @property
    def text(self) -> str:
        """The field, from the first window to its end."""
        return "".join(unescape(shown) for _, answer in self.reads for shown in fenced(answer))


def readme() -> list[str]:
    """Every command of the README, in order."""
    lines = []
    for block in pages.blocks(ROOT / "README.md"):
        if block.language == "sh":
            lines += block.text.splitlines()
        elif block.language == "console":
            lines += block.prompted()
    return lines


def the(beginning: str) -> str:
    """The first command of the README that begins so."""
    return next(line for line in readme() if line.startswith(beginning))


@contextmanager
def demo(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What `make demo` starts, at a free port: its address, and what it printed first."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^demo:.*\n\t@\$\(VENV\)/bin/(rung .+)$", makefile, re.MULTILINE)
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "service", *recipe.replace("$(PORT)", str(port)).split()[1:]],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            if "Listening at" in line:
                break
            said += line
        assert process.poll() is None, said
        yield f"127.0.0.1:{port}", said.partition('\n{"time"')[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def walk(folder: Path, client: str) -> Walk:
    """From an empty folder to the end of the text the sentence stands in."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RUNG_")}
    environ |= {**QUICK, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    connect = the(f'rung connect "$RUNG_URL" --client {client}').removesuffix(" --dry-run")
    connect += f" --config {FILE} --inline-token"
    with demo(folder, environ) as (served, said):
        walked = Walk(commands=[(the("make "), said)])
        commands = [the("export "), connect]
        script = "\n".join(commands).replace(pages.SERVED, served)
        done = subprocess.run(
            ["bash", "-euc", f"(\n{script}\n) 2>&1"],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        walked.commands += [(commands[0], ""), (connect, done.stdout)]
        walked.token = (folder / "var/demo-token").read_text(encoding="utf-8").strip()
        walked.file = (folder / FILE).read_text(encoding="utf-8")
        Agent(walked).answer(QUESTION)
        _name_as_the_readme(walked, served)
    return walked


class Agent:
    """A client with a model in it, as far as the wire sees one."""

    def __init__(self, walked: Walk) -> None:
        (server,) = json.loads(walked.file)["mcpServers"].values()
        assert server.get("type", "http") == "http"
        self.url, self.headers = server["url"], server["headers"]
        self.walked, self.sent = walked, 0

    def answer(self, words: str) -> None:
        """Looks for words, opens the text at the first match, and reads on to its end."""
        hello = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "newcomer", "version": "1"},
        }
        settled = self._ask("initialize", hello)["protocolVersion"]
        self.headers = {**self.headers, "MCP-Protocol-Version": settled}
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        names = {tool["name"] for tool in self._ask("tools/list", {})["tools"]}
        self.walked.found = self._call(Call("search", {"query": words}))
        following = printed_calls(self.walked.found)[:1]
        while following:
            assert following[0].tool in names and len(self.walked.reads) < MOST_READS
            answer = self._call(following[0])
            self.walked.reads.append((following[0], answer))
            following = [call for call in printed_calls(answer) if call.why == "next"]

    def _call(self, call: Call) -> str:
        result = self._ask("tools/call", {"name": call.tool, "arguments": call.args})
        assert not result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.sent += 1
        message = {"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}
        answer = json.loads(self._send(message))
        self.walked.messages.append((message, answer))
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, message: dict[str, Any]) -> bytes:
        headers = {
            **self.headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        with urlopen(Request(self.url, json.dumps(message).encode(), headers)) as answer:
            body: bytes = answer.read()
            return body


def _name_as_the_readme(walked: Walk, served: str) -> None:
    """The port and the token of this walk are nobody's business."""

    def plain(text: str) -> str:
        return text.replace(served, pages.SERVED).replace(walked.token, "rung_…")

    walked.commands = [(command, plain(said)) for command, said in walked.commands]
    walked.file = plain(walked.file)
