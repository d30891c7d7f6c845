"""Converts scalar values to the stored form that filters, sorting and aggregation use."""

from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from typing import Any

from evidence.manifest.forms import FORMS, decimal_in, decimal_key
from evidence.times import microseconds

SORTABLE_CHARS = 256
#: Earlier than any time that a record can have, in microseconds since 1970.
EARLIEST = -(2**62)
DIGEST_MARK = "…#"
SCALAR_TYPES = frozenset({"string", "integer", "number", "boolean"})
JSON_TYPES = SCALAR_TYPES | {"object", "array"}
TIME_FORMATS = frozenset({"date-time", "date"})
DECIMAL = "decimal"
#: The form of decimals with a comma: `-1.250,00`.
COMMA = "decimal-comma"

_SQLITE_INTEGERS = range(-(2**63), 2**63)

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
