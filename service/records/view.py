"""What one grant lets a request see, worked out against the streams as they are now.

Every module of the reading side starts here: a `StreamView` carries the limits of a grant on one
stream, and nothing outside a `View` can be named.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import orjson

from evidence.errors import Forbidden, NotFound
from service.access.grants import Grant, StreamGrant
from service.records.manifest import StreamManifest, parse


@dataclass(frozen=True, slots=True)
class StreamView:
    """One granted stream of one connection, cut to the grant."""

    id: int
    connection_id: str
    connector_key: str
    display_name: str | None
    manifest: StreamManifest
    roles: dict[str, str]
    fields: tuple[str, ...]
    granted: frozenset[str]
    ordinals: dict[str, int]
    searchable: dict[int, str]
    since: int | None
    until: int | None
    resources: frozenset[str] | None
    #: Which connection this is, as every row of it says in PDPP's words.
    source: dict[str, Any]
    #: Where titles and times come from: declared roles and the cursor, where granted.
    title_field: str | None
    time_fields: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def sort_field(self) -> str | None:
        """The cursor field, where the grant shows it: hidden values must not order an answer."""
        cursor = self.manifest.cursor_field
        return cursor if cursor in self.granted else None

    def require(self, field: str, *, param: str = "fields") -> None:
        """Raises 403 `field_not_granted`, alike for hidden fields and fields that are not there."""
        if field not in self.granted:
            near = get_close_matches(field, self.fields, n=3)
            raise Forbidden(
                f"The field {field!r} is not in this grant for stream {self.name!r}. "
                "Use a field that schema lists for the stream.",
                code="field_not_granted",
                param=param,
                field=field,
                did_you_mean=near or None,
            )

    def project(self, fields: Iterable[str]) -> tuple[str, ...]:
        """The granted fields a request asked for, all of them where it asked for none."""
        wanted = tuple(dict.fromkeys(fields))
        for field in wanted:
            self.require(field)
        return wanted or self.fields


@dataclass(frozen=True, slots=True)
class View:
    """All streams of one grant. Streams that are gone from the store are left out.

    `owners` tells whose a granted full-text scope is; `remembered` is for what follows from some
    of the streams alone, by their ids.
    """

    grant: Grant
    streams: tuple[StreamView, ...]
    owners: dict[int, StreamView]
    remembered: dict[tuple[int, ...], Any]

    @property
    def connection_ids(self) -> list[str]:
        return sorted({stream.connection_id for stream in self.streams})

    def within(self, connection_id: str | None) -> tuple[StreamView, ...]:
        """The streams of one connection, or all; 404 `connection_not_found` for any other name."""
        if connection_id is None:
            return self.streams
        found = tuple(s for s in self.streams if s.connection_id == connection_id)
        if not found:
            near = get_close_matches(connection_id, self.connection_ids, n=3)
            raise NotFound(
                f"No connection {connection_id!r} in this grant. Call schema for the connections.",
                code="connection_not_found",
                param="connection_id",
                did_you_mean=near or None,
            )
        return found

    def stream(
        self, name: str, connection_id: str | None = None, *, param: str = "stream"
    ) -> tuple[StreamView, ...]:
        """The views of one stream name, by connection id; 403 `grant_stream_not_allowed`."""
        candidates = self.within(connection_id)
        found = [s for s in candidates if s.name == name]
        if not found:
            near = get_close_matches(name, sorted({s.name for s in candidates}), n=3)
            raise Forbidden(
                f"The stream {name!r} is not in this grant. Call schema for the granted streams.",
                code="grant_stream_not_allowed",
                param=param,
                did_you_mean=near or None,
            )
        return tuple(sorted(found, key=lambda stream: stream.connection_id))


_FIND = """
SELECT s.id, s.manifest, c.connector_key, c.display_name,
  (SELECT json_group_array(json_array(o.ordinal, o.field, o.searchable))
     FROM scope o WHERE o.stream = s.id)
FROM stream s JOIN connection c ON c.id = s.connection
WHERE c.connection_id = ? AND s.name = ?
"""


def open_view(db: sqlite3.Connection, grant: Grant) -> View:
    """Resolves a grant against the store as `db` shows it."""
    found = (_open_stream(db, item) for item in grant.streams)
    streams = tuple(stream for stream in found if stream is not None)
    owners = {ordinal: stream for stream in streams for ordinal in stream.searchable}
    return View(grant, streams, owners, {})


def _open_stream(db: sqlite3.Connection, item: StreamGrant) -> StreamView | None:
    row = db.execute(_FIND, (item.connection_id, item.stream)).fetchone()
    if row is None:
        return None
    stream_id, text, connector_key, display_name, scopes = row
    manifest = _manifest(text)
    granted = frozenset(item.fields)
    roles = {role: name for role, name in manifest.roles.items() if name in granted}
    times = (roles.get("event-time"), manifest.cursor_field)
    ordinals = {field: (ordinal, searchable) for ordinal, field, searchable in orjson.loads(scopes)}
    ordinals = {field: pair for field, pair in ordinals.items() if field in granted}
    return StreamView(
        id=stream_id,
        connection_id=item.connection_id,
        connector_key=connector_key,
        display_name=display_name,
        manifest=manifest,
        roles=roles,
        fields=tuple(item.fields),
        granted=granted,
        ordinals={field: ordinal for field, (ordinal, _) in ordinals.items()},
        searchable={ordinal: field for field, (ordinal, on) in ordinals.items() if on},
        since=item.since,
        until=item.until,
        resources=item.resources,
        source=_source(item.connection_id, display_name),
        title_field=roles.get("primary-title"),
        time_fields=tuple(
            name for name in times if name in granted and manifest.fields[str(name)].is_time
        ),
    )


def _source(connection_id: str, display_name: str | None) -> dict[str, Any]:
    named = {"connection_id": connection_id, "connector_instance_id": connection_id}
    return {**named, "display_name": display_name} if display_name else named


@lru_cache(maxsize=1024)
def _manifest(text: str) -> StreamManifest:
    return parse({"streams": [orjson.loads(text)]})[0]


def limits(view: StreamView, record: str = "r") -> tuple[str, list[Any]]:
    """SQL that holds for the records of a stream this grant shows, with its parameters."""
    clauses, values = [], list[Any]()
    if view.since is not None:
        clauses.append(f"{record}.at >= ?")
        values.append(view.since)
    if view.until is not None:
        clauses.append(f"{record}.at < ?")
        values.append(view.until)
    if view.resources is not None:
        clauses.append(f"{record}.record_key IN (SELECT value FROM json_each(?))")
        values.append(orjson.dumps(sorted(view.resources)).decode())
    return " AND ".join(clauses) or "1", values
