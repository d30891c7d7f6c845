"""A WebDAV client that only reads: PROPFIND, REPORT and GET. XML is parsed without entities."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes, urljoin, urlsplit

from evidence.errors import TooLarge, Unavailable
from service.importing.source import SAFE_XML
from service.syncing.connector import SourceSettings
from service.syncing.kinds.web import Site

#: The most bytes of an answer in XML.
XML_BYTES: Final = 64 << 20
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
_CODE: Final = re.compile(r" ([0-9]{3})\b")

#: ETags by path; None for objects that are gone.
Etags = dict[str, str | None]


class NotWebDav(Unavailable):
    """The answer is not that of a WebDAV server."""


class Resource(NamedTuple):
    """A resource that a server lists; `status` is 0 if only its properties have one."""

    url: str
    status: int
    properties: dict[str, Any]

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
        element = self.properties.get(name)
        return "" if element is None else element.text or ""

    def urls(self, name: str) -> list[str]:
        """The addresses in a property."""
        element = self.properties.get(name)
        hrefs = () if element is None else element.iterfind(_HREF)
        return [urljoin(self.url, (href.text or "").strip()) for href in hrefs]

    def is_a(self, kind: str) -> bool:
        """Whether a type is among its types."""
        element = self.properties.get(TYPE)
        return element is not None and element.find(kind) is not None


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


class WebDav:
    """The server of a source, with its user and its secret. Raises `EvidenceError`s."""

    def __init__(self, source: SourceSettings) -> None:
        self._site = Site(source)
        self.url = self._site.url

    def list(self, url: str, depth: int, names: Sequence[str]) -> list[Resource]:
        """A resource and, with depth 1, those in it; none if there is nothing at the address."""
        answer = self._ask("PROPFIND", url, _body("{DAV:}propfind", names), depth, _MISSING)
        return answer.resources if answer else []

    def etags(self, folder: str) -> Etags:
        """The ETags of all objects of a collection."""
        answer = self._ask("PROPFIND", folder, _body("{DAV:}propfind", (ETAG, TYPE)), depth=1)
        if answer is None or answer.is_truncated:
            raise Unavailable("The server lists only a part of a collection. Try again later.")
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
        try:
            if answer := self._ask("REPORT", folder_of(paths[0]), body, allowed=_UNKNOWN):
                contents = {resource.path: resource.text(name) for resource in answer.resources}
        except (NotWebDav, TooLarge):
            pass
        for path in paths:
            if content := contents.get(path, "").encode() or self._get(path):
                yield path, content

    def _get(self, path: str) -> bytes:
        answer = self._site.ask("GET", self._url(path), allowed=_MISSING)
        return b"" if answer.status in _MISSING else answer.body

    def _ask(
        self, method: str, url: str, body: bytes, depth: int = 0, allowed: Collection[int] = ()
    ) -> Multistatus | None:
        """The answer to a request at an address or a path; None for an allowed status."""
        url = self._url(url) if url.startswith("/") else url
        headers = {"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"}
        options: dict[str, Any] = {"most_bytes": XML_BYTES, "allowed": allowed}
        answer = self._site.ask(method, url, headers, body, **options)
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

    parser = XMLParser(**SAFE_XML)
    try:
        root = fromstring(body, parser)
    except XMLSyntaxError:
        root = None
    if root is None or root.tag != "{DAV:}multistatus":
        raise NotWebDav("The server did not answer as a WebDAV server does. Check the address.")
    resources = [
        Resource(
            urljoin(url, response.findtext(_HREF, "").strip()),
            _code(response),
            {
                property.tag: property
                for part in response.iterfind("{DAV:}propstat")
                if _code(part) == 200
                for property in part.iterfind(f"{_PROP}/*")
            },
        )
        for response in root.iterfind("{DAV:}response")
    ]
    is_truncated = any(resource.status == _TRUNCATED for resource in resources)
    return Multistatus(resources, root.findtext(TOKEN, ""), is_truncated)


def _code(element: Any) -> int:
    """The code of the status of an element; 0 if there is none."""
    match = _CODE.search(element.findtext(_STATUS, ""))
    return int(match[1]) if match else 0
