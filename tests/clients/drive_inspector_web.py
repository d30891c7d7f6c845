"""Drives the page of the inspector in Chromium, where its user is the owner as well.

Task and calls on stdin, a JSON line per step.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import launched
from tests.clients import owner
from tests.clients.run import STEP_SECONDS

BIN = Path(__file__).parent / "node_modules" / ".bin"
SERVED = re.compile(r"http://127\S+TOKEN=\S+")
#: What comes of a call: an answer, or a page of the server that asks for consent again.
CAME = ':text-is("Results"), h1:has-text("Sign in as"), h1:has-text("Allow an application")'


@contextmanager
def inspector(url: str) -> Iterator[str]:
    """The URL of an inspector for this server, without a browser of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {"CLIENT_PORT": str(port), "MCP_AUTO_OPEN_ENABLED": "false"}
    own["MCP_INSPECTOR_SECRET_STORE"] = "file"
    command = [BIN / "node", BIN / "mcp-inspector", "--web", "--transport", "http"]
    with subprocess.Popen(
        [*command, "--server-url", url],
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield next(found[0] for line in process.stdout if (found := SERVED.search(line)))
        finally:
            process.kill()


def call(page: Page, tool: str, arguments: str) -> dict[str, object]:
    """The answer that the page shows of a call."""
    page.get_by_role("button", name=re.compile("schema$")).click()  # drops the answer before
    page.get_by_role("button", name=re.compile(rf"\b{tool}$")).click()
    page.get_by_role("switch", name="Edit as JSON").click(force=True)
    page.get_by_label("Arguments JSON").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(arguments)
    page.get_by_role("button", name="Execute Tool").click()
    page.locator(CAME).first.wait_for()
    text = page.inner_text("body")
    return {"text": text, "failed": "Sign in as the owner" in text or "Allow an" in text}


def main() -> None:
    task = json.loads(sys.stdin.readline())
    with inspector(task["url"]) as address, sync_playwright() as playwright:
        page = launched(playwright).new_page()
        page.set_default_timeout(STEP_SECONDS * 1_000)
        page.goto(address)
        page.get_by_role("switch", name="Connect or disconnect").click(force=True)
        page.wait_for_url("**/authorize?*")
        owner.visit(page, task["store"], task["journal"], page.url)
        page.get_by_text("Tools", exact=True).first.click()
        page.get_by_role("button", name=re.compile("schema$")).wait_for()
        shown = page.get_by_role("button").all_inner_texts()
        tools = [text.split()[-1] for text in shown if "\n" in text]  # a title, then the name
        print(json.dumps({"tools": tools, "version": "web"}), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            answer = call(page, asked["tool"], json.dumps(asked["arguments"]))
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
