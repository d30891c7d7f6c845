"""The operations on records, in the order of the tool list."""

from typing import Any

from service.operations import read_record_field
from service.operations.base import RecordOperation
from service.operations.records import AGGREGATE, FETCH, QUERY_RECORDS, SCHEMA, SEARCH

#: The records surface, in the order of the tool list. A test fixes exactly these.
OPERATIONS: tuple[RecordOperation[Any, Any], ...] = (
    *(SCHEMA, QUERY_RECORDS, AGGREGATE, SEARCH, FETCH),
    read_record_field.OPERATION,
)
