"""Cached connections and streams for snapshots, valid until one of them changes."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import orjson

from service.records.engine import Generation, StreamRow
from evidence.manifest import parse_stored

_STREAMS = """
SELECT s.name, s.id, s.manifest, c.connector_key, c.display_name,
  array(SELECT o.ordinal FROM scope o WHERE o.stream = s.id ORDER BY o.ordinal),
  array(SELECT o.field FROM scope o WHERE o.stream = s.id ORDER BY o.ordinal),
  array(SELECT o.searchable FROM scope o WHERE o.stream = s.id ORDER BY o.ordinal),
  array(SELECT o.languages FROM scope o WHERE o.stream = s.id ORDER BY o.ordinal)
FROM stream s JOIN connection c ON c.id = s.conn WHERE c.connection_id = %s
"""
_FIELDS = "SELECT conn, ordinals FROM searched"
#: The most lexemes for the scope in one expression; with more, each row is checked.
LEXEMES_MOST = 128

#: The most sets of fields, and words of each, that are cached.
SETS_MOST, WORDS_MOST = 8, 10_000

Rows = Callable[..., list[tuple[Any, ...]]]
#: {prefix: {word: how many values contain it}}
Counts = dict[str, dict[str, int]]


class Catalog:
    """Streams as the store has them while its `catalog` epoch is `version`."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._streams: dict[str, dict[str, StreamRow]] = {}
        self._fields: dict[int, frozenset[int]] | None = None
        self._counts: tuple[Generation, dict[Hashable, Counts]] = (0, 0, ""), {}

    def counts(self, generation: Generation, key: Hashable) -> Counts:
        """The known counts of words in a set of fields, to be extended. A commit empties them."""
        if self._counts[0] != generation or len(self._counts[1]) > SETS_MOST:
            self._counts = generation, {}
        counts = self._counts[1].setdefault(key, {})
        if sum(map(len, list(counts.values()))) > WORDS_MOST:
            counts.clear()
        return counts

    def stream(self, rows: Rows, connection_id: str, name: str) -> StreamRow | None:
        """A stream by its names; `rows` queries the database, once for each connection."""
        streams = self._streams.get(connection_id)
        if streams is None:
            streams = {row[0]: _stream(*row[1:]) for row in rows(_STREAMS, connection_id)}
            self._streams[connection_id] = streams
        return streams.get(name)

    def scope(self, rows: Rows, fields: Iterable[int]) -> str:
        """An expression that rows of these fields and few others match; empty for all rows."""
        if self._fields is None:
            self._fields = {conn: frozenset(ordinals) for conn, ordinals in rows(_FIELDS)}
        covered, lexemes, everything = set(fields), list[str](), True
        for conn, ordinals in self._fields.items():
            if ordinals <= covered:
                lexemes.append(f"'@c{conn}'")
            else:
                everything = False
                lexemes += [f"'@{ordinal}'" for ordinal in sorted(ordinals & covered)]
        if everything or len(lexemes) > LEXEMES_MOST:
            return ""
        return " | ".join(lexemes)


def _stream(
    id: int,
    manifest: str,
    connector_key: str,
    display_name: str | None,
    ordinals: list[int],
    fields: list[str],
    searchable: list[bool],
    languages: list[str],
) -> StreamRow:
    return StreamRow(
        id,
        parse_stored(manifest),
        connector_key,
        display_name,
        dict(zip(fields, ordinals)),
        frozenset(field for field, is_searchable in zip(fields, searchable) if is_searchable),
        {field: tuple(orjson.loads(text)) for field, text in zip(fields, languages)},
    )
