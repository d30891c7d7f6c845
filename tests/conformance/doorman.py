"""A loopback door to a server elsewhere, for test programs that cannot send a token."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import requests

#: About the connection to the door, not the one behind it.
NOT_HANDED_ON = {
    "connection",
    "transfer-encoding",
    "content-encoding",
    "content-length",
    "keep-alive",
}


class Doorman(BaseHTTPRequestHandler):
    """Hands each request on, with the token added, and its answer back."""

    protocol_version = "HTTP/1.1"
    target = ""
    token: str | None = None

    def do_POST(self) -> None:
        """Also every other verb: the server behind the door answers them all."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = requests.request(
            self.command,
            self.target,
            data=body,
            headers=self._headers(),
            auth=_keep_authorization,
            timeout=30,
        )
        self.send_response_only(answer.status_code, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in NOT_HANDED_ON:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    do_GET = do_DELETE = do_PUT = do_PATCH = do_OPTIONS = do_HEAD = do_POST

    def _headers(self) -> dict[str, str]:
        """The request's headers, its own address in them replaced by the target's."""
        headers = {name: value for name, value in self.headers.items()}
        scheme, host = urlsplit(self.target)[:2]
        own = f"127.0.0.1:{self.connection.getsockname()[1]}"
        if headers.get("Host") == own:
            headers["Host"] = host
        if headers.get("Origin") == f"http://{own}":
            headers["Origin"] = f"{scheme}://{host}"
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the suite reports what it was told."""


def _keep_authorization(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keeps `requests` from putting a password from ~/.netrc in the token's place."""
    return request


@contextmanager
def doorman(target: str, token: str | None) -> Iterator[str]:
    """Opens the door and yields its URL, with the path of `target`."""
    handler = type("BoundDoorman", (Doorman,), {"target": target, "token": token})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{urlsplit(target).path}"
        finally:
            server.shutdown()
            thread.join()
