"""How many records each stream of a store has."""

from dataclasses import dataclass

from service.records.sqlite.writer import Writer

_COUNTS = """
SELECT connection_id, stream.name AS stream,
  count(*) FILTER (WHERE deleted = 0) AS records,
  count(*) FILTER (WHERE deleted = 1) AS deleted
FROM stream JOIN connection ON connection.id = stream.connection
LEFT JOIN record ON record.stream = stream.id
WHERE stream.name >= char(1)
GROUP BY stream.id ORDER BY connection_id, stream.name
"""


@dataclass(frozen=True, slots=True)
class StreamCount:
    """The live and the deleted records of a stream."""

    connection_id: str
    stream: str
    records: int
    deleted: int


def stream_counts(writer: Writer) -> list[StreamCount]:
    """The counts of every stream, by connection and name."""
    from sqlite_utils import Database  # takes longer to load than most commands run

    rows = Database(writer.db, use_counts_table=False).query(_COUNTS)
    return [StreamCount(**row) for row in rows]
