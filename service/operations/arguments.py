"""The argument types of operations: marshmallow fields with their limits and messages."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from marshmallow import ValidationError, fields, validate

from evidence.handles import RecordRef, without_session
from evidence.limits import BUDGETS, CONTRACT
from evidence.operators import OPERATORS
from evidence.work import parse_json

#: Names that hosts add to the arguments of every tool. They are ignored.
ADDED_BY_HOSTS = ("toolCallId", "sessionId", "chatInput", "action", "tool", "random_string")


def _described(description: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"description": description, **metadata}}


def normalized(raw: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without blank ones, and with the type that is declared instead of text."""
    parsed = {
        name: (
            declared[name].of_text(value)
            if isinstance(value, str) and isinstance(declared.get(name), NonText)
            else value
        )
        for name, value in raw.items()
    }
    return {
        name: value
        for name, value in parsed.items()
        if name not in declared or value not in (None, "", [], {})
    }


def renamed(raw: dict[str, Any], **aliases: str) -> dict[str, Any]:
    """Arguments with aliases replaced by declared names; a declared name wins."""
    arguments = {name: value for name, value in raw.items() if name not in aliases}
    for alias, name in aliases.items():
        if alias in raw:
            arguments.setdefault(name, raw[alias])
    return arguments


def with_id(raw: dict[str, Any]) -> dict[str, Any]:
    """Arguments with the `id` built from a `stream` and a `record_id`.

    An id that is an address loses the secret path of a browser session before it can be repeated.
    """
    if isinstance(raw.get("id"), str):
        return {**raw, "id": without_session(raw["id"])}
    parts = raw.get("stream"), raw.get("record_id")
    if "id" in raw or not all(isinstance(part, str) for part in parts):
        return raw
    rest = {name: value for name, value in raw.items() if name not in ("stream", "record_id")}
    return {"id": str(RecordRef(str(parts[0]), str(parts[1]))), **rest}


class NonText:
    """An argument other than text. `of_text` is the value that a text means, or else the text."""

    #: The type of a JSON text that is understood.
    json_type: type = dict

    def of_text(self, text: str) -> Any:
        try:
            value = parse_json(text.encode())
        except ValueError:
            return text
        return value if type(value) is self.json_type else text


class Text(fields.String):
    """Text that can be stored and sent: no NUL, no lone surrogates."""

    def __init__(self, description: str, *, longest: int = CONTRACT.name_chars, **args: Any):
        length = validate.Length(1, longest)
        super().__init__(validate=length, **_described(description), **args)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise ValidationError("contains NUL or an unpaired surrogate")
        return text


class Digits(fields.String):
    """A whole number written as text."""

    def __init__(self, description: str, **args: Any):
        pattern = validate.Regexp(r"^[0-9]{1,18}$", error="must be a whole number in digits")
        super().__init__(validate=pattern, **_described(description), **args)


class Moment(Text):
    """A date or a date-time, unchanged. A date means its first moment in UTC."""

    def __init__(self, description: str):
        super().__init__(description, longest=BUDGETS.time_chars)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            datetime.fromisoformat(text)
        except ValueError as error:
            raise ValidationError(
                "must be a date such as 2026-03-31, or a date-time such as 2026-03-31T08:00:00Z"
            ) from error
        return text


class Choice(fields.String):
    """One of a few words; its errors list them."""

    def __init__(self, description: str, words: tuple[str, ...], **args: Any):
        message = f"Use one of {', '.join(words)}."
        valid = validate.OneOf(words, error=message)
        errors: dict[str, Any] = {"invalid": message}
        super().__init__(validate=valid, error_messages=errors, **_described(description), **args)


class Number(NonText, fields.Integer):
    """A whole number between two bounds. `5.0` is valid, `"5"` and `true` are not.

    Its errors name both bounds.
    """

    def __init__(
        self,
        description: str,
        least: int,
        most: int = CONTRACT.whole_number,
        *,
        rest: Any = None,
        **args: Any,
    ):
        self.most = most
        about = _described(description, **(rest or {}))
        between = f"{least:,} to {most:,}."
        errors: dict[str, Any] = {"invalid": f"Use a whole number, {between}"}
        bounds = validate.Range(least, most, error=f"Use a number from {between}")
        super().__init__(strict=True, validate=bounds, error_messages=errors, **about, **args)

    def of_text(self, text: str) -> Any:
        return int(text) if re.fullmatch("[0-9]{1,18}", text) else text

    def _validated(self, value: Any) -> Any:
        if isinstance(value, (bool, str)):
            raise self.make_error("invalid")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return super()._validated(value)


class Names(NonText, fields.List):  # type: ignore[type-arg]
    """A list of names, loaded as a tuple."""

    json_type = list

    def __init__(self, description: str, **args: Any):
        inner = fields.String(validate=validate.Length(1, CONTRACT.name_chars))
        bounds = validate.Length(1, CONTRACT.names_in_list)
        super().__init__(inner, validate=bounds, **_described(description), **args)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        return tuple(super()._deserialize(value, attr, data, **kwargs))


class TypedFilter(NonText, fields.Field[dict[str, Any]]):
    """`{field: value}` or `{field: {"gte": value, "lt": value}}`, never a string, never empty."""

    error_code = "invalid_filter"
    #: The name that stands for any other in `tools/list`, and the type of its value there.
    placeholder = "FIELD", "string"

    def __init__(self, **args: Any):
        text = (
            '{"FIELD": value} or {"FIELD": {"gte": value, "lt": value}} '
            f"({', '.join(OPERATORS)}); schema(stream) has the names."
        )
        rest = (
            "filter[field]=value for equality, filter[field][gte]=value for a range "
            f"({', '.join(OPERATORS)}). /v1/schema?stream=… lists the fields."
        )
        super().__init__(**_described(text, rest=rest), **args)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, dict):
            raise ValidationError('must be an object such as {"folder": "inbox"}, not text')
        if not value or len(value) > CONTRACT.filter_fields:
            raise ValidationError(
                f"must have 1 to {CONTRACT.filter_fields} fields; leave it out for no filter"
            )
        return {str(name): self._spec(name, spec) for name, spec in value.items()}

    def _spec(self, name: Any, spec: Any) -> Any:
        if not name or "[" in name or "]" in name or "\0" in name:
            raise ValidationError(f"has a field name that cannot be filtered: {name!r}")
        if not isinstance(spec, dict):
            return self._scalar(name, spec)
        if not spec or any(operator not in OPERATORS for operator in spec):
            raise ValidationError(f"for {name!r} accepts the operators {', '.join(OPERATORS)}")
        return {operator: self._scalar(name, value) for operator, value in spec.items()}

    def _scalar(self, name: Any, value: Any) -> Any:
        if not isinstance(value, (str, int, float, bool)):
            raise ValidationError(f"for {name!r} must be text, a number, true or false")
        if isinstance(value, str) and len(value) > CONTRACT.filter_value_chars:
            raise ValidationError(
                f"for {name!r} can have at most {CONTRACT.filter_value_chars} characters; use "
                "search instead"
            )
        return value


class ExpandLimit(NonText, fields.Field[dict[str, int]]):
    """`{relation: most related records}`."""

    error_code = "invalid_expand"
    placeholder = "RELATION", "integer"

    def __init__(self, **args: Any):
        text = 'Maximum records per relation: {"RELATION": 5}.'
        rest = "Maximum related records per relation, such as expand_limit[replies]=5."
        super().__init__(**_described(text, rest=rest), **args)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        whole = isinstance(value, dict) and value and all(map(_is_count, value.values()))
        if not whole or any("[" in str(name) for name in value):
            raise ValidationError('must be an object such as {"replies": 5}, with numbers from 1')
        return {str(name): int(count) for name, count in value.items()}


def _is_count(value: Any) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 1 <= value <= CONTRACT.whole_number


def over_rest(field: Any, default: Any = None) -> str:
    """The description of an argument over REST, with its default there."""
    meant: str = field.metadata.get("rest", field.metadata["description"])
    default = field.metadata.get("default") if default is None else default
    return meant if default is None else f"{meant} {default} by default."


def page_limit(default: int) -> Number:
    rest = {"rest": "Page size.", "default": default}
    return Number(f"Page size, {default} by default.", 1, CONTRACT.page_items, rest=rest)


class Flag(NonText, fields.Boolean):
    """true or false, but no word or number that could mean either."""

    json_type = bool

    def __init__(self, description: str, **args: Any):
        super().__init__(truthy={True}, falsy={False}, **_described(description), **args)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


stream = partial(Text, "Stream name from schema.")
connection_id = partial(Text, "Only this connection.")
cursor = partial(Text, "A next_cursor; keep the other arguments.", longest=CONTRACT.handle_chars)
record_id = partial(Text, "Record id as printed.", longest=CONTRACT.handle_chars, required=True)
paper_id = partial(
    Text,
    "Paper id as printed; a DOI, an arXiv id or an exact title works too.",
    longest=CONTRACT.paper_id_chars,
    required=True,
)
offset_chars = partial(Number, "Where the window starts in the text, 0 by default.", 0)
