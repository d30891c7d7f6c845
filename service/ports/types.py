"""The types of arguments: marshmallow fields with their limits and messages."""

import re
from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields, validate

from evidence.limits import BUDGETS, CONTRACT
from evidence.operators import OPERATORS
from evidence.work import parse_json


def _described(description: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"description": description, **metadata}}


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

    def __init__(self, description: str, *, longest: int = CONTRACT.name_chars):
        length = validate.Length(1, longest)
        super().__init__(validate=length, **_described(description))

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise ValidationError("contains NUL or an unpaired surrogate")
        return text


class Digits(fields.String):
    """A whole number written as text."""

    def __init__(self, description: str):
        pattern = validate.Regexp(
            r"^[0-9]{1,18}$", error="must be a whole number, written in digits"
        )
        super().__init__(validate=pattern, **_described(description))


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

    def __init__(self, description: str, words: tuple[str, ...]):
        message = f"Use one of {', '.join(words)}."
        valid = validate.OneOf(words, error=message)
        errors: dict[str, Any] = {"invalid": message}
        super().__init__(validate=valid, error_messages=errors, **_described(description))


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
    ):
        self.most = most
        about = _described(description, **(rest or {}))
        between = f"{least:,} to {most:,}."
        errors: dict[str, Any] = {"invalid": f"Use a whole number, {between}"}
        bounds = validate.Range(least, most, error=f"Use a number from {between}")
        super().__init__(strict=True, validate=bounds, error_messages=errors, **about)

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

    def __init__(self, description: str):
        inner = fields.String(validate=validate.Length(1, CONTRACT.name_chars))
        bounds = validate.Length(1, CONTRACT.names_in_list)
        super().__init__(inner, validate=bounds, **_described(description))

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        return tuple(super()._deserialize(value, attr, data, **kwargs))


class TypedFilter(NonText, fields.Field[dict[str, Any]]):
    """`{field: value}` or `{field: {"gte": value, "lt": value}}`, never a string, never empty."""

    error_code = "invalid_filter"
    #: The name that stands for any other in `tools/list`, and the type of its value there.
    placeholder = "FIELD", "string"

    def __init__(self) -> None:
        text = (
            '{"FIELD": value} or {"FIELD": {"gte": value}}; '
            f"operators: {', '.join(OPERATORS)}. schema(stream) lists the fields."
        )
        rest = (
            "filter[field]=value for equality, filter[field][gte]=value for a range. "
            f"Operators: {', '.join(OPERATORS)}. /v1/schema?stream=… lists the fields."
        )
        super().__init__(**_described(text, rest=rest))

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
            raise ValidationError(f"names a field that cannot be filtered: {name!r}")
        if not isinstance(spec, dict):
            return self._scalar(name, spec)
        if not spec or any(operator not in OPERATORS for operator in spec):
            raise ValidationError(f"the operators for {name!r} are {', '.join(OPERATORS)}")
        return {operator: self._scalar(name, value) for operator, value in spec.items()}

    def _scalar(self, name: Any, value: Any) -> Any:
        if not isinstance(value, (str, int, float, bool)):
            raise ValidationError(f"the value for {name!r} must be text, a number, true or false")
        if isinstance(value, str) and len(value) > CONTRACT.filter_value_chars:
            raise ValidationError(
                f"the value for {name!r} can have at most {CONTRACT.filter_value_chars} "
                "characters; use search instead"
            )
        return value


class ExpandLimit(NonText, fields.Field[dict[str, int]]):
    """`{relation: most related records}`."""

    error_code = "invalid_expand"
    placeholder = "RELATION", "integer"

    def __init__(self) -> None:
        text = 'Maximum per record and relation, as in {"replies": 5}.'
        rest = (
            "Maximum number of related records per record and relation, as in "
            "expand_limit[replies]=5."
        )
        super().__init__(**_described(text, rest=rest))

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        whole = isinstance(value, dict) and value and all(map(_is_count, value.values()))
        if not whole or any("[" in str(name) for name in value):
            raise ValidationError('must be an object such as {"replies": 5}; numbers start at 1')
        return {str(name): int(count) for name, count in value.items()}


def _is_count(value: Any) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 1 <= value <= CONTRACT.whole_number


class Flag(NonText, fields.Boolean):
    """true or false, but no word or number that could mean either."""

    json_type = bool

    def __init__(self, description: str):
        super().__init__(truthy={True}, falsy={False}, **_described(description))

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


STREAM = Text("A stream name from `schema`.")
CONNECTION_ID = Text("Use only this connection.")
CURSOR = Text(
    "The previous answer's next_cursor. Repeat the other arguments.",
    longest=CONTRACT.handle_chars,
)
RECORD_ID = Text("A record id from an earlier answer.", longest=CONTRACT.handle_chars)
PAPER_ID = Text(
    "A paper id from an earlier answer, a DOI, an arXiv id or an exact title.",
    longest=CONTRACT.paper_id_chars,
)
OFFSET_CHARS = Number("Offset at which the window starts, 0 by default.", 0)
