"""Text vectors, as a builder writes them to a database."""

from collections.abc import Iterable

from service.records.sql.vector_writing import VectorTables


class PostgresVectors(VectorTables):
    """See `engine.vectors.VectorWriting`."""

    in_list = "{} = ANY(?)"
    source = "stream s JOIN connection c ON c.id = s.conn"
    live = "NOT {}.deleted"
    unchanged = "FOR SHARE OF d SKIP LOCKED"
    locked = "FOR UPDATE OF {} SKIP LOCKED"

    def list_parameter(self, numbers: Iterable[int]) -> list[int]:
        return list(numbers)
