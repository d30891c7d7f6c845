"""Record ids and URIs: their printed form, and every accepted spelling.

The printed form is `{connection_id}/{stream}:{record_id}`. In each part `%`, `/`, whitespace,
control characters (including bidi controls and tags) and any of `; , [ ] { } " \\` are
percent-encoded as UTF-8. So are `:` in the first two parts, and a part that is `.` or `..`. Nothing
else alters an id, and none is ever truncated. `stream:record_id` and `pdpp://` URIs are accepted
too. Bare dots are refused; a record id of dots is accepted only in its printed form.

    ref = parse("gmail-work/messages:m%2F7")   # RecordRef('messages', 'm/7', 'gmail-work')
    str(ref)                                   # 'gmail-work/messages:m%2F7'
"""

import base64
import binascii
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

import orjson

from evidence.errors import InvalidRequest
from evidence.model import known, members

RECORD_SCHEME = "pdpp://record/"
FIELD_WINDOW_SCHEME = "pdpp://field-window/"
STREAM_SCHEME = "pdpp://stream/"
HANDLE_VERSION = 1

_RESERVED = (
    r'%/\s;,\[\]{}"\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069'
    "\U000e0000-\U000e007f"
)
UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
_RECORD_PART = re.compile(f"[{_RESERVED}]")
_NAME_PART = re.compile(f"[:{_RESERVED}]")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_DOTS = (".", "..")
_NOT_IDS: tuple[str, ...] = ()
#: A pattern for the secret path of a browser session, which is no part of an id.
SESSION_PATH: Final = "/s/[A-Za-z0-9_-]{22}"
_SESSION_PATH = re.compile(f"{SESSION_PATH}(?=[/?#]|$)")
_READING_PAGE = re.compile("/read/(.+)", re.DOTALL)
_RECORD_ROUTE = re.compile("/v1/streams/([^/]+)/records/([^/]+)")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WINDOW_ARGS = ("offset_chars", "limit_chars", "before_chars", "after_chars", "match")


class RecordRef(NamedTuple):
    """One record. `connection_id` is None if the caller named no source."""

    stream: str
    record_id: str
    connection_id: str | None = None

    def __str__(self) -> str:
        tail = f"{_name(self.stream)}:{_encode(self.record_id, _RECORD_PART)}"
        return tail if self.connection_id is None else f"{_name(self.connection_id)}/{tail}"

    @property
    def url(self) -> str:
        """The relative REST URL of the record."""
        path = f"/v1/streams/{_name_segment(self.stream)}/records/{segment(self.record_id)}"
        owner = self.connection_id
        return f"{path}?connection_id={_name_segment(owner)}" if owner else path


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field window: the record, the field path, and the window arguments of its URI."""

    record: RecordRef
    field_path: str
    window: tuple[tuple[str, Any], ...] = ()


def parse(text: str, *, connection_id: str | None = None) -> RecordRef:
    """The record that an id or a `pdpp://` URI names; of a field-window URI, its record.

    Raises `InvalidRequest` (`invalid_request`, or `conflicting_connection_id` if the id names
    another connection than the `connection_id` argument).
    """
    if text.startswith(FIELD_WINDOW_SCHEME):
        return _agree(parse_field_window(text).record, connection_id)
    if text.startswith(RECORD_SCHEME):
        handle = text[len(RECORD_SCHEME) :]
        fields = _decode_handle(handle, kind="record")
        ref = _from_fields(fields) if fields else _parse_plain(unquote(handle))
    else:
        ref = _parse_plain(text)
    return _agree(ref, connection_id)


def without_session(text: str) -> str:
    """An address without the secret path of a browser session; other text unchanged."""
    return _SESSION_PATH.sub("", text) if _is_address(text) else text


def from_address(text: str, base: str) -> str:
    """The id in the address of a reading page or of a record over REST; other text unchanged.

    Nothing is requested. Raises `InvalidRequest` for addresses that do not begin with `base`.
    """
    if not _is_address(text):
        return text
    try:
        address, own = urlsplit(without_session(text)), urlsplit(base)
        is_own = _origin(address) == _origin(own) and address.path.startswith(own.path)
    except ValueError:
        is_own = False
    if is_own:
        path = address.path.removeprefix(own.path)
        if page := _READING_PAGE.fullmatch(path):
            return unquote(page[1])
        if route := _RECORD_ROUTE.fullmatch(path):
            connection = dict(parse_qsl(address.query)).get("connection_id")
            return str(RecordRef(unquote(route[1]), unquote(route[2]), connection))
    raise InvalidRequest(
        "This is not the address of a record on this server. "
        "Pass an id exactly as search or query_records returned it.",
        param="id",
    )


def _is_address(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


def _origin(address: SplitResult) -> tuple[str, str, int]:
    """The origin of an address; all names of this machine are one."""
    host = address.hostname or ""
    port = address.port or (443 if address.scheme == "https" else 80)
    return address.scheme, "localhost" if host in _LOOPBACK else host, port


def parse_field_window(uri: str) -> FieldRef:
    """The field window a `pdpp://field-window/…` URI names, in either encoding."""
    if not uri.startswith(FIELD_WINDOW_SCHEME):
        raise _malformed(uri)
    handle, _, query = uri[len(FIELD_WINDOW_SCHEME) :].partition("?")
    fields = _decode_handle(handle, kind="field-window")
    if fields:
        record = _from_fields(fields)
    else:
        record = _parse_plain(unquote(handle))
        fields = dict(parse_qsl(query, keep_blank_values=True))
    path = fields.get("field_path") or fields.get("field")
    if not isinstance(path, str) or not path:
        raise InvalidRequest(
            "This field-window URI does not contain a field. Call read_record_field with id and "
            "field_path.",
            param="field_path",
        )
    return FieldRef(record, path, tuple(_window_arguments(fields)))


def field_window_uri(ref: RecordRef, field_path: str, **window: Any) -> str:
    """`pdpp://field-window/…` for a window: `offset_chars`, `limit_chars`, `q`, …"""
    body = {
        "v": HANDLE_VERSION,
        "kind": "field-window",
        **members(ref, "connection_id", "stream", "record_id"),
        "field_path": field_path,
    }
    raw = orjson.dumps(known(body | window))
    return FIELD_WINDOW_SCHEME + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def parse_stream(uri: str) -> tuple[str, str | None]:
    """(stream, connection_id or None) of a `pdpp://stream/…` URI."""
    name, _, query = uri[len(STREAM_SCHEME) :].partition("?")
    arguments = dict(parse_qsl(query))
    return _checked(unquote(name), "stream"), arguments.get("connection_id")


@lru_cache(maxsize=1024)
def _name(part: str) -> str:
    """A stream or a connection as written in ids. Cached, as there are few."""
    return _encode(part, _NAME_PART)


def segment(text: str) -> str:
    """One percent-encoded path segment or query value; bare dots would lead to another path."""
    if text in _DOTS:
        return text.replace(".", "%2E")
    return text if UNRESERVED.fullmatch(text) else quote(text, safe="")


_name_segment = lru_cache(maxsize=1024)(segment)


def _encode(part: str, reserved: re.Pattern[str]) -> str:
    if part in _DOTS:
        return part.replace(".", "%2E")
    if not reserved.search(part):
        return part
    return reserved.sub(lambda match: quote(match.group(), safe=""), part)


def _decode(part: str) -> str:
    """Decodes percent escapes that are valid UTF-8 and leaves any other `%` unchanged."""
    if "%" not in part:
        return part
    return _ESCAPES.sub(_decode_run, part)


def _decode_run(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match.group().replace("%", "")).decode()
    except UnicodeDecodeError:
        return match.group()


def _parse_plain(text: str) -> RecordRef:
    head, slash, tail = text.partition("/")
    if slash and ":" not in head:
        connection, rest = _checked(_decode(head), "connection_id"), tail
    else:
        connection, rest = None, text
    stream, colon, record_id = rest.partition(":")
    if not colon:
        raise _malformed(text)
    # Printed ids never contain bare dots as a part: they are encoded, as `%2E` and `%2E%2E`.
    key = _checked(record_id, "record_id") if record_id in _DOTS else _decode(record_id)
    return RecordRef(
        _checked(_decode(stream), "stream"), _checked(key, "record_id", _NOT_IDS), connection
    )


def _checked(part: str, name: str, refused: tuple[str, ...] = _DOTS) -> str:
    if not part or part in refused or "\0" in part:
        raise InvalidRequest(
            f"The {name} in this id is empty or not allowed. Pass the id exactly as it was "
            "returned.",
            param="id",
        )
    return part


def _agree(ref: RecordRef, connection_id: str | None) -> RecordRef:
    if connection_id is None or connection_id == ref.connection_id:
        return ref
    if ref.connection_id is None:
        return RecordRef(ref.stream, ref.record_id, _checked(connection_id, "connection_id"))
    raise InvalidRequest(
        "The id and connection_id name different connections. Leave connection_id out.",
        code="conflicting_connection_id",
        param="connection_id",
    )


def _malformed(text: str) -> InvalidRequest:
    return InvalidRequest(
        "This is not a record id. Pass an id as search or query_records returned it, "
        "in the form connection_id/stream:record_id.",
        param="id",
    )


def _decode_handle(handle: str, *, kind: str) -> dict[str, Any] | None:
    """The JSON of a base64url handle, or None if the text is not one."""
    text = unquote(handle)
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body = orjson.loads(raw)
    except (binascii.Error, ValueError):
        return None
    if not isinstance(body, dict):
        return None
    if body.get("v") != HANDLE_VERSION or body.get("kind") != kind:
        raise InvalidRequest(
            f"This is not a version 1 {kind} id. Pass the id as it was returned.",
            param="id",
        )
    return body


def _from_fields(fields: dict[str, Any]) -> RecordRef:
    parts = [fields.get(name) for name in ("stream", "record_id", "connection_id")]
    stream, record_id, connection = parts
    if not isinstance(stream, str) or not isinstance(record_id, str):
        raise InvalidRequest(
            "This id does not name a record. Pass the id as it was returned.", param="id"
        )
    if connection is not None and not isinstance(connection, str):
        raise InvalidRequest(
            "The connection in this id is not text. Pass the id as it was returned.", param="id"
        )
    return RecordRef(
        _checked(stream, "stream"),
        _checked(record_id, "record_id", _NOT_IDS),
        None if connection is None else _checked(connection, "connection_id"),
    )


def _window_arguments(fields: dict[str, Any]) -> list[tuple[str, Any]]:
    """The window in a URI, as arguments of `read_record_field`."""
    arguments: list[tuple[str, Any]] = []
    if query := fields.get("q") or fields.get("query"):
        arguments.append(("query", query))
    if "cursor" in fields and "offset_chars" not in fields:
        fields = {**fields, "offset_chars": fields["cursor"]}
    for name in _WINDOW_ARGS:
        value = fields.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if value is not None:
            arguments.append((name, value))
    return arguments
