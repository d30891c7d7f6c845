"""Calendars over CalDAV and address books over CardDAV: each object is a part. Reads only.

A collection is read again only if its sync token or its ctag has changed: what changed since the
token, or everything if the server does not know the token.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final
from urllib.parse import urljoin, urlsplit

from evidence.errors import InvalidRequest, Unauthenticated, Unavailable
from service.records.intake import Row
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings
from service.syncing.kinds import webdav
from service.syncing.kinds.web import check, has_user
from service.syncing.kinds.webdav import CTAG, NAME, TOKEN, Resource, WebDav, folder_of

#: The objects that are fetched and imported together.
OBJECTS_TOGETHER: Final = 100
#: The stream of events.
EVENTS: Final = "events"
_CALENDAR: Final = re.compile(rb"BEGIN:VCALENDAR[ \t]*\r?\n", re.IGNORECASE)


class Collections(Connector):
    """The collections of a user, or the one at the address.

    `kind` is the protocol, `collection` its type of collections, and `data` the property with the
    content of an object.
    """

    strict = False
    kind: ClassVar[str]
    collection: ClassVar[str]
    data: ClassVar[str]

    def __init__(self, source: SourceSettings) -> None:
        self._dav, self._chosen = WebDav(source), source.folders
        self._collections = dict[str, Resource]()

    def check(self) -> None:
        self._choose(self._discover())

    def list_parts(
        self, position: dict[str, Any], stored: Callable[[], dict[str, str]]
    ) -> Listing | None:
        self._collections = self._choose(self._discover())
        states = {
            path: [collection.text(name) for name in (NAME, TOKEN, CTAG)]
            for path, collection in self._collections.items()
        }
        changed = {
            path
            for path, state in states.items()
            if state != position.get(path) or not any(state[1:])
        }
        if states == position and not changed:
            return None
        parts, versions = stored(), dict[str, str]()
        for path, (name, *_) in states.items():
            old = {part: version for part, version in parts.items() if folder_of(part) == path}
            if path in changed:
                old = self._versions(path, name, position.get(path), old)
            versions |= old
        return None if versions == parts and states == position else Listing(versions, states)

    def _versions(
        self, path: str, name: str, position: list[str] | None, versions: dict[str, str]
    ) -> dict[str, str]:
        """The versions of the objects of a collection, from those in the store.

        A version contains the name of the collection, because the ids of events depend on it.
        """
        old_name, token, _ = position or ("", "", "")
        etags = self._dav.changes(path, token) if token and old_name == name else None
        if etags is None:
            etags, versions = self._dav.etags(path), {}
        new = {part: f"{etag} {name}" for part, etag in etags.items() if etag is not None}
        return {part: old for part, old in versions.items() if part not in etags} | new

    def _discover(self) -> list[Resource]:
        """The collections at the address; raises `InvalidRequest` if there are none."""
        urls, failure = [self._dav.url], None
        if urlsplit(self._dav.url).path in ("", "/"):
            urls.append(urljoin(self._dav.url, f"/.well-known/{self.kind}"))
        for url in urls:
            try:
                if collections := self._find(url):
                    return collections
            except (Unauthenticated, Unavailable) as error:
                failure = failure or error
        raise failure or InvalidRequest(
            f"There is no {self.collection} at this address. Look up the address for {self.kind} "
            "in the documentation of the provider."
        )

    def _find(self, url: str, *, is_principal: bool = False) -> list[Resource]:
        """The collections at an address: it is one, contains some, or leads to the user's."""
        kind, home = self._name(self.collection), self._name(f"{self.collection}-home-set")
        names = (webdav.TYPE, NAME, TOKEN, CTAG, webdav.PRINCIPAL, home)
        for resource in self._dav.list(url, 0, names)[:1]:
            if resource.is_a(kind):
                return [resource]
            homes = resource.urls(home) or [url]
            children = [child for home in homes for child in self._dav.list(home, 1, names)]
            collections = [child for child in children if child.is_a(kind)]
            if collections or is_principal:
                return collections
            for principal in resource.urls(webdav.PRINCIPAL):
                return self._find(principal, is_principal=True)
        return []

    def _choose(self, collections: list[Resource]) -> dict[str, Resource]:
        """The collections of the source by their paths."""
        titles = {collection.title for collection in collections}
        if missing := [title for title in self._chosen if title not in titles]:
            raise InvalidRequest(
                f"There is no {self.collection} {missing[0]!r}. There are: "
                f"{', '.join(sorted(titles)[:20])}."
            )
        return {
            f"{collection.path.rstrip('/')}/": collection
            for collection in collections
            if not self._chosen or collection.title in self._chosen
        }

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        report, data = self._name(f"{self.collection}-multiget"), self._name(self.data)
        for path, group in groupby(sorted(parts), key=folder_of):
            members = list(group)
            for start in range(0, len(members), OBJECTS_TOGETHER):
                some, files = members[start : start + OBJECTS_TOGETHER], dict[str, str]()
                with TemporaryDirectory() as folder:
                    for part, content in self._dav.contents(report, data, some):
                        file = Path(folder) / f"{len(files)}-{part.rpartition('/')[2][-80:]}"
                        file.write_bytes(self.prepare(self._collections[path], content))
                        files[str(file)] = part
                    if files:
                        yield Fetched(Path(folder), files)

    def prepare(self, collection: Resource, content: bytes) -> bytes:
        """An object as it is to be imported."""
        return content

    def _name(self, local: str) -> str:
        return f"{{urn:ietf:params:xml:ns:{self.kind}}}{local}"


class Calendars(Collections):
    """The calendars of a user."""

    kind, format, collection, data = "caldav", "ics", "calendar", "calendar-data"

    def prepare(self, collection: Resource, content: bytes) -> bytes:
        """The object with the name of its calendar, as in an export of that."""
        name = re.sub(r"([\\;,])", r"\\\1", " ".join(collection.text(NAME).split())).encode()
        line = b"X-WR-CALNAME:" + name + b"\r\n" if name else b""
        return _CALENDAR.sub(lambda begins: begins[0] + line, content, 1)

    def adapt(self, part: str, row: Row) -> Row:
        if row.stream != EVENTS:
            return row
        # An event that was imported without the name of its calendar keeps its id.
        former = row.former and (*row.former[:2], {})
        data = {**row.data, "calendar": self._collections[folder_of(part)].title}
        return row._replace(data=data, former=former, digest=None)


class AddressBooks(Collections):
    """The address books of a user."""

    kind, format, collection, data = "carddav", "vcard", "addressbook", "address-data"


KINDS: Final = tuple(
    Kind(kind.kind, f"the https: address of {what} or a server", kind, check, needs_secret=has_user)
    for kind, what in ((Calendars, "a calendar"), (AddressBooks, "an address book"))
)
