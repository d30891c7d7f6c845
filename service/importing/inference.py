"""Proposes a manifest from sample rows if the owner gives none.

Nothing here is final: the owner sees the proposal and can replace it with a manifest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from evidence.limits import BUDGETS
from evidence.operators import OPERATORS
from evidence.pointer import escaped, searched_text
from service.importing.column_types import Kind, Tokens, as_stored, kind_of, settle
from evidence.names import Refused, check_name
from evidence.manifest.values import DECIMAL, SORTABLE_CHARS

WORDY_CHARS = 20
FILTER_CHARS = 64
GROUPS = 100
#: With this few rows, a value need not repeat to be a category.
FEW_ROWS = 20
#: Each searched field adds a scope to a grant, and a wide grant ranks less. Beyond this number,
#: only fields of several words are searched.
SEARCHED_FIELDS = 32
#: Objects are examined to this depth, unless they have more members than this: their names are then
#: data.
NESTING = 4
MEMBERS = 40

KEY_NAMES = ("id", "_id", "key", "uuid")
TIME_NAMES = tuple("received_at sent_at created_at date timestamp updated_at start time".split())
TITLE_NAMES = (
    *("title", "subject", "name", "headline", "summary", "payee", "merchant", "counterparty"),
    *("empfänger", "auftraggeber/empfänger", "beguenstigter/zahlungspflichtiger"),
)
TEXT_NAMES = ("body", "text", "content", "message", "description", "note", "abstract")
ACTOR_NAMES = ("from", "author", "sender", "actor", "user", "username", "user_name", "from_name")
THREAD_NAMES = ("thread_id", "conversation_id", "thread", "thread_ts", "chat_id", "channel_id")

_ID_NAME = re.compile(r"(^|_)(id|key|uuid|guid|hash|sha1|sha256|md5|token|etag)$|[a-z]Id$")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+$", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{80,}={0,2}")
_WORDY = re.compile(r"\s|[\u0900-\uffdc\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Inferred:
    """A proposed stream document; `doubts` are the fields that stay text, with the reasons."""

    document: dict[str, Any]
    doubts: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Column:
    """The sample of one field; `tokens` is its path, `values` has no nulls."""

    tokens: Tokens
    kind: Kind
    values: list[Any]
    rows: int

    @property
    def name(self) -> str:
        """The field as a manifest names it."""
        return self.tokens[0] if len(self.tokens) == 1 else "".join(map(escaped, self.tokens))

    @property
    def is_number(self) -> bool:
        numeric = self.kind.type in ("integer", "number") or self.kind.format == DECIMAL
        return numeric and not self.kind.is_time

    @property
    def texts(self) -> list[str]:
        return list(filter(None, map(searched_text, self.values)))

    @property
    def is_text(self) -> bool:
        """True if the field holds words worth searching."""
        if self.kind.type not in ("string", "array") or self.kind.is_time or is_id(self.tokens[-1]):
            return False
        return not all(_URL.match(text) or _BASE64.fullmatch(text) for text in self.texts)

    @property
    def is_wordy(self) -> bool:
        """True if it holds several words, or text without spaces between words."""
        if not self.is_text or self.is_number:
            return False
        mean = sum(map(len, self.texts)) / len(self.texts)
        return mean > WORDY_CHARS or any(_WORDY.search(text) for text in self.texts)

    @property
    def is_short(self) -> bool:
        """True if its values are scalars that are short enough to type into a filter."""
        if self.kind.type in ("object", "array"):
            return False
        texts = [value for value in self.values if isinstance(value, str)]
        mean = sum(map(len, texts)) / max(len(texts), 1)
        return mean <= FILTER_CHARS and all(len(text) <= SORTABLE_CHARS for text in texts)

    @property
    def is_category(self) -> bool:
        """True if its values repeat often enough for grouping, or are too few to tell."""
        if self.kind.type == "boolean":
            return True
        if self.kind.type != "string" or self.kind.is_time or self.is_number or not self.is_short:
            return False
        distinct = len({str(value) for value in self.values})
        few = self.rows <= FEW_ROWS and self.is_text
        return distinct <= GROUPS and (few or distinct * 2 <= len(self.values))


def is_id(name: str) -> bool:
    """True if a field has the name of an id."""
    return any(map(_ID_NAME.search, (name, name.lower())))


def infer(
    name: str,
    rows: Iterable[dict[str, Any]],
    *,
    key: Sequence[str] = (),
    roles: bool = False,
    untyped: bool = False,
    comma: bool | None = None,
    decisive: Mapping[str, list[Any]] = MappingProxyType({}),
) -> Inferred:
    """The document of one stream, proposed from up to 1,000 rows.

    `key` are the fields of the primary key if the owner names them; `untyped` rows contain only
    text, with a decimal comma if `comma`. `decisive` has further values of columns, from all rows.
    """
    sample = list(islice(rows, BUDGETS.import_sample_rows))
    columns = _columns(sample, untyped, comma, decisive)
    top = {column.name: column for column in columns if len(column.tokens) == 1}
    key_fields = list(key) or _key(top)
    times = [name for name, column in top.items() if column.kind.is_time]
    common = [name for name in times if len(top[name].values) * 2 > top[name].rows]
    cursor = _first_column(times, TIME_NAMES) or next(iter(common or times), None)
    properties = _properties(columns)
    if roles:
        for field, role in _roles(top, cursor).items():
            properties[field]["x_pdpp_role"] = role
    document = {
        "name": name,
        "primary_key": key_fields,
        **({"cursor_field": cursor} if cursor else {}),
        "schema": {"type": "object", "properties": properties},
        "query": _query(columns, key_fields),
    }
    doubts = {column.name: column.kind.doubt for column in columns if column.kind.doubt}
    return Inferred(document, doubts)


def _columns(
    rows: list[dict[str, Any]], untyped: bool, comma: bool | None, decisive: Mapping[str, list[Any]]
) -> list[_Column]:
    """The columns; those inside objects follow the object."""
    values: dict[Tokens, list[Any]] = {}
    for row in rows:
        _gather(values, (), row)
    members = Counter(tokens[:-1] for tokens in values if len(tokens) > 1)
    kinds: dict[Tokens, Kind] = {}
    for tokens, sample in values.items():
        if any(members[tokens[:size]] > MEMBERS for size in range(1, len(tokens))):
            continue
        values_of_all = sample + decisive.get(tokens[-1], []) if untyped else sample
        kind = kind_of(tokens[-1], values_of_all, untyped=untyped)
        text = kind.format == DECIMAL and is_id(tokens[-1]) and {*map(type, sample)} == {str}
        kinds[tokens] = Kind("string") if text else kind
    columns = []
    for tokens, kind in settle(kinds, comma).items():
        sample = values[tokens]
        if untyped:
            sample = [cell for text in sample if (cell := as_stored(text, kind.type)) is not None]
        columns.append(_Column(tokens, kind, sample, len(rows)))
    return columns


def _gather(values: dict[Tokens, list[Any]], tokens: Tokens, row: dict[str, Any]) -> None:
    for name, value in row.items():
        try:
            check_name(name, what="field")
        except Refused:
            continue
        if len(values) >= BUDGETS.stream_fields and (*tokens, name) not in values:
            continue
        gathered = values.setdefault((*tokens, name), [])
        if value is None:
            continue
        gathered.append(value)
        if isinstance(value, dict) and len(tokens) < NESTING and len(value) <= MEMBERS:
            _gather(values, (*tokens, name), value)


def _properties(columns: list[_Column]) -> dict[str, Any]:
    """The schemas of the fields and of the fields inside them."""
    properties: dict[str, Any] = {}
    for column in columns:
        parent = properties
        for token in column.tokens[:-1]:
            parent = parent[token].setdefault("properties", {})
        parent[column.tokens[-1]] = column.kind.to_json()
    return properties


def _key(columns: dict[str, _Column]) -> list[str]:
    """The field that has the name and the values of an id, if any."""
    by_name = {name.lower(): name for name in reversed(columns)}
    for column in [columns[by_name[name]] for name in KEY_NAMES if name in by_name]:
        values = [str(value) for value in column.values if isinstance(value, (str, int))]
        if len(values) == column.rows == len({*values}):
            return [column.name]
    return []


def _query(columns: list[_Column], key: list[str]) -> dict[str, Any]:
    measured = [c for c in columns if not is_id(c.tokens[-1]) and [c.name] != key]
    numbers = [column.name for column in measured if column.is_number]
    times = [column.name for column in measured if column.kind.is_time]
    categories = [column.name for column in columns if column.is_category and [column.name] != key]
    return {
        "exact_filters": [column.name for column in columns if column.is_short],
        "range_filters": {
            column.name: list(OPERATORS)
            for column in measured
            if column.is_number or column.kind.is_time
        },
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
    """The fields whose words are searched, in order."""
    wordy = [column.name for column in columns if column.is_wordy]
    short = [column.name for column in columns if column.is_text and not column.is_wordy]
    searched = {*wordy, *short[: max(SEARCHED_FIELDS - len(wordy), 0)]}
    return [column.name for column in columns if column.name in searched]


def _roles(columns: dict[str, _Column], cursor: str | None) -> dict[str, str]:
    """{field: role} for the fields of the sample that have a role."""
    texts = {n: column for n, column in columns.items() if column.is_text and not column.is_number}
    wordy = [
        name
        for name, column in texts.items()
        if column.is_wordy and name != cursor and (column.rows == 1 or len({*column.texts}) > 1)
    ]
    title = _first_column(texts, TITLE_NAMES)
    untitled = [name for name in wordy if name != title]
    longest = max(untitled, key=lambda name: sum(map(len, texts[name].texts)), default=None)
    strings = {name: column for name, column in columns.items() if column.kind.type == "string"}
    roles = {
        "primary-text": _first_column(wordy, TEXT_NAMES) or longest,
        "primary-title": title,
        "actor": _first_column(texts, ACTOR_NAMES),
        "thread": _first_column(strings, THREAD_NAMES),
        "event-time": cursor,
    }
    return {name: role for role, name in roles.items() if name}


def _first_column(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """The column with the first of these names."""
    lower = {name.lower(): name for name in columns}
    return next((lower[name] for name in names if name in lower), None)
