"""Drives real MCP clients against a server, and exits with 0 only when each step of each works.

    python -m tests.clients.run                                    our fixture server
    python -m tests.clients.run --url URL [--token T] [--plan F]   a running server
    python -m tests.clients.run --demo                             the main job on a demo store,
                                                                   over HTTP and over stdio
    python -m tests.clients.run --short                            a few clients instead of all

With --demo, programs that convert tools for the vendors of models do the same on both surfaces.

A plan is a JSON list of calls: `{"tool": …, "arguments": {…}, "expect": text in the answer}`.
Each client first lists the tools, then makes the calls in order. A client's driver only reports
what the client told it; whether that is right is judged here, by one rule for all.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from sqlite3 import connect
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from typing import IO, Any

from service.demo import papers
from service.demo.fill import fill, token_for
from service.records.sqlite.writer import open_writer
from tests.helpers.demo import journey
from tests.helpers.packages import install_node_packages
from tests.helpers.server import serving

HERE = Path(__file__).resolve().parent
NODE = HERE / "node_modules" / ".bin" / "node"
STEP_SECONDS = 60

Call = dict[str, Any]
Step = dict[str, Any]
Task = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """A server to drive; `command` starts it as a process of the client's, where it has a store."""

    url: str
    token: str | None
    command: tuple[str, ...] = ()

    def way(self, stdio: bool) -> Task:
        """How a client gets there, as its driver is told."""
        if stdio:
            return {"command": self.command}
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"command": None, "url": self.url, "headers": headers}


@dataclass(frozen=True)
class Client:
    """One client in one mode. Python clients have an environment of their own, by requirements.

    A `proxy` is a program of npm that the client starts to get to a URL.
    """

    name: str
    driver: str
    mode: str | None = None
    requirements: tuple[str, ...] = ()
    package: str | None = None
    proxy: str | None = None
    short: bool = False
    stdio: bool = False

    @property
    def environment(self) -> Path:
        return HERE / ".envs" / self.requirements[0].replace("==", "-")

    @property
    def packages(self) -> Path | None:
        """The folder of the packages of npm that it needs, if any."""
        if self.driver == "drive_agent.py":
            return HERE / "agents"
        return HERE if self.proxy or not self.requirements else None

    @property
    def command(self) -> list[str]:
        runner = Path(sys.executable) if self.driver.endswith(".py") else NODE
        if self.requirements:
            runner = self.environment / "bin" / "python"
        return [str(runner), str(HERE / self.driver)]


SDK, CLIENT = "@modelcontextprotocol/sdk", "@modelcontextprotocol/client"

OVER_HTTP = (
    Client("mcp 2.3.0 auto", "drive_mcp2.py", "auto", ("mcp==2.3.0",), short=True),
    Client("mcp 2.3.0 legacy", "drive_mcp2.py", "legacy", ("mcp==2.3.0",)),
    Client("mcp 1.30.0", "drive_mcp1.py", requirements=("mcp==1.30.0",)),
    Client("mcp 1.9.4", "drive_mcp1.py", requirements=("mcp==1.9.4", "pydantic<2.12")),
    Client("typescript sdk 1.32.2", "drive_sdk.mjs", package=SDK),
    Client("typescript client 2.4.0 auto", "drive_sdk.mjs", "auto", package=CLIENT),
    Client("typescript client 2.4.0 legacy", "drive_sdk.mjs", "legacy", package=CLIENT),
    Client("inspector 2.12.0 modern", "drive_inspector.mjs", "modern", short=True),
    Client("inspector 2.12.0 legacy", "drive_inspector.mjs", "legacy", short=True),
)
#: The same over stdio. For the short form one of each era is enough.
SHORT_STDIO = ("mcp 2.3.0 auto", "inspector 2.12.0 legacy")
OVER_STDIO = tuple(
    replace(client, name=f"{client.name} stdio", stdio=True, short=client.name in SHORT_STDIO)
    for client in OVER_HTTP
)


#: Programs that convert tools for the vendors of models, all in one environment.
CONVERTERS = tuple(
    Client(
        mode,
        "drive_converter.py",
        mode,
        ("google-genai==3.6.1", "openai-agents==0.24.0", "langchain-mcp-adapters==0.3.2"),
    )
    for mode in ("genai", "agents", "agents strict", "langchain")
)


def main() -> int:
    """The exit code: 0 when every step of every client worked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="a running server; our fixture server otherwise")
    parser.add_argument("--token", help="a client token for that server")
    parser.add_argument("--plan", type=Path, default=HERE / "plan.json", help="the calls to make")
    parser.add_argument("--demo", action="store_true", help="serve the demo, do the main job")
    parser.add_argument("--short", action="store_true", help="one Python client and the inspector")
    options = parser.parse_args()
    calls = json.loads(options.plan.read_text(encoding="utf-8"))
    known = [*OVER_HTTP, *(OVER_STDIO if options.demo else ())]
    clients = [client for client in known if client.short or not options.short]
    install([*clients, *(CONVERTERS if options.demo else ())])
    with demo() if options.demo else target(options.url, options.token) as found:
        rows = []
        if options.demo:
            calls = journey(found.url, found.token or "")
            library = replace(found, url=f"{found.url}/papers")
            for client in CONVERTERS:
                rows += [*report(client, found, [*calls, *MORE])]
                rows += [*report(client, library, paper_calls())]
        rows += [row for client in clients for row in report(client, found, calls)]
    print_table(rows)
    return 0 if all(problem is None for _, _, problem in rows) else 1


#: The tools that the journey does not need.
MORE: list[Call] = [
    {
        "tool": "aggregate",
        "arguments": {"stream": "events", "metric": "count", "group_by": "place"},
        "expect": "groups=",
    },
]


def paper_calls() -> list[Call]:
    """One call of each tool on the demo's papers."""
    with TemporaryDirectory() as folder, closing(connect(papers.write(Path(folder)))) as snapshot:
        ((paper, title),) = snapshot.execute("SELECT paper_id, title FROM paper LIMIT 1")
    by_id = {"paper_id": paper}
    return [
        {"tool": "search_papers", "arguments": {"query": title}, "expect": title},
        {"tool": "search_papers_by_keyword", "arguments": {"keyword": "a"}, "expect": "papers="},
        {"tool": "get_paper_metadata", "arguments": by_id, "expect": title},
        {"tool": "get_paper_summary", "arguments": by_id, "expect": "get_paper_summary"},
        {"tool": "get_paper_source", "arguments": by_id, "expect": "get_paper_source"},
        {"tool": "list_top_facets", "arguments": {"category": "year"}, "expect": "values="},
    ]


@contextmanager
def target(url: str | None, token: str | None) -> Iterator[Target]:
    """The server to drive; the fixture server, behind its token, by default."""
    if url is not None:
        yield Target(url, token)
        return
    with serving("tests.helpers.fixture_app:create_app()") as base:
        yield Target(f"{base}/private/mcp", "good")


@contextmanager
def demo() -> Iterator[Target]:
    """A demo store, served over HTTP and ready to be served over stdio."""
    with TemporaryDirectory() as folder:
        store, kept = Path(folder) / "rung.db", Path(folder) / "token"
        environ = {"RUNG_STORE": str(store), "RUNG_PAPERS_DB": str(papers.write(Path(folder)))}
        with open_writer(store) as writer:
            token = token_for(writer, fill(writer), kept)
        options = ("--store", str(store), "--token-file", str(kept))
        with serving("wsgi:app", environ) as base:
            command = (sys.executable, "-m", "service", "stdio", *options)
            yield Target(f"{base}/mcp", token, command)


def install(clients: list[Client]) -> None:
    """Installs the pinned clients beside this file, each once."""
    for client in clients:
        if client.packages:
            install_node_packages(client.packages)
        if client.requirements and not (client.environment / "installed").exists():
            subprocess.run([sys.executable, "-m", "venv", client.environment], check=True)
            pip = [*client.command[:1], "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, *client.requirements], check=True)
            (client.environment / "installed").touch()


def report(
    client: Client, target: Target, calls: list[Call]
) -> Iterator[tuple[str, str, str | None]]:
    """(client, step, problem or None) of each step, also of those that were never reached."""
    with driving(client, target.way(client.stdio)) as driver:
        for name, call in [("tools/list", None), *((call["tool"], call) for call in calls)]:
            try:
                step = driver.step(call)
            except Ended as ended:
                yield client.name, name, str(ended)
            else:
                version = "" if call else f" ({step['version']})"
                judged = judge_call(step, call) if call else judge_list(step, calls)
                yield client.name, name + version, judged


class Ended(Exception):
    """The client ended; the text is its last words. `waited` if it had to be ended."""

    def __init__(self, words: str, *, waited: bool) -> None:
        super().__init__(f"no answer in {STEP_SECONDS} seconds: {words}" if waited else words)
        self.waited = waited


class Driver:
    """A running driver: a call goes in, a step comes out."""

    def __init__(self, process: "subprocess.Popen[str]", log: IO[str]) -> None:
        self._process, self._log = process, log

    def step(self, call: Call | None = None) -> Step:
        """Returns what came of a call, or of the list of tools, the first step.

        Raises `Ended` if the driver ended, or did not answer in time.
        """
        assert self._process.stdout is not None
        began, timer = time.monotonic(), Timer(STEP_SECONDS, self.end)
        timer.start()
        if call is not None:
            self.send(call)
        line = next((line for line in self._process.stdout if line.startswith("{")), None)
        timer.cancel()
        if line is None:
            self._log.seek(0)
            waited = time.monotonic() - began >= STEP_SECONDS
            raise Ended(last_words(self._log.read()), waited=waited)
        step: Step = json.loads(line)
        return step

    def send(self, message: Task) -> None:
        """Writes a line for the driver; one that ended is noticed when its step is read."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Ends the driver and everything that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def driving(client: Client, way: Task, env: Mapping[str, str] = os.environ) -> Iterator[Driver]:
    """A running driver. Its task goes by stdin, out of `ps`."""
    task = {"sign_in": False, **way, "mode": client.mode, "package": client.package}
    with (
        TemporaryFile("w+") as log,
        subprocess.Popen(
            client.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=HERE,
            env={**env, "PYTHONPATH": str(HERE.parents[1])},
            start_new_session=True,
        ) as process,
    ):
        driver = Driver(process, log)
        assert process.stdin is not None
        try:
            driver.send(task)
            yield driver
        finally:
            driver.end()
            with suppress(BrokenPipeError):
                process.stdin.close()


def last_words(log: str) -> str:
    """The line of a log that says most about why its program ended."""
    lines = [line.strip(" |+-") for line in log.splitlines() if line.strip(" |+-")]
    errors = [line for line in lines if "Error" in line and not line.startswith("at ")]
    return (errors or lines or ["it ended without a word"])[-1][:300]


def judge_list(step: Step, calls: list[Call]) -> str | None:
    """What is wrong with a list of tools: it must hold every tool of the plan."""
    missing = {call["tool"] for call in calls} - set(step["tools"])
    return f"not listed: {', '.join(sorted(missing))}" if missing else None


def judge_call(step: Step, call: Call) -> str | None:
    """What is wrong with an answer: it must be no error and hold what the plan expects."""
    if step["failed"]:
        return f"error: {step['text'][:200]}"
    expected = call.get("expect", "")
    return None if expected in step["text"] else f"no {expected!r} in {step['text'][:200]!r}"


def print_table(rows: list[tuple[str, str, str | None]]) -> None:
    """One line per client and step, problems spelled out."""
    width = max(len(name) for name, _, _ in rows)
    for name, step, problem in rows:
        print(f"{'ok    ' if problem is None else 'FAILED'}  {name:<{width}}  {step}")
        if problem is not None:
            print(f"        {problem}")


if __name__ == "__main__":
    sys.exit(main())
