"""Calendars over CalDAV and address books over CardDAV: each object is a part. Read-only.

A collection is read again only if its sync token or its ctag has changed: what changed since the
token, or everything if the server does not know the token. XML is parsed without entities.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from posixpath import basename
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes, urljoin, urlsplit

from evidence.errors import InvalidRequest, TooLarge, Unauthenticated, Unavailable
from evidence.work import portions
from service.importing.source import SAFE_XML
from service.records.intake import Row
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings, Stored
from service.syncing.kinds.web import Site, check, has_user

#: The objects that are fetched and imported together.
OBJECTS_TOGETHER: Final = 100
#: The stream of events.
EVENTS: Final = "events"
_CALENDAR: Final = re.compile(rb"BEGIN:VCALENDAR[ \t]*\r?\n", re.IGNORECASE)
#: The most answers in which a server may list what has changed since a token.
CHANGES_MOST: Final = 100
#: Statuses of what is not there, and of servers that do not know a report or a token.
_MISSING: Final = (404, 405, 410)
_UNKNOWN: Final = (*_MISSING, 400, 403, 409, 412, 415, 422, 501, 507)
_TRUNCATED: Final = 507

COLLECTION, TYPE = "{DAV:}collection", "{DAV:}resourcetype"
NAME, PRINCIPAL = "{DAV:}displayname", "{DAV:}current-user-principal"
ETAG, TOKEN = "{DAV:}getetag", "{DAV:}sync-token"
CTAG: Final = "{http://calendarserver.org/ns/}getctag"
_HREF, _PROP, _STATUS = "{DAV:}href", "{DAV:}prop", "{DAV:}status"
_PROPERTIES: Final = f"{{DAV:}}propstat/{_PROP}"
_CODE: Final = re.compile(r" ([0-9]{3})\b")

#: ETags by path; None for objects that are gone.
Etags = dict[str, str | None]


class NotWebDav(Unavailable):
    """The answer is not that of a WebDAV server."""


class Resource(NamedTuple):
    """A resource that a server lists: its address, and its element without missing properties.

    Its status is 0 if only its properties have one.
    """

    url: str
    element: Any
    status: int

    @property
    def path(self) -> str:
        """The path, escaped in one way, because servers escape it in several."""
        segments = urlsplit(self.url).path.split("/")
        return "/".join(quote(unquote_to_bytes(segment), safe="") for segment in segments)

    @property
    def title(self) -> str:
        """The name that people see, in one line."""
        name = self.text(NAME) or unquote(self.path.rstrip("/").rpartition("/")[2])
        return " ".join(name.split())

    def text(self, name: str) -> str:
        """The text of a property; empty if there is none."""
        return str(self.element.findtext(f"{_PROPERTIES}/{name}", ""))

    def urls(self, name: str) -> list[str]:
        """The addresses in a property."""
        hrefs = self.element.iterfind(f"{_PROPERTIES}/{name}/{_HREF}")
        return [urljoin(self.url, (href.text or "").strip()) for href in hrefs]

    def is_a(self, kind: str) -> bool:
        """Whether a type is among its types."""
        return self.element.find(f"{_PROPERTIES}/{TYPE}/{kind}") is not None


class Multistatus(NamedTuple):
    """The resources of an answer, and the sync token that comes with them."""

    resources: list[Resource]
    token: str
    is_truncated: bool

    def etags(self, folder: str) -> Etags:
        """The ETags of the objects in a collection."""
        return {
            resource.path: None if resource.status in _MISSING else resource.text(ETAG)
            for resource in self.resources
            if folder_of(resource.path) == folder != resource.path and not resource.is_a(COLLECTION)
        }


class WebDav(Site):
    """The server of a source. Raises `EvidenceError`s."""

    most_bytes = 64 << 20

    def list(self, url: str, depth: int, names: Sequence[str]) -> list[Resource]:
        """A resource and, with depth 1, those in it; none if there is nothing at the address."""
        answer = self._ask("PROPFIND", url, _body("{DAV:}propfind", names), depth, _MISSING)
        return answer.resources if answer else []

    def etags(self, folder: str) -> Etags:
        """The ETags of all objects of a collection."""
        answer = self._ask("PROPFIND", folder, _body("{DAV:}propfind", (ETAG, TYPE)), depth=1)
        if answer is None or answer.is_truncated:
            raise Unavailable("The server listed only part of a collection. Try again later.")
        return answer.etags(folder)

    def changes(self, folder: str, token: str) -> Etags | None:
        """What has changed in a collection since a token; None if the server does not know it."""
        etags = Etags()
        for _ in range(CHANGES_MOST):
            body = _body("{DAV:}sync-collection", (ETAG, TYPE), token=token)
            answer = self._ask("REPORT", folder, body, allowed=_UNKNOWN)
            if answer is None or not answer.token:
                return None
            etags |= answer.etags(folder)
            if not answer.is_truncated:
                return etags
            token = answer.token
        return None

    def contents(self, report: str, name: str, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The objects at some paths of one collection: by a report, else one by one.

        Those that are gone are left out.
        """
        body, contents = _body(report, (name,), paths=paths), dict[str, str]()
        with suppress(NotWebDav, TooLarge):
            if answer := self._ask("REPORT", folder_of(paths[0]), body, allowed=_UNKNOWN):
                contents = {resource.path: resource.text(name) for resource in answer.resources}
        for path in paths:
            if content := contents.get(path, "").encode():
                yield path, content
            elif (single := self.ask("GET", self._url(path), allowed=_MISSING)).status == 200:
                yield path, single.body

    def _ask(
        self, method: str, url: str, body: bytes, depth: int = 0, allowed: Collection[int] = ()
    ) -> Multistatus | None:
        """The answer to a request at an address or a path; None for an allowed status."""
        url = self._url(url) if url.startswith("/") else url
        headers = {"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"}
        answer = self.ask(method, url, headers, body, allowed)
        return None if answer.status in allowed else _multistatus(url, answer.body)

    def _url(self, path: str) -> str:
        return urlsplit(self.url)._replace(path=path, query="").geturl()


def folder_of(path: str) -> str:
    """The path of the collection of an object; ends with a slash."""
    return f"{path.rpartition('/')[0]}/"


def _body(
    name: str, properties: Sequence[str], token: str = "", paths: Sequence[str] = ()
) -> bytes:
    """The XML of a request."""
    from lxml.etree import Element, SubElement, tostring

    root = Element(name, nsmap={None: "DAV:"})
    if token:
        SubElement(root, TOKEN).text = token
        SubElement(root, "{DAV:}sync-level").text = "1"
    element = SubElement(root, _PROP)
    for property in properties:
        SubElement(element, property)
    for path in paths:
        SubElement(root, _HREF).text = path
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _multistatus(url: str, body: bytes) -> Multistatus:
    from lxml.etree import XMLParser, XMLSyntaxError, fromstring

    root = None
    with suppress(XMLSyntaxError):
        root = fromstring(body, XMLParser(**SAFE_XML))
    if root is None or root.tag != "{DAV:}multistatus":
        raise NotWebDav("The server did not send a WebDAV response. Check the address.")
    for missing in [part for part in root.iter("{DAV:}propstat") if _code(part) != 200]:
        missing.getparent().remove(missing)
    resources = [
        Resource(urljoin(url, response.findtext(_HREF, "").strip()), response, _code(response))
        for response in root.iterfind("{DAV:}response")
    ]
    is_truncated = any(resource.status == _TRUNCATED for resource in resources)
    return Multistatus(resources, root.findtext(TOKEN, ""), is_truncated)


def _code(element: Any) -> int:
    """The code of the status of an element; 0 if there is none."""
    match = _CODE.search(element.findtext(_STATUS, ""))
    return int(match[1]) if match else 0


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
        self._dav, self._source = WebDav(source), source
        self._collections = dict[str, Resource]()

    def check(self) -> None:
        self._choose(self._discover())

    def list_parts(self, stored: Stored) -> Listing | None:
        self._collections = self._choose(self._discover())
        states = {
            path: [collection.text(name) for name in (NAME, TOKEN, CTAG)]
            for path, collection in self._collections.items()
        }
        parts, versions = stored.versions(), dict[str, str]()
        for path, (name, *marks) in states.items():
            old = {part: version for part, version in parts.items() if folder_of(part) == path}
            before = stored.position.get(path)
            if states[path] != before or not any(marks):
                old = self._versions(path, name, before, old)
            versions |= old
        return Listing(versions, states)

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
            "in the provider's documentation."
        )

    def _find(self, url: str, *, is_principal: bool = False) -> list[Resource]:
        """The collections at an address: it is one, contains some, or leads to the user's."""
        kind, home = self._name(self.collection), self._name(f"{self.collection}-home-set")
        names = (TYPE, NAME, TOKEN, CTAG, PRINCIPAL, home)
        for resource in self._dav.list(url, 0, names)[:1]:
            if resource.is_a(kind):
                return [resource]
            homes = resource.urls(home) or [url]
            children = [child for home in homes for child in self._dav.list(home, 1, names)]
            collections = [child for child in children if child.is_a(kind)]
            if collections or is_principal:
                return collections
            for principal in resource.urls(PRINCIPAL):
                return self._find(principal, is_principal=True)
        return []

    def _choose(self, collections: list[Resource]) -> dict[str, Resource]:
        """The collections of the source by their paths."""
        titles = {collection.title for collection in collections}
        self._source.check_folders(self.collection, titles)
        return {
            f"{collection.path.rstrip('/')}/": collection
            for collection in collections
            if not self._source.folders or collection.title in self._source.folders
        }

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        report, data = self._name(f"{self.collection}-multiget"), self._name(self.data)
        for some in portions(sorted(parts), OBJECTS_TOGETHER):
            for _, group in groupby(some, key=folder_of):
                contents = enumerate(self._dav.contents(report, data, list(group)))
                yield from Fetched.written(
                    (part, f"{number}-{basename(part)[-80:]}", self.prepare(part, content))
                    for number, (part, content) in contents
                )

    def prepare(self, part: str, content: bytes) -> bytes:
        """An object as it is to be imported."""
        return content

    def _name(self, local: str) -> str:
        return f"{{urn:ietf:params:xml:ns:{self.kind}}}{local}"


class Calendars(Collections):
    """The calendars of a user."""

    kind, format, collection, data = "caldav", "ics", "calendar", "calendar-data"

    def prepare(self, part: str, content: bytes) -> bytes:
        """The object with the name of its calendar, as in an export of that."""
        collection = self._collections[folder_of(part)]
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
    Kind(kind.kind, kind, check, needs_secret=has_user) for kind in (Calendars, AddressBooks)
)
