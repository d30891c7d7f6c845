"""Debian's Firefox, driven over WebDriver BiDi, a protocol that it speaks itself.

A message is JSON: `{"id", "method", "params"}` is answered by `{"id", "type", "result"}`; messages
without an id are events.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.helpers.waiting import WAIT_SECONDS

FIREFOX = shutil.which("firefox-esr") or "/usr/bin/firefox-esr"
PREFERENCES = {
    # Pages may go on more than 200 times in 10 seconds.
    "dom.navigation.navigationRateLimit.count": 0,
    # No prompt for a password where a frame or a fetch gets an HTTP challenge.
    "network.auth.subresource-http-auth-allow": 0,
}


class Firefox:
    """A tab: opens pages, waits for an element, evaluates an expression."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._id = connection, 0
        self._ask("session.new", capabilities={})
        self._ask("session.subscribe", events=["browsingContext.load"])
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def go(self, url: str) -> None:
        self._ask("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def wait(self, selector: str) -> None:
        """Waits until a page has an element, whichever page that is by then.

        It looks again after each event and each second: a page that goes on before it has loaded
        sends no event.
        """
        latest = monotonic() + 4 * WAIT_SECONDS
        while monotonic() < latest:
            with suppress(Refused):  # the page went on
                if self.run(f"document.querySelector({json.dumps(selector)}) !== null"):
                    return
            with suppress(TimeoutError):
                self._connection.recv(1)
        raise TimeoutError(f"{selector} in {self.run('location.href')}")

    def run(self, script: str) -> Any:
        """The value of an expression in the page: a text, a number, a truth value or None."""
        found = self._ask(
            "script.evaluate", expression=script, target={"context": self._tab}, awaitPromise=False
        )
        if found["type"] != "success":
            raise Refused(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def _ask(self, method: str, **params: Any) -> Any:
        self._id += 1
        self._connection.send(json.dumps({"id": self._id, "method": method, "params": params}))
        message: dict[str, Any] = {}
        while message.get("id") != self._id:
            message = json.loads(self._connection.recv(WAIT_SECONDS))
        if message["type"] == "error":
            raise Refused(f"{method}: {message['error']}: {message['message']}")
        return message["result"]


class Refused(Exception):
    """What Firefox says of a command that it could not carry out."""


@contextmanager
def running() -> Iterator[Firefox]:
    """A Firefox without a screen, with a fresh profile."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
        (Path(folder) / "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port", "0"]
        with subprocess.Popen(
            [*command, "--profile", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                ready = next(line for line in process.stdout if "BiDi listening on ws:" in line)
                Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would block
                address = f"{ready.split()[-1]}/session"
                with connect(address, max_size=None, proxy=None) as connection:
                    yield Firefox(connection)
            finally:
                process.terminate()
