"""The stored form of scalar values of records for filters, sorting and aggregation."""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from functools import lru_cache
from math import isfinite
from typing import Any

from service.records.manifest.forms import EPOCH, FORMS, decimal_in, decimal_key, since_epoch

SORTABLE_CHARS = 256
#: Earlier than any time that a record can have, in microseconds since 1970.
EARLIEST = -(2**62)
DIGEST_MARK = "…#"
# The time of a record is needed three times in a row: for its order, its limit and its cell.
TIMES_CACHED = 1_024
SCALAR_TYPES = frozenset({"string", "integer", "number", "boolean"})
JSON_TYPES = SCALAR_TYPES | {"object", "array"}
TIME_FORMATS = frozenset({"date-time", "date"})
DECIMAL = "decimal"
#: The form of decimals with a comma: `-1.250,00`.
COMMA = "decimal-comma"

_SQLITE_INTEGERS = range(-(2**63), 2**63)
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]| ?[+-]\d\d:?\d\d)?)?"
)
_BEFORE_OFFSET = re.compile(r" (?=[+-])")

Stored = str | int | float


@dataclass(frozen=True, slots=True)
class FieldType:
    """The declaration of one field in a manifest. `shown_as` is PDPP's open type word.

    `form` is the form of its times or decimals, if it is not the usual one.
    """

    type: str
    format: str | None = None
    role: str | None = None
    shown_as: str | None = None
    form: str | None = None
    schema: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def media_type(self) -> str | None:
        """The media type of base64 text in the field, as declared in JSON Schema."""
        media_type = self.schema.get("contentMediaType")
        return media_type if isinstance(media_type, str) and media_type else None

    @property
    def is_time(self) -> bool:
        return self.form in FORMS or (self.type == "string" and self.format in TIME_FORMATS)

    @property
    def is_decimal(self) -> bool:
        return self.type == "string" and self.format == DECIMAL

    @property
    def is_number(self) -> bool:
        return self.is_decimal or (self.type in ("integer", "number") and not self.is_time)

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALAR_TYPES


@lru_cache(maxsize=TIMES_CACHED)
def microseconds(text: str) -> int | None:
    """Microseconds from 1970 UTC to an ISO 8601 date or date-time; None for other text.

    Also None for a time outside the years 1 to 9999 in UTC, which could not be shown. A time
    without an offset counts as UTC, a date as its first moment.
    """
    if not _ISO.fullmatch(text):
        return None
    try:
        if len(text) == len("2026-01-31"):
            time = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
        else:
            time = datetime.fromisoformat(_BEFORE_OFFSET.sub("", text.upper()))
        return since_epoch(time if time.tzinfo is None else time.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def moment(stored: int) -> str:
    """The ISO 8601 text in UTC for microseconds since 1970."""
    time = EPOCH + timedelta(microseconds=stored)
    return time.isoformat(timespec="microseconds" if time.microsecond else "seconds").replace(
        "+00:00", "Z"
    )


def time_of(value: Any, kind: FieldType) -> int | None:
    """Microseconds from 1970 UTC to the time in a field; None if it has none."""
    if kind.form in FORMS:
        return FORMS[kind.form](value)
    return microseconds(value) if kind.is_time and isinstance(value, str) else None


def decimal_of(value: Any, kind: FieldType) -> Decimal | None:
    """The exact number of a field's value; None if it is not a number."""
    if isinstance(value, str):
        return decimal_in(value, "," if kind.form == COMMA else ".")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    number = Decimal(repr(value))
    return number if number.is_finite() else None


def comparable(text: str) -> str:
    """Text as stored in cells: whole, or its beginning and a digest that distinguishes it."""
    if len(text) <= SORTABLE_CHARS:
        return text
    return f"{text[:SORTABLE_CHARS]}{DIGEST_MARK}{sha256(text.encode()).hexdigest()}"


def sortable(value: Any, kind: FieldType) -> Stored | None:
    """The form in which a value is compared, or None if it is not of its declared type.

    Times are integer microseconds since 1970 UTC, booleans are 0 and 1, numbers are unchanged,
    decimals are keys (see `forms`), other strings are as `comparable` returns them.
    """
    if kind.is_time:
        return time_of(value, kind)
    if kind.is_decimal:
        number = decimal_of(value, kind)
        return None if number is None else decimal_key(number)
    if kind.type == "string":
        return comparable(value) if isinstance(value, str) else None
    if kind.type == "boolean":
        return int(value) if isinstance(value, bool) else None
    if isinstance(value, str) and kind.is_number:  # text keeps digits that numbers lose
        number = decimal_in(value)
        nearest = None if number is None else float(number)
        return nearest if nearest is not None and isfinite(nearest) else None
    if not kind.is_number or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, float) or value in _SQLITE_INTEGERS else float(value)
