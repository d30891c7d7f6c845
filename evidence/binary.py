"""Bytes in records: the metadata shown in their place, and the REST route that returns them.

Blobs and base64 text are described alike: `mime_type`, one size (`size_bytes`, of the bytes
themselves) and `fetch_url`. A blob whose bytes the source does not have carries
`"available": false` and no `fetch_url`.
"""

from dataclasses import dataclass
from typing import Any

from evidence import pointer, routes
from evidence.handles import RecordRef
from evidence.text import looks_binary

DEFAULT_MEDIA_TYPE = "application/octet-stream"
BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Bytes:
    """A blob or base64 text of a field: its metadata, and where its bytes are."""

    id: str
    field_path: str
    known: dict[str, Any]

    @property
    def route(self) -> str | None:
        """The REST route that returns the bytes; None if the source does not have them."""
        found = self.known.get("fetch_url")
        return found if isinstance(found, str) and found else None

    @property
    def is_base64(self) -> bool:
        return "blob_id" not in self.known

    @property
    def media_type(self) -> str | None:
        found = self.known.get("mime_type")
        return found if isinstance(found, str) and found else None

    @property
    def size(self) -> tuple[int, str] | None:
        """(number, unit) of the one size that is known."""
        for name, unit in (("size_bytes", "bytes"), ("size_chars", "base64 characters")):
            found = self.known.get(name)  # a remote server may send anything
            if isinstance(found, int) and not isinstance(found, bool):
                return found, unit
        return None


def is_reference(value: Any) -> bool:
    """Whether a value is the metadata of a blob."""
    return isinstance(value, dict) and isinstance(value.get("blob_id"), str)


def is_described(value: Any) -> bool:
    """Whether a value already is the metadata of base64 text."""
    return isinstance(value, dict) and value.get("object") == "binary_field"


def base64_field(
    head: str, *, chars: int | None = None, tail: str | None = None, declared: str | None = None
) -> dict[str, Any]:
    """The metadata of base64 text or of a data URI, computed without decoding it.

    A long text is given by its first and last characters and its length. `declared` is the media
    type its schema declares; the one a data URI names comes first.
    """
    chars, tail = len(head) if chars is None else chars, head if tail is None else tail
    named = None
    if head.startswith("data:"):
        prefix = head.partition(",")[0]
        named = prefix.removeprefix("data:").partition(";")[0]
        chars -= len(prefix) + 1
    padding = len(tail) - len(tail.rstrip("="))
    return {
        "object": "binary_field",
        "encoding": BASE64,
        "mime_type": named or declared or DEFAULT_MEDIA_TYPE,
        "size_bytes": max(0, chars - padding) * 3 // 4,
    }


def described(value: Any, ref: RecordRef, path: str) -> Any:
    """The value as lists and documents show it: bytes as metadata with their route.

    Sources spell metadata differently. The route is always one of this service, never an address
    a record or a remote server brings along.
    """
    if is_reference(value):
        kept = {
            name: one for name, one in value.items() if name not in ("data_base64", "fetch_url")
        }
        if kept.get("available") is False:
            return kept
        return {**kept, "fetch_url": routes.blob(value["blob_id"], ref.connection_id)}
    if isinstance(value, list):
        return [described(one, ref, path) if is_reference(one) else one for one in value]
    if is_described(value):
        kept = {name: one for name, one in value.items() if name not in ("read", "type")}
    elif isinstance(value, str) and looks_binary(value):
        kept = base64_field(value)
    else:
        return value
    if isinstance(kept.get("size_bytes"), int):
        kept.pop("size_chars", None)
    return {**kept, "fetch_url": routes.field_value(ref, pointer.top_level(path))}


def bytes_of(value: Any, ref: RecordRef, path: str) -> list[Bytes]:
    """The blobs and the base64 text of a described value, one entry each."""
    if is_reference(value) or is_described(value):
        return [Bytes(str(ref), path, value)]
    if not isinstance(value, list):
        return []
    base = path if path.startswith("/") else pointer.escaped(path)
    places = enumerate(value)
    return [Bytes(str(ref), f"{base}/{no}", one) for no, one in places if is_reference(one)]
