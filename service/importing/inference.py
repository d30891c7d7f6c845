"""Proposing a manifest from sample rows, where an owner gives none.

Nothing here is a promise: the proposal is shown to the owner, and a manifest of theirs replaces it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from evidence.limits import BUDGETS
from service.ports import OPERATORS
from service.records.intake import Refused, check_name
from service.records.values import SORTABLE_CHARS, microseconds

WORDY_CHARS = 20
FILTER_CHARS = 64
GROUPS = 100
#: So few rows need not repeat a value to be grouped by it.
FEW_ROWS = 20
#: Each searched field counts in the scopes of a grant, and a wide grant ranks less: beyond these,
#: only fields of several words are searched.
SEARCHED_FIELDS = 32

KEY_NAMES = ("id", "_id", "key", "uuid")
TIME_NAMES = (
    *("received_at", "sent_at", "created_at", "date", "timestamp", "updated_at", "start", "time"),
)
TITLE_NAMES = ("title", "subject", "name", "headline", "summary")
TEXT_NAMES = ("body", "text", "content", "message", "description", "note", "abstract")

_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
}
_ID_NAME = re.compile(r"(^|_)(id|key|uuid|guid|hash|sha1|sha256|md5|token|etag)$|[a-z]Id$")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+$", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{80,}={0,2}")
_WORDY = re.compile(r"\s|[\u0900-\uffdc\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class _Column:
    """What the sample shows of one field; `values` leaves out nulls."""

    name: str
    type: str
    format: str | None
    values: list[Any]
    rows: int

    @property
    def is_time(self) -> bool:
        return self.format is not None

    @property
    def is_number(self) -> bool:
        return self.type in ("integer", "number")

    @property
    def is_id(self) -> bool:
        return any(map(_ID_NAME.search, (self.name, self.name.lower())))

    @property
    def texts(self) -> list[str]:
        return [value for value in self.values if isinstance(value, str) and value]

    @property
    def is_text(self) -> bool:
        """Whether the field holds words somebody may look for."""
        if self.type != "string" or self.is_time or self.is_id or not self.texts:
            return False
        return not all(_URL.match(text) or _BASE64.fullmatch(text) for text in self.texts)

    @property
    def is_wordy(self) -> bool:
        """Whether it holds several words, or ones that spaces do not part."""
        if not self.is_text:
            return False
        mean = sum(map(len, self.texts)) / len(self.texts)
        return mean > WORDY_CHARS or any(_WORDY.search(text) for text in self.texts)

    @property
    def is_short(self) -> bool:
        """Whether its values are scalars short enough to be typed into a filter."""
        if self.type in ("object", "array"):
            return False
        texts = [value for value in self.values if isinstance(value, str)]
        mean = sum(map(len, texts)) / max(len(texts), 1)
        return mean <= FILTER_CHARS and all(len(text) <= SORTABLE_CHARS for text in texts)

    @property
    def is_category(self) -> bool:
        """Whether its values repeat enough to be grouped by, or are too few to tell."""
        if self.type == "boolean":
            return True
        if self.type != "string" or self.is_time or not self.is_short:
            return False
        distinct = len({str(value) for value in self.values})
        few = self.rows <= FEW_ROWS and self.is_text
        return distinct <= GROUPS and (few or distinct * 2 <= len(self.values))

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type} | ({"format": self.format} if self.format else {})


def infer(
    name: str,
    rows: Iterable[dict[str, Any]],
    *,
    key: Sequence[str] = (),
    suggest_roles: bool = False,
) -> dict[str, Any]:
    """The document of one stream, proposed from up to 1,000 rows; roles only where asked for.

    `key` are the fields of the primary key where the owner names them.
    """
    columns = _columns(list(islice(rows, BUDGETS.import_sample_rows)))
    found = list(key) or _key(columns)
    cursor = _cursor(columns)
    properties = {column.name: column.to_json() for column in columns.values()}
    if suggest_roles:
        for field, role in _roles(columns, cursor).items():
            properties[field]["x_pdpp_role"] = role
    document: dict[str, Any] = {"name": name, "primary_key": found}
    if cursor:
        document["cursor_field"] = cursor
    document["schema"] = {"type": "object", "properties": properties}
    document["query"] = _query(list(columns.values()), found)
    return document


def _columns(rows: list[dict[str, Any]]) -> dict[str, _Column]:
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, [])
            if value is not None:
                values[name].append(value)
    return {
        name: _column(name, found, len(rows)) for name, found in values.items() if _is_name(name)
    }


def _column(name: str, values: list[Any], rows: int) -> _Column:
    kinds = Counter(_TYPES.get(type(value), "string") for value in values)
    if kinds.keys() == {"integer", "number"}:
        return _Column(name, "number", None, values, rows)
    kind = kinds.most_common(1)[0][0] if kinds else "string"
    form = _time_format(values) if kinds.keys() == {"string"} else None
    return _Column(name, kind, form, values, rows)


def _time_format(texts: list[str]) -> str | None:
    found = [text for text in texts if text]
    if not found or any(microseconds(text) is None for text in found):
        return None
    return "date" if all(len(text) == len("2026-01-31") for text in found) else "date-time"


def _is_name(name: str) -> bool:
    try:
        return bool(check_name(name, what="field"))
    except Refused:
        return False


def _key(columns: dict[str, _Column]) -> list[str]:
    """The field that has the name and the values of an id, if there is one."""
    by_name = {name.lower(): name for name in reversed(columns)}
    named = [by_name[name] for name in KEY_NAMES if name in by_name]
    return next(([name] for name in named if _is_key(columns[name])), [])


def _is_key(column: _Column) -> bool:
    scalars = all(isinstance(value, (str, int)) for value in column.values)
    return scalars and len(column.values) == column.rows == len({str(v) for v in column.values})


def _cursor(columns: dict[str, _Column]) -> str | None:
    times = [column.name for column in columns.values() if column.is_time]
    common = [name for name in times if len(columns[name].values) * 2 > columns[name].rows]
    return next((name for name in TIME_NAMES if name in times), next(iter(common or times), None))


def _query(columns: list[_Column], key: list[str]) -> dict[str, Any]:
    measured = [
        c for c in columns if (c.is_number or c.is_time) and not c.is_id and [c.name] != key
    ]
    numbers = [column.name for column in measured if column.is_number]
    times = [column.name for column in measured if column.is_time]
    categories = [column.name for column in columns if column.is_category and [column.name] != key]
    return {
        "exact_filters": [column.name for column in columns if column.is_short],
        "range_filters": {column.name: list(OPERATORS) for column in measured},
        "aggregations": {
            "count": True,
            "sum": numbers,
            "min": numbers + times,
            "max": numbers + times,
            "group_by": categories,
            "group_by_time": times,
            "count_distinct": categories,
        },
        "search": {"lexical_fields": _searched(columns)},
    }


def _searched(columns: list[_Column]) -> list[str]:
    """The fields whose words are searched, in their order."""
    wordy = [column.name for column in columns if column.is_wordy]
    short = [column.name for column in columns if column.is_text and not column.is_wordy]
    found = {*wordy, *short[: max(SEARCHED_FIELDS - len(wordy), 0)]}
    return [column.name for column in columns if column.name in found]


def _roles(columns: dict[str, _Column], cursor: str | None) -> dict[str, str]:
    """Field to role: a title, a text and a time, where the sample has such fields."""
    texts = [column.name for column in columns.values() if column.is_text]
    title = next((name for name in TITLE_NAMES if name in texts), None)
    wordy = [name for name in texts if columns[name].is_wordy]
    longest = max(wordy, key=lambda name: sum(map(len, map(str, columns[name].values))), default="")
    text = next((name for name in TEXT_NAMES if name in wordy), longest)
    found = {text: "primary-text"} if text else {}
    if title:
        found[title] = "primary-title"
    if cursor:
        found[cursor] = "event-time"
    return found
