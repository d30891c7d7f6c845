"""Signs real clients in through the consent page, and exits with 0 only when each step works.

    python -m tests.clients.sign_in            every client
    python -m tests.clients.sign_in --short    the Python SDK and the inspector
    python -m tests.clients.sign_in --only N   the clients whose names begin with N

A client that npm or pip cannot install is left out, with the reason, except in the short form.

Each client finds out by itself how to sign in, and opens a page. The owner allows one stream there,
in Chromium. The client then searches, reads, refreshes its expired token, and is cut off when the
owner revokes the grant.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from service.place import spelled
from tests.clients.run import (
    CLIENT,
    NODE,
    SDK,
    Call,
    Client,
    Driver,
    Ended,
    Target,
    Task,
    driving,
    install,
    judge_call,
    judge_list,
    print_table,
)
from tests.helpers import worlds
from tests.helpers.server import ROOT, serving
from tests.helpers.signin import later, run_command
from tests.helpers.worlds import House

#: What opens a page on a machine with a desktop: here, an owner who decides.
OPENER = """#!/bin/sh
cd '{root}' && exec '{python}' -m tests.clients.owner '{store}' '{journal}' "$1"
"""
MCP1 = ("mcp==1.30.0",)
SIGNING_IN = (
    Client("mcp 2.3.0", "drive_mcp2.py", "auto", ("mcp==2.3.0",), short=True),
    Client("mcp 1.30.0", "drive_mcp1.py", requirements=MCP1),
    Client("typescript sdk 1.32.2", "drive_sdk.mjs", package=SDK),
    Client("typescript client 2.4.0", "drive_sdk.mjs", "auto", package=CLIENT),
    Client("inspector 2.12.0", "drive_inspector.mjs", "legacy", short=True),
    Client("inspector 2.12.0 web", "drive_inspector_web.py"),
    Client("mcp-remote 0.15.1", "drive_mcp1.py", requirements=MCP1, proxy="mcp-remote"),
    Client("Claude Code 2.1.330", "drive_agent.py", "claude"),
    Client("Codex 0.169.0", "drive_agent.py", "codex"),
)
SEARCH: Call = {
    "tool": "search",
    "arguments": {"query": "lantern"},
    "expect": "mail-work/messages:m6",
}
READ: Call = {
    "tool": "fetch",
    "arguments": {"id": "mail-work/messages:m6"},
    "expect": "hangs at work",
}

Row = tuple[str, str, str | None]


def main() -> int:
    """The exit code: 0 when every step of every client worked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="the Python SDK and the inspector")
    parser.add_argument("--only", help="the client whose name begins so")
    options = parser.parse_args()
    clients = [client for client in SIGNING_IN if client.short or not options.short]
    clients = [client for client in clients if client.name.startswith(options.only or "")]
    installed = [client for client in clients if installs(client)]
    if not installed or (options.short and installed != clients):
        return 1
    rows = [row for client in installed for row in report(client)]
    print_table(rows)
    return 0 if all(problem is None for _, _, problem in rows) else 1


def installs(client: Client) -> bool:
    """Whether a client is there now. The reason is printed if npm or pip could not get it."""
    try:
        install([client])
    except (OSError, subprocess.SubprocessError, SystemExit) as reason:
        print(f"left out: {client.name}: {reason}", flush=True)
        return False
    return True


def report(client: Client) -> Iterator[Row]:
    """(client, step, problem or None) of each step; the first that fails is the last."""
    with TemporaryDirectory() as folder:
        house = worlds.build(worlds.two_mailboxes(), Path(folder))
        journal = Path(folder) / "journal"
        journal.touch()
        environ = {**house.environment, "RUNG_SIGN_IN": "on"}
        with serving("wsgi:app", environ, workers=2) as base:
            environ = desktop(house, journal)
            task = way(client, base, environ["BROWSER"])
            task |= {"store": spelled(house.path), "journal": str(journal)}
            with driving(client, task, environ) as driver:
                for step, problem in steps(driver, house, journal):
                    yield client.name, step, problem
                    if problem:
                        return


def way(client: Client, base: str, opener: str) -> Task:
    """How a client without a token gets to the server."""
    if client.proxy:  # the SDK does not hand BROWSER on
        program = ["env", f"BROWSER={opener}", str(NODE), str(NODE.with_name(client.proxy))]
        return {"command": [*program, f"{base}/mcp"]}
    return {**Target(f"{base}/mcp", None).way(False), "sign_in": True}


def desktop(house: House, journal: Path) -> dict[str, str]:
    """The environment of a machine with an empty home, where pages open before the owner."""
    home = journal.parent / "home"
    opener = home / "bin" / "xdg-open"
    opener.parent.mkdir(parents=True)
    opener.write_text(
        OPENER.format(root=ROOT, python=sys.executable, store=spelled(house.path), journal=journal)
    )
    opener.chmod(0o755)
    path = f"{opener.parent}:{NODE.parent}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "BROWSER": str(opener), "LANG": "C.UTF-8"}


def steps(driver: Driver, house: House, journal: Path) -> Iterator[tuple[str, str | None]]:
    """(step, problem or None) of a whole sign-in."""
    try:
        listed = driver.step()
        yield "consent", judge_list(listed, [SEARCH, READ])
        yield "search", judge_call(driver.step(SEARCH), SEARCH)
        yield "read", judge_call(driver.step(READ), READ)
        later(house, 3_601)
        yield "refresh", judge_call(driver.step({**SEARCH, "expired": True}), SEARCH)
    except Ended as ended:
        yield "", str(ended)
        return
    visits = len(journal.read_text().splitlines())
    yield "one consent", None if visits == 1 else f"{visits} visits to the owner"
    run_command(house, "grant", "revoke", run_command(house, "grant", "list").split()[0])
    try:
        step = driver.step(SEARCH)
    except Ended as ended:
        yield "cut off", str(ended) if ended.waited else None
    else:
        yield "cut off", None if step["failed"] else f"it still reads: {step['text'][:200]}"


if __name__ == "__main__":
    sys.exit(main())
