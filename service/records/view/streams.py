"""A granted stream: the part of one connection's stream that a grant covers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from evidence.cached import cached_property
from evidence.errors import Forbidden
from evidence.manifest import parts
from evidence.manifest.forms import DATES
from evidence.manifest.values import time_of
from evidence.model import DELETED_AT, Source
from evidence.pointer import is_nested, path_of, top_level as name_of
from evidence.times import moment
from service.access.registry import StreamGrant
from service.records.engine import Stored, StreamRow
from service.records.engine.selections import Limit, Selection, Test


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

    @cached_property
    def long(self) -> list[int]:
        """The searched fields without titles and the like, if there are others."""
        texts = [n for n, name in self.searchable.items() if name not in self.everywhere]
        return texts or list(self.searchable)

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

    def deleted_at(self, record: Stored) -> str | None:
        """When its source deleted the record, where the grant shows it."""
        at = record.data.get(DELETED_AT) if DELETED_AT in self.granted else None
        return at if isinstance(at, str) else None

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
