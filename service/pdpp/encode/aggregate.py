"""`Buckets` -> the aggregation body."""

from typing import Any

from evidence import wire
from evidence.model import Buckets


def body(found: Buckets) -> dict[str, Any]:
    """The body of a figure or of a page of groups."""
    return wire.aggregation(found)
