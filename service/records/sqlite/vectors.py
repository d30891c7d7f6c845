"""Vectors of texts as a builder writes them to a file."""

from collections.abc import Iterable

import orjson

from service.records.sql.vector_writing import VectorTables


class SqliteVectors(VectorTables):
    """See `engine.vectors.VectorWriting`."""

    in_list = "{} IN (SELECT value FROM json_each(?))"
    live = "{}.deleted = 0"

    def list_parameter(self, numbers: Iterable[int]) -> str:
        return orjson.dumps(list(numbers)).decode()
