"""Documents at an address: the document is the one part; its version is a hash of the bytes."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from posixpath import basename
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings
from service.syncing.kinds.web import Site, check, has_user

DOCUMENT: Final = "document"
#: The extension of a file by its media type, if its address has none.
_EXTENSIONS: Final = {
    "text/calendar": ".ics",
    "text/vcard": ".vcf",
    "text/csv": ".csv",
    "application/json": ".json",
    "application/x-ndjson": ".ndjson",
    "text/html": ".html",
    "text/markdown": ".md",
}


class Document(Connector):
    """A document in any format that can be imported."""

    def __init__(self, source: SourceSettings) -> None:
        self._site, self._name = Site(source), source.name
        self._file, self._content = basename(urlsplit(self._site.url).path), b""

    def check(self) -> None:
        self._site.ask("GET", self._site.url)

    def list_parts(
        self, position: dict[str, Any], stored: Callable[[], dict[str, str]]
    ) -> Listing | None:
        conditions = {"If-None-Match": "etag", "If-Modified-Since": "modified"}
        headers = {header: position[key] for header, key in conditions.items() if key in position}
        answer = self._site.ask("GET", self._site.url, headers)
        if answer.status == 304:
            return None
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        suffix = Path(self._file).suffix or _EXTENSIONS.get(kind, "")
        self._file, self._content = f"{self._name}{suffix}", answer.body
        version = hashlib.sha256(answer.body).hexdigest()
        validators = {"etag": "ETag", "modified": "Last-Modified"}
        new = {
            key: answer.headers[name] for key, name in validators.items() if name in answer.headers
        }
        versions = {DOCUMENT: version} if answer.body.strip() else {}
        return None if versions == stored() and new == position else Listing(versions, new)

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / self._file
            path.write_bytes(self._content)
            yield Fetched(path, {str(path): DOCUMENT})


KIND = Kind("url", "an https: address of a document", Document, check, needs_secret=has_user)
