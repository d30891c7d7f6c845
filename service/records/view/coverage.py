"""What a search covers: the streams, their searched fields and their records."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from evidence.cached import cached_property
from service.records.engine import Scope
from service.records.engine.matches import ACTOR, EVERYWHERE, FIRST, TITLE
from service.records.engine.selections import Selection
from service.records.view.streams import StreamView


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
    def untitled(self) -> list[int]:
        """The searched fields that are no titles, ascending."""
        return sorted(n for n, field in self.fields.items() if not field.is_title)

    @cached_property
    def kinds(self) -> dict[int, int]:
        """What each searched field is, by its ordinal, ascending; see `engine.matches`."""
        last = {field.stream.id: ordinal for ordinal, field in sorted(self.fields.items())}
        kinds, end = dict[int, int](), -1
        for ordinal, field in sorted(self.fields.items()):
            kinds[ordinal] = TITLE * field.is_title | EVERYWHERE * field.everywhere
            kinds[ordinal] |= ACTOR * field.is_actor | FIRST * (ordinal > end)
            end = max(end, last[field.stream.id])
        return kinds

    @cached_property
    def threads(self) -> Scope:
        """The records whose neighbours count: those of streams that show both roles of a thread."""
        stream_ids = [
            stream.id for stream in self.streams if {"thread", "position"} <= stream.roles.keys()
        ]
        return Scope((), tuple(self.selections[stream] for stream in stream_ids))
