"""Sign-in for the drivers of the Python SDK: its memory, its browser and its callback."""

import asyncio
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared import auth


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


class Callback(ThreadingHTTPServer):
    """Waits for the browser to come back."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.queries: Queue[dict[str, str]] = Queue()
        Thread(target=self.serve_forever, daemon=True).start()

    async def __call__(self) -> Any:
        """Returns the code in the form of the SDK's major version."""
        query = await asyncio.to_thread(self.queries.get)
        if "error" in query:
            raise PermissionError(query["error"])
        found = {name: query.get(name) for name in ("code", "state", "iss")}
        if hasattr(auth, "AuthorizationCodeResult"):
            return auth.AuthorizationCodeResult(**found)
        return found["code"], found["state"]


class _Page(BaseHTTPRequestHandler):
    server: Callback

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"You can close this page.")
        path = urlsplit(self.path)
        if path.path == "/callback":
            self.server.queries.put(dict(parse_qsl(path.query)))

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


async def open_browser(url: str) -> None:
    """Starts what opens pages here, and does not wait for it."""
    subprocess.Popen(["xdg-open", url], stdout=subprocess.DEVNULL)


def provider(url: str) -> OAuthClientProvider:
    """Returns the authentication of a client that registers itself."""
    callback = Callback()
    redirect = f"http://127.0.0.1:{callback.server_port}/callback"
    metadata = auth.OAuthClientMetadata(client_name="Python SDK", redirect_uris=[redirect])
    return OAuthClientProvider(url, metadata, Memory(), open_browser, callback)
