"""Requests of sources: over verified TLS or to loopback, and secrets to their own origin only."""

from base64 import b64encode
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

from evidence.errors import InvalidRequest, Unauthenticated, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote import outbound
from service.sources.remote.outbound import Answer
from service.syncing.connector import SourceSettings

SECONDS: Final = 120
#: The most bytes of one answer.
MOST_BYTES: Final = 256 << 20
_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = (301, 302, 303, 307, 308)


class Site:
    """A server, with the user of its address and the secret of the source."""

    def __init__(self, source: SourceSettings) -> None:
        parts = urlsplit(source.address)
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit(parts._replace(netloc=host))
        secret = source.secret()
        self._headers = dict[str, str]()
        if secret and parts.username:
            pair = b64encode(f"{unquote(parts.username)}:{secret}".encode()).decode()
            self._headers["Authorization"] = f"Basic {pair}"
        elif secret:
            self._headers["Authorization"] = f"Bearer {secret}"

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        most_bytes: int = MOST_BYTES,
        allowed: Collection[int] = (),
    ) -> Answer:
        """The answer, after redirects; raises for statuses but 2xx, 304 and those `allowed`.

        Nothing is sent to another origin than that of the source.
        """
        deadline = Deadline.after(SECONDS)
        for _ in range(BUDGETS.redirects + 1):
            if _origin(url) != _origin(self.url):
                scheme, host, port = _origin(url)  # a path may contain a secret
                other = f"{scheme}://{host}:{port}/"
                raise Unavailable(f"The server leads to {other!r}. Add a source with that address.")
            answer = outbound.ask(
                method,
                url,
                deadline=deadline,
                most_bytes=most_bytes,
                headers={"Accept-Encoding": "gzip", **(headers or {}), **self._headers},
                data=body,
                redirects=True,
            )
            if answer.status not in _REDIRECTS:
                return answer if answer.status in allowed else _accepted(answer)
            url = urljoin(url, answer.headers.get("Location", ""))
        raise Unavailable("The server redirects too often.")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _accepted(answer: Answer) -> Answer:
    if answer.status in (401, 403):
        raise Unauthenticated(
            f"The server refused the sign-in with status {answer.status}. Check the user and the "
            "password; many providers require an app password."
        )
    if answer.status // 100 != 2 and answer.status != 304:
        raise Unavailable(f"The server returned status {answer.status}. Check the address.")
    return answer


def check(address: str) -> str:
    """The address; raises `InvalidRequest` unless it is https, or http on this machine."""
    parts = split(address)
    if not parts.hostname or parts.scheme not in ("https", "http"):
        raise InvalidRequest(f"{address!r} is not a web address. Give one that begins with https:.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise InvalidRequest("http: is for this machine only. Use the https: address.")
    return address


def split(address: str) -> SplitResult:
    """The parts of an address; raises `InvalidRequest` if it has a password."""
    parts = urlsplit(address)
    if parts.password:
        raise InvalidRequest("The address contains a password. Leave it out; it is asked for.")
    return parts


def has_user(address: str) -> bool:
    """Whether an address names a user, who has a password."""
    return urlsplit(address).username is not None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
