"""The parts of the current streams that a request can read under one grant.

Every module of the reading side starts here: a `StreamView` carries the limits of a grant on one
stream, and nothing outside a `View` can be named.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from evidence import request_log
from evidence.cached import cached_property
from evidence.handles import RecordRef
from evidence.question import Question
from evidence.question import parse as parse_question
from service.access.registry import Grant
from service.port_rules import unknown_connection, unknown_stream
from service.records.engine import Scope, Snapshot
from service.records.engine.vectors import Covered, VectorSet
from service.records.view.coverage import Coverage
from service.records.view.granted_words import Languages, Vocabulary, languages_inside
from service.records.view.streams import StreamView


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
        languages, version = self.languages(snapshot), self._version
        return Vocabulary(snapshot, *self._word_fields, languages, version, self._size)

    @cached_property
    def _version(self) -> object:
        return object()

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

    @cached_property
    def sources(self) -> int:
        """How many connections it has."""
        return len({stream.connection_id for stream in self.streams})

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
