"""A file server on loopback that can misbehave in every way that a reader must survive."""

import gzip
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Literal
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.helpers.loopback import running

Mode = Literal[
    "good",
    "404",
    "500",
    "html",
    "stall",
    "drip_head",
    "drip_body",
    "drip_open",
    "reset",
    "wrong_length",
    "redirect_same",
    "redirect_other",
    "redirect_loop",
    "redirect_body",
    "gzip",
    "gzip_bomb",
    "huge",
    "chunked_huge",
    "cookie",
    "close",
]

CENTURY = datetime(2120, 1, 1)
DRIP_SECONDS = 0.02
HUGE_PIECE = b"x" * 1_048_576
HUGE_PIECES = 4_096
HTML = b"<!doctype html><title>Not what was asked for</title>"
BOMB = gzip.compress(b"\0" * 67_108_864)


class AssetServer(ThreadingTCPServer):
    """Serves `files` (path: bytes) over HTTP in a `mode`, which may change at any time."""

    request_queue_size = 64

    def __init__(self, files: Mapping[str, bytes], mode: Mode, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.mode = mode
        self.tls = tls
        self.header = "X-Nothing: 1"
        self.other = "http://127.0.0.1:9"
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"{'https' if self.tls else 'http'}://{host!s}:{port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: readers that hang up are part of the tests."""

    def end(self) -> None:
        """Stops every answer and cuts every connection."""
        self.closing.set()
        self.shutdown()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def certificate(folder: Path, ends: datetime = CENTURY) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for 127.0.0.1, and a server's TLS context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    host = x509.IPAddress(ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1))
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(signed.public_bytes(Encoding.PEM))
    whole = folder / "with-key.pem"
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    whole.write_bytes(plain + path.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(whole)
    return path, context


@contextmanager
def asset_server(
    files: Mapping[str, bytes], mode: Mode = "good", tls: ssl.SSLContext | None = None
) -> Iterator[AssetServer]:
    """Runs a server. On exit it stops, along with every answer it is still sending."""
    with AssetServer(files, mode, tls) as server, running(server, server.end):
        yield server


class _Handler(StreamRequestHandler):
    server: AssetServer

    def setup(self) -> None:
        if self.server.tls is not None:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def handle(self) -> None:
        self.server.connections.append(self.connection)
        if self.server.closing.is_set():  # too late to be cut
            return
        with suppress(OSError):
            while line := self.rfile.readline():
                headers = {}
                while (header := self.rfile.readline().strip()) != b"":
                    name, _, value = header.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                path = line.split()[1].decode()
                self.server.paths.append(path)
                self.server.headers.append(headers)
                if not self._answer(self.server.mode, path):
                    return

    def _answer(self, mode: Mode, path: str) -> bool:
        """Answers a request; returns whether the connection may be kept open."""
        body = self.server.files.get(unquote(path))
        if mode == "good" or (mode == "redirect_same" and body is not None):
            self._send("404 Not Found" if body is None else "200 OK", body or b"")
            return True
        if mode == "cookie":
            self._send("200 OK", body or b"", "Set-Cookie: tasty=1; Path=/")
            return True
        if mode in ("redirect_same", "redirect_other", "redirect_loop", "redirect_body"):
            self._redirect(mode, path)
            return mode != "redirect_body"
        self._misbehave(mode, body or b"")
        return False

    def _redirect(self, mode: Mode, path: str) -> None:
        target = {
            "redirect_same": unquote(path).removeprefix("/moved"),
            "redirect_other": f"{self.server.other}{path}",
        }.get(mode, path)
        if mode == "redirect_body":
            self._write(f"HTTP/1.1 302 Found\r\nLocation: {target}x\r\n\r\n".encode())
            self._flood()
        else:
            self._send("302 Found", b"moved", f"Location: {target}")

    def _misbehave(self, mode: Mode, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
        if mode == "404":
            self._send("404 Not Found", HTML)
        elif mode == "500":
            self._send("500 Internal Server Error", HTML)
        elif mode == "html":
            self._send("200 OK", HTML, "Content-Type: text/html")
        elif mode == "stall":
            self.server.closing.wait()
        elif mode == "drip_head":
            self._drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 60_000)
        elif mode == "drip_body":
            self._write(f"{head}\r\n".encode())
            self._drip(body)
        elif mode in ("drip_open", "close"):
            self._write(b"HTTP/1.0 200 OK\r\n\r\n")
            self._write(body) if mode == "close" else self._drip(body * 1_000)
        elif mode == "reset":
            self._write(f"{head}\r\n".encode() + body[: len(body) // 2])
            self._reset()
        elif mode == "wrong_length":
            self._write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + 7}\r\n\r\n".encode())
            self._write(body)
        elif mode in ("gzip", "gzip_bomb"):
            packed = gzip.compress(body) if mode == "gzip" else BOMB
            self._send("200 OK", packed, "Content-Encoding: gzip")
        else:
            self._huge(mode)

    def _huge(self, mode: Mode) -> None:
        if mode == "huge":
            size = len(HUGE_PIECE) * HUGE_PIECES
            self._write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
            self._flood()
        else:
            self._write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            self._flood(b"100000\r\n" + HUGE_PIECE + b"\r\n")

    def _flood(self, piece: bytes = HUGE_PIECE) -> None:
        for _ in range(HUGE_PIECES):
            if self.server.closing.is_set():
                return
            self._write(piece)

    def _drip(self, data: bytes) -> None:
        for place in range(len(data)):
            if self.server.closing.wait(DRIP_SECONDS):
                return
            self._write(data[place : place + 1])

    def _reset(self) -> None:
        """Ends the connection with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()

    def _send(self, status: str, body: bytes, header: str | None = None) -> None:
        header = header or self.server.header
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n\r\n"
        self._write(head.encode() + body)

    def _write(self, data: bytes) -> None:
        self.connection.sendall(data)
