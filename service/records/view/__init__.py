"""What one grant lets a request see, worked out against the streams as they are now.

Every module of the reading side starts here: a `StreamView` carries the limits of a grant on one
stream, and nothing outside a `View` can be named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from typing import NamedTuple

from evidence import request_log
from evidence.cached import cached_property
from evidence.errors import Forbidden
from evidence.handles import RecordRef
from evidence.model import Source
from evidence.pointer import is_nested, path_of, top_level as name_of
from evidence.question import Question
from evidence.question import parse as parse_question
from service.port_rules import unknown_connection, unknown_stream
from service.records.engine import Scope, Snapshot, Stored, StreamRow
from service.records.engine.vectors import Covered, VectorSet
from service.records.engine.selections import Limit, Selection, Test
from service.access.registry import Grant, StreamGrant
from evidence.manifest import parts
from evidence.manifest.forms import DATES
from evidence.times import moment
from evidence.manifest.values import time_of
from service.records.view.granted_words import Languages, Vocabulary, languages_inside


class StreamView:
    """One granted stream of one connection, cut to the grant.

    `ordinals` maps the paths that the grant shows and the store compares or searches, `searchable`
    the ordinals in the full-text index to their paths. Titles and times come from declared roles
    and the cursor, where granted.
    """

    def __init__(self, grant: StreamGrant, row: StreamRow) -> None:
        manifest = row.manifest
        self.id, self.manifest = row.id, manifest
        self.connection_id, self.connector_key = grant.connection_id, row.connector_key
        self.display_name = row.display_name
        self.fields, self.granted = grant.fields, frozenset(grant.fields)
        self.limit = Limit(grant.since, grant.until, grant.resources)
        self.roles = {role: name for role, name in manifest.roles.items() if name in self.granted}
        self.ordinals = {
            path: ordinal
            for path, ordinal in sorted(row.fields.items())  # windows of equal worth go by it
            if path in manifest.paths and name_of(path) in self.granted
        }
        self.searchable = {n: path for path, n in self.ordinals.items() if path in row.searchable}
        #: The field that the times of a limit are of, granted or not.
        self.time_ordinal = row.fields.get(path_of(manifest.time_field or ""))
        #: The languages of the searched fields; inside a limit they are those of its texts.
        self.languages = tuple(
            dict.fromkeys(code for path in self.searchable.values() for code in row.languages[path])
        )
        self.title_field = self.roles.get("primary-title")
        #: Texts are embedded after their title, so the vectors of a hidden one may not be used.
        self.shows_vectors = self.title_field or "primary-title" not in manifest.roles
        texts = frozenset(self.searchable.values()) if self.shows_vectors else frozenset()
        #: The searched fields that may have vectors.
        self.semantic = tuple(path for path in manifest.semantic_fields if path in texts)
        #: The fields whose words count as near every place of a record.
        self.everywhere = {self.title_field, self.roles.get("actor")}
        times = (self.roles.get("event-time"), self.sort_field)
        self.time_fields = tuple(name for name in times if name and manifest.fields[name].is_time)

    @cached_property
    def name(self) -> str:
        return self.manifest.name

    @cached_property
    def origin(self) -> Source:
        """Which connection a record is from, without its connector."""
        return Source(self.connection_id, None, self.display_name)

    @cached_property
    def source(self) -> Source:
        """The same with its connector."""
        return Source(self.connection_id, self.connector_key, self.display_name or None)

    @cached_property
    def sort_field(self) -> str | None:
        """The cursor field, where the grant shows it: hidden values must not order an answer."""
        cursor = self.manifest.cursor_field
        return cursor if cursor in self.granted else None

    @cached_property
    def views(self) -> dict[str, parts.View]:
        """The views with their granted fields, by id; those without any are left out."""
        granted_views = (
            replace(view, fields=tuple(name for name in view.fields if name in self.granted))
            for view in self.manifest.views.values()
        )
        return {view.id: view for view in granted_views if view.fields}

    def selection(self, tests: Iterable[Test] = ()) -> Selection:
        """The records of the stream that the grant shows and that pass every test."""
        return Selection(
            self.id,
            self.limit,
            tuple(tests),
            self.time_ordinal,
            self.manifest.cursor_field == self.manifest.time_field,
        )

    def search_ordinal(self, field: str) -> int | None:
        """The ordinal of a field in the full-text index; None if it is not in it."""
        return self.ordinals[field] if field in self.searchable.values() else None

    @cached_property
    def event_ordinal(self) -> int | None:
        """The field with the event time, if the grant shows it and its values can be compared."""
        return self.ordinals.get(self.roles.get("event-time", ""))

    def event_time(self, record: Stored) -> int | None:
        """The event time of a record in microseconds since 1970; None if it has or shows none."""
        name = self.roles.get("event-time", "")
        value = record.data.get(name)
        return None if value is None else time_of(value, self.manifest.fields[name])

    def title(self, record: Stored) -> str | None:
        """The text of the declared title field, where the grant shows it."""
        title = record.data.get(self.title_field) if self.title_field else None
        return title if isinstance(title, str) else None

    def emitted_at(self, record: Stored) -> str:
        """When the record or a granted field of it was last emitted; hidden changes never show."""
        times = [at for field, at in record.changed.items() if field in self.granted]
        return times[-1] if times else record.first_emitted_at

    def time(self, record: Stored, visible: frozenset[str]) -> str | None:
        """When it happened, by declared role or cursor, out of the fields that may be shown."""
        for name in self.time_fields:
            if name in visible and record.data.get(name):
                time, kind = record.data[name], self.manifest.fields[name]
                if kind.form is None:
                    return str(time)
                at = time_of(time, kind)
                if at is None:
                    return None
                whole_day = isinstance(time, str) and kind.form in DATES and ":" not in time
                return moment(at)[: len("2026-01-31") if whole_day else None]
        return None

    def shows(self, field: str) -> bool:
        """Whether a field is granted, or is declared inside one that is."""
        return field in self.granted or (
            is_nested(field) and field in self.manifest.paths and name_of(field) in self.granted
        )

    def path(self, field: str, *, param: str = "fields") -> str:
        """The path of a granted field, or of one inside it; raises as `require` does."""
        if not self.shows(field):
            self.require(field, param=param)
        return path_of(field) if field in self.granted else field

    def require(self, field: str, *, param: str = "fields") -> None:
        """Raises 403 `field_not_granted`, alike for hidden fields and fields that are not there."""
        if field not in self.granted:
            near = get_close_matches(field, self.fields, n=3)
            raise Forbidden(
                f"The grant does not include the field {field!r} of the stream {self.name!r}. "
                "Call schema to see the granted fields.",
                code="field_not_granted",
                param=param,
                field=field,
                did_you_mean=near or None,
            )

    def project(self, fields: Iterable[str]) -> tuple[str, ...]:
        """The granted fields a request asked for, all of them where it asked for none."""
        names = tuple(dict.fromkeys(fields))
        for name in names:
            self.require(name)
        return names or self.fields


Streams = Sequence[StreamView]


class SearchedField(NamedTuple):
    """A searched field of a stream; words of one that is `everywhere` count as near every place."""

    stream: StreamView
    name: str
    is_title: bool
    is_actor: bool
    everywhere: bool


class Coverage:
    """What a search covers: streams with the `selections` of their records, by stream."""

    def __init__(self, streams: Iterable[StreamView], selections: Mapping[int, Selection]) -> None:
        self.streams = [stream for stream in streams if stream.id in selections]
        self.selections = selections
        self._scopes: dict[str | None, Scope] = {}

    def scope(self, role: str | None = None) -> Scope:
        """The searched fields, or those with a role."""
        if role not in self._scopes:
            fields = {
                ordinal: stream.id
                for stream in self.streams
                for ordinal, name in stream.searchable.items()
                if role is None or stream.roles.get(role) == name
            }
            selections = tuple(self.selections.values())
            self._scopes[role] = Scope(tuple(sorted(fields)), selections, fields)
        return self._scopes[role]

    @cached_property
    def meaning_scope(self) -> Scope:
        """The searched fields whose vectors may be used: those after a hidden title may not."""
        fields = {
            ordinal: field.stream.id
            for ordinal, field in self.fields.items()
            if field.stream.shows_vectors
        }
        return Scope(tuple(sorted(fields)), tuple(self.selections.values()), fields)

    @cached_property
    def fields(self) -> dict[int, SearchedField]:
        """The searched fields by their ordinals."""
        return {
            ordinal: SearchedField(
                stream,
                name,
                name == stream.title_field,
                name == stream.roles.get("actor"),
                name in stream.everywhere,
            )
            for stream in self.streams
            for ordinal, name in stream.searchable.items()
        }

    @cached_property
    def threads(self) -> Scope:
        """The records whose neighbours count: those of streams that show both roles of a thread."""
        stream_ids = [
            stream.id for stream in self.streams if {"thread", "position"} <= stream.roles.keys()
        ]
        return Scope((), tuple(self.selections[stream] for stream in stream_ids))


@dataclass(frozen=True)
class View:
    """All streams of one grant. Streams that are gone from the store are left out."""

    grant: Grant
    streams: tuple[StreamView, ...]

    def languages(self, snapshot: Snapshot) -> Languages:
        """The languages of the searched fields; one stream in none has those of the others."""
        if not self._languages:
            inside = languages_inside(snapshot, self._word_fields[-1])
            fields_by_codes = dict[tuple[str, ...], list[int]]()
            for stream in self.streams:
                codes = stream.languages
                if stream.limit:
                    stream_codes = chain.from_iterable(
                        inside.get(ordinal, ()) for ordinal in stream.searchable
                    )
                    codes = tuple(dict.fromkeys(stream_codes))
                fields_by_codes.setdefault(codes, []).extend(stream.searchable)
            all_codes = tuple(dict.fromkeys(chain.from_iterable(fields_by_codes))) or ("en",)
            rest = fields_by_codes.pop((), [])
            if rest:
                fields_by_codes.setdefault(all_codes, []).extend(rest)
            self._languages.append(
                {codes: frozenset(fields) for codes, fields in fields_by_codes.items()}
            )
        return self._languages[0]

    @cached_property
    def _languages(self) -> list[Languages]:
        return []

    def question(self, snapshot: Snapshot, text: str) -> Question:
        """What a text asks of the grant: roles that it does not show are ordinary words."""
        languages = chain.from_iterable(self.languages(snapshot))
        return parse_question(text, tuple(dict.fromkeys(languages)), self._roles)

    @cached_property
    def _roles(self) -> frozenset[str]:
        return frozenset(role for stream in self.streams for role in stream.roles)

    def vocabulary(self, snapshot: Snapshot) -> Vocabulary:
        """The words of the grant."""
        return Vocabulary(snapshot, *self._word_fields, self.languages(snapshot), self._size)

    @cached_property
    def _size(self) -> list[tuple[int, float]]:
        return []

    @cached_property
    def _word_fields(self) -> tuple[tuple[int, ...], tuple[int, ...], Scope]:
        """(streams the grant shows whole, their searched fields, those of the other streams)."""
        whole = [stream for stream in self.streams if not stream.limit]
        limited = [stream for stream in self.streams if stream.limit]
        fields = {ordinal: stream.id for stream in limited for ordinal in stream.searchable}
        return (
            tuple(stream.id for stream in whole),
            tuple(sorted(ordinal for stream in whole for ordinal in stream.searchable)),
            Scope(tuple(sorted(fields)), tuple(stream.selection() for stream in limited), fields),
        )

    @cached_property
    def covered(self) -> Coverage:
        """All records of the grant."""
        return Coverage(self.streams, {stream.id: stream.selection() for stream in self.streams})

    def vectors(self, snapshot: Snapshot) -> VectorSet | None:
        """The vectors that questions use; None if no record of the grant has one."""
        vectors = snapshot.vector_set()
        scope = self.covered.meaning_scope
        return vectors if vectors and snapshot.vector_sample(vectors.id, scope, 1).get() else None

    def vector_coverage(self, snapshot: Snapshot, vectors: VectorSet) -> Mapping[int, Covered]:
        """How many records of each stream have vectors, without streams that the grant limits.

        A stream is also left out if none of its fields has vectors.
        """
        if vectors not in self._vector_coverage:
            whole = [stream.id for stream in self.streams if stream.semantic and not stream.limit]
            rows = snapshot.vector_coverage(vectors.id, whole).get() if whole else []
            self._vector_coverage.clear()
            self._vector_coverage[vectors] = {row.stream: row for row in rows}
        return self._vector_coverage[vectors]

    @cached_property
    def _vector_coverage(self) -> dict[VectorSet, dict[int, Covered]]:
        return {}

    def note_use(self, records: Iterable[RecordRef]) -> None:
        """Notes for the owner that an answer has records of these streams."""
        for connection_id, stream in {(ref.connection_id, ref.stream) for ref in records}:
            stream_ref = str(RecordRef(stream, "", connection_id))[:-1]
            request_log.current().used.add((self.grant.grant_id, stream_ref))

    def within(self, connection_id: str | None) -> tuple[StreamView, ...]:
        """The streams of one connection, or all; 404 `connection_not_found` for any other name."""
        if connection_id is None:
            return self.streams
        streams = tuple(s for s in self.streams if s.connection_id == connection_id)
        if not streams:
            raise unknown_connection(connection_id, (s.connection_id for s in self.streams))
        return streams

    def stream(
        self, name: str, connection_id: str | None = None, *, param: str = "stream"
    ) -> tuple[StreamView, ...]:
        """The views of one stream name, by connection id; 403 `grant_stream_not_allowed`."""
        candidates = self.within(connection_id)
        streams = [s for s in candidates if s.name == name]
        if not streams:
            elsewhere = [stream.connection_id for stream in self.streams if stream.name == name]
            raise unknown_stream(name, (stream.name for stream in candidates), elsewhere, param)
        return tuple(sorted(streams, key=lambda stream: stream.connection_id))


def open_view(snapshot: Snapshot, grant: Grant) -> View:
    """Resolves a grant against the store as a snapshot, confined to it, shows the store."""
    rows = ((entry, snapshot.stream(entry.connection_id, entry.stream)) for entry in grant.streams)
    return View(
        grant, tuple(StreamView(grant_stream, row) for grant_stream, row in rows if row is not None)
    )
