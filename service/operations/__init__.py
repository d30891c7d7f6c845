"""The operations on records, in the order of the tool list."""

from service.operations import aggregate, fetch, query_records, read_record_field, schema, search
from service.operations.base import RecordOperation

#: The records surface, in the order tools are listed. Exactly these; a test pins it.
OPERATIONS: tuple[RecordOperation, ...] = (
    schema.OPERATION,
    query_records.OPERATION,
    aggregate.OPERATION,
    search.OPERATION,
    fetch.OPERATION,
    read_record_field.OPERATION,
)
