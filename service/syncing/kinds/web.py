"""Documents at a URL: the document is the only part. Its version is a hash of the bytes.

All requests of sources: over verified TLS or to loopback, and secrets to their own origin only.
"""

import hashlib
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from posixpath import basename, splitext
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

from evidence.errors import InvalidRequest, Unauthenticated, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.addresses import is_loopback, origin
from service.sources.remote import outbound
from service.sources.remote.outbound import Answer
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings, Stored

#: The longest time until an answer is complete, and until a document is, which may be large.
SECONDS, DOCUMENT_SECONDS = 30, 120
_REDIRECTS: Final = (301, 302, 303, 307, 308)
DOCUMENT: Final = "document"
#: Headers that ask only for a newer document, and those of an answer whose text they repeat.
_CONDITIONS: Final = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
#: The extension of a file by its media type, if its address has none; hosts know different ones.
_EXTENSIONS: Final = {
    "text/calendar": ".ics",
    "text/vcard": ".vcf",
    "text/csv": ".csv",
    "application/json": ".json",
    "application/x-ndjson": ".ndjson",
    "text/html": ".html",
    "text/markdown": ".md",
}


class Site:
    """A server, with the user of its address and the secret of the source.

    An answer must be complete within `seconds`, by default `SECONDS`.
    """

    most_bytes = 256 << 20

    def __init__(self, source: SourceSettings, seconds: int | None = None) -> None:
        parts = urlsplit(source.address)
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit(parts._replace(netloc=host))
        self._name, self._host, self._seconds = source.name, parts.hostname, seconds or SECONDS
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
        allowed: Collection[int] = (),
    ) -> Answer:
        """The answer, after redirects; raises for statuses but 2xx, 304 and those `allowed`.

        Nothing is sent to another origin than that of the source.
        """
        deadline = Deadline.after(self._seconds)
        headers = {"Accept-Encoding": "gzip", **(headers or {}), **self._headers}
        for _ in range(BUDGETS.redirects + 1):
            if origin(url) != origin(self.url):
                other = "{}://{}:{}/".format(*origin(url))  # a path may contain a secret
                raise Unavailable(
                    f"The server refers to {other!r}. Add a source with that address."
                )
            try:
                answer = outbound.ask(
                    method,
                    url,
                    deadline=deadline,
                    most_bytes=self.most_bytes,
                    headers=headers,
                    data=body,
                    redirects=True,
                )
            except outbound.UNANSWERED as error:
                limit = f" after {self._seconds} s" if deadline.expired() else ""
                why = f"{self._host} {error.why}{limit}. Check the address and the network."
                raise type(error)(why) from None
            if answer.status not in _REDIRECTS:
                return answer if answer.status in allowed else self._accepted(answer)
            url = urljoin(url, answer.headers.get("Location", ""))
        raise Unavailable("The server redirected the request too many times. Check the address.")

    def _accepted(self, answer: Answer) -> Answer:
        if answer.status in (401, 403):
            advice = (
                "If the server requires a user name, add the source with one: "
                "https://user@host/path."
            )
            if self._headers:
                advice = (
                    "Check the user name and the password. Many providers require an app password. "
                    f"To replace the password: rung source password {self._name}"
                )
            raise Unauthenticated(
                f"{self._host} refused the sign-in with status {answer.status}. {advice}"
            )
        if answer.status // 100 != 2 and answer.status != 304:
            raise Unavailable(f"The server returned status {answer.status}. Check the address.")
        return answer


def check(address: str) -> str:
    """The address; raises `InvalidRequest` unless it is https, or http on this machine."""
    parts = split(address)
    if not parts.hostname or parts.scheme not in ("https", "http"):
        raise InvalidRequest(f"{address!r} is not a web address. Use an https: address.")
    return address


def split(address: str) -> SplitResult:
    """The parts of an address; raises `InvalidRequest` if it has a password or lacks TLS."""
    parts = urlsplit(address)
    if parts.password:
        raise InvalidRequest(
            "The address contains a password. Leave it out; Rung asks for the password."
        )
    if (scheme := parts.scheme) in ("http", "imap") and not is_loopback(address):
        only = f"{scheme}: is allowed only for an address on this machine."
        raise InvalidRequest(f"{only} Use {scheme}s: instead.")
    return parts


def has_user(address: str) -> bool:
    """Whether an address names a user, who has a password."""
    return urlsplit(address).username is not None


class Document(Connector):
    """A document in any format that can be imported."""

    def __init__(self, source: SourceSettings) -> None:
        self._site, self._name = Site(source, DOCUMENT_SECONDS), source.name
        self._file, self._content = basename(urlsplit(self._site.url).path), b""

    def check(self) -> None:
        self._site.ask("GET", self._site.url)

    def list_parts(self, stored: Stored) -> Listing | None:
        answer = self._site.ask("GET", self._site.url, stored.position)
        if answer.status == 304:
            return None
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        suffix = splitext(self._file)[1] or _EXTENSIONS.get(kind, "")
        self._file, self._content = f"{self._name}{suffix}", answer.body
        version = hashlib.sha256(answer.body).hexdigest()
        headers = answer.headers
        new = {name: headers[header] for name, header in _CONDITIONS.items() if header in headers}
        return Listing({DOCUMENT: version} if answer.body.strip() else {}, new)

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        yield from Fetched.written([(DOCUMENT, self._file, self._content)])


KIND = Kind("url", Document, check, needs_secret=has_user)
