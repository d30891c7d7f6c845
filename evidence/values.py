"""Record values that are not shown whole: previews, base64 text and blobs.

Lists and documents contain `as_json`: the metadata with the REST route of the bytes. The route is
always one of this service, never an address from a record or a remote server. Routes are relative,
each segment percent-encoded once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from evidence import pointer
from evidence.handles import RecordRef, segment
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import known
from evidence.text import looks_binary

DEFAULT_MEDIA_TYPE = "application/octet-stream"
BASE64 = "base64"
#: Types of values that are their own JSON.
PLAIN = frozenset({str, int, float, bool, type(None), dict})
#: The path of the metadata of an authorization server (RFC 8414).
AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of a value. Values other than strings are measured and shown as JSON."""

    text: str
    size_chars: int
    type: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Base64:
    """The metadata of base64 text. `size_bytes` counts the bytes it encodes."""

    media_type: str | None
    size_bytes: int | None = None
    size_chars: int | None = None
    sha256: str | None = None
    encoding: str = BASE64

    @property
    def size(self) -> tuple[int, str] | None:
        """(number, unit) of the known size."""
        if self.size_bytes is not None:
            return self.size_bytes, "bytes"
        return None if self.size_chars is None else (self.size_chars, "base64 characters")


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A reference to a blob, with the members that its record has.

    `available` is false if the source does not have the bytes. `key` is the id that its route has
    if that differs from `blob_id`, which several blobs may share.
    """

    members: dict[str, Any]
    available: bool = True
    key: str | None = None

    @classmethod
    def of(cls, members: dict[str, Any], id: str, available: bool = True) -> "BlobRef":
        """A reference to the blob that the source returns under an id."""
        return cls(members, available, None if id == members["blob_id"] else id)

    @property
    def id(self) -> str:
        """The id under which the source returns the bytes."""
        return self.key or self.blob_id

    @property
    def blob_id(self) -> str:
        return str(self.members["blob_id"])

    @property
    def media_type(self) -> str | None:
        media_type = self.members.get("mime_type")
        return media_type if isinstance(media_type, str) and media_type else None

    @property
    def sha256(self) -> Any:
        return self.members.get("sha256")

    @property
    def size(self) -> tuple[int, str] | None:
        """(bytes, "bytes") if the size is known."""
        size = self.members.get("size_bytes")  # a record may contain anything
        if not isinstance(size, int) or isinstance(size, bool):
            return None
        return size, "bytes"


Binary = Base64 | BlobRef


@dataclass(frozen=True, slots=True)
class Bytes:
    """A blob or base64 text in a field of a record."""

    ref: RecordRef
    field_path: str
    known: Binary

    @property
    def id(self) -> str:
        return str(self.ref)

    @property
    def route(self) -> str | None:
        """The REST route that returns the bytes; None if the source does not have them."""
        return _route(self.known, self.ref, pointer.top_level(self.field_path))

    def as_json(self) -> dict[str, Any]:
        """The metadata, with the route of the bytes."""
        name = pointer.top_level(self.field_path)
        return dict(as_json(self.known, self.ref, name))

    @property
    def entry(self) -> dict[str, Any]:
        """The field and its metadata, in the ladder of a page."""
        names = ("blob_id", "encoding", "mime_type", "size_bytes", "fetch_url", "available")
        described = self.as_json()
        facts = {name: described[name] for name in names if name in described}
        return {"field_path": self.field_path, **facts}


def is_reference(value: Any) -> bool:
    """True if a value of a record is a reference to a blob."""
    return isinstance(value, dict) and isinstance(value.get("blob_id"), str)


def base64_of(
    head: str, *, chars: int | None = None, tail: str | None = None, declared: str | None = None
) -> Base64:
    """The description of base64 text or of a data URI, computed without decoding it.

    A long text is passed as its first and last characters and its length. `declared` is the media
    type in its schema; a data URI's own media type overrides it.
    """
    chars, tail = len(head) if chars is None else chars, head if tail is None else tail
    media_type = None
    if head.startswith("data:"):
        prefix = head.partition(",")[0]
        media_type = prefix.removeprefix("data:").partition(";")[0]
        chars -= len(prefix) + 1
    padding = len(tail) - len(tail.rstrip("="))
    return Base64(media_type or declared or DEFAULT_MEDIA_TYPE, max(0, chars - padding) * 3 // 4)


def previewed(value: Any, *, most_bytes: int) -> Any:
    """The value, or a description of it if it takes more than `most_bytes`."""
    if not isinstance(value, (str, dict, list)):
        return value
    text = text_of(value)
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size <= most_bytes:
        return value
    if isinstance(value, str) and looks_binary(text[: CONTRACT.chunk_chars]):
        return base64_of(value)
    return Preview(text[: BUDGETS.preview_chars], len(text), pointer.json_type(value), size)


def text_of(value: Any) -> str:
    """The text of a value: a string unchanged, anything else as canonical JSON."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def as_json(value: Any, ref: RecordRef, name: str) -> Any:
    """The JSON of a value of the field `name`: descriptions become objects."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, Preview):
        preview = {"object": "field_preview", "preview_text": value.text}
        sizes = known({"size_bytes": value.size_bytes})
        return {**preview, "size_chars": value.size_chars, "type": value.type, **sizes}
    if isinstance(value, Base64):
        facts = {
            "object": "binary_field",
            "encoding": value.encoding,
            "mime_type": value.media_type,
            "size_bytes": value.size_bytes,
            "size_chars": value.size_chars if value.size_bytes is None else None,
            "fetch_url": _route(value, ref, name),
            "sha256": value.sha256,
        }
        return known(facts)
    if isinstance(value, BlobRef):
        route = {"fetch_url": _route(value, ref, name)} if value.available else {"available": False}
        return {**value.members, **route}
    if not isinstance(value, list) or all([type(element) in PLAIN for element in value]):
        return value
    return [element if type(element) in PLAIN else as_json(element, ref, name) for element in value]


def data_as_json(
    data: dict[str, Any], ref: RecordRef, written: Callable[..., Any] = as_json
) -> dict[str, Any]:
    """The JSON of the fields of a record; `written` gives that of a value."""
    return {
        name: value if type(value) in PLAIN else written(value, ref, name)
        for name, value in data.items()
    }


def bytes_of(value: Any, ref: RecordRef, name: str) -> list[Bytes]:
    """The blobs and the base64 text in the value of the field `name`, one entry each."""
    if isinstance(value, Binary):
        return [Bytes(ref, pointer.path_of(name), value)]
    if not isinstance(value, list):
        return []
    return [
        Bytes(ref, f"{pointer.escaped(name)}/{index}", blob)
        for index, blob in enumerate(value)
        if isinstance(blob, BlobRef)
    ]


def bytes_in(data: dict[str, Any], ref: RecordRef) -> list[Bytes]:
    """The blobs and base64 texts in the fields of a record."""
    return [
        entry
        for name, value in data.items()
        if type(value) not in PLAIN
        for entry in bytes_of(value, ref, name)
    ]


def _route(binary: Binary, ref: RecordRef, name: str) -> str | None:
    if isinstance(binary, Base64):
        return _field_route(ref, name)
    return _blob_route(binary.id, ref.connection_id) if binary.available else None


def _blob_route(blob_id: str, connection_id: str | None) -> str:
    where = f"?connection_id={segment(connection_id)}" if connection_id else ""
    return f"/v1/blobs/{segment(blob_id)}{where}"


def _field_route(ref: RecordRef, field: str) -> str:
    """The record with the whole value of one field. `fields` would split a name at its commas."""
    name = "fields[]" if "," in field else "fields"
    return f"{ref.url}{'&' if ref.connection_id else '?'}{name}={segment(field)}"


def field_window_read(
    stream: str, record_id: str, connection_id: str | None, field: str, **window: Any
) -> dict[str, Any]:
    """The `read` descriptor of a PDPP body: the call that reads this field."""
    return {
        "object": "field_window_read",
        "method": "GET",
        "route": f"{RecordRef(stream, record_id).url}/field-window",
        "stream": stream,
        "record_id": record_id,
        "field": pointer.path_of(field),
        "connection_id": connection_id,
        **window,
    }
