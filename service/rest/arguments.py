"""Parses query strings into typed arguments."""

import re
import sys
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.operations.base import BaseOperation
from service.ports import types

#: Parameters of the PDPP contract that every route of records accepts.
SHARED = ("connector_id", "connector_instance_id", "subject_id")
FLAGS = {"true": True, "false": False}

_DIGITS = re.compile("[0-9]+")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_BRACKETS = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_PART = re.compile(r"\[([^\[\]]*)\]")


def read(
    operation: BaseOperation[Any],
    query_string: str,
    *,
    shared: tuple[str, ...] = (),
    fixed: Collection[str] = (),
) -> tuple[dict[str, Any], dict[str, str]]:
    """(arguments of the operation, other parameters) of a query string.

    The others are those of this route only and those `shared` by all routes. `fixed` are the
    arguments of the path.
    """
    names = operation.queried(operation.route.path, fixed)
    parsed: dict[str, Any] = dict(operation.rest_defaults)
    extra: dict[str, str] = {}
    for name, path, value in _parameters(query_string):
        if name in names:
            argument = names[name]
            field = operation.arguments.fields[argument]
            parsed[argument] = _merge(parsed, argument, field, path, value, operation.rest_defaults)
        elif name in operation.extra or name in shared:
            extra[name] = value
        else:
            raise unknown(name, [*names, *operation.extra, *shared])
    return parsed, extra


def read_posted(
    operation: BaseOperation[Any], body: dict[str, Any], *, shared: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """The same for a JSON body, whose members already have types."""
    names = operation.queried("")
    parsed: dict[str, Any] = dict(operation.rest_defaults)
    extra: dict[str, str] = {}
    for name, value in body.items():
        if name in names:
            parsed[names[name]] = value
        elif name not in (*operation.extra, *shared):
            raise unknown(name, [*names, *operation.extra, *shared])
        elif value is not None:
            if not isinstance(value, str):
                raise InvalidRequest(f"{name} must be text.", param=name)
            extra[name] = value
    return parsed, extra


def unknown(name: str, supported: Collection[str]) -> InvalidRequest:
    """The error for an unknown parameter, with the closest name and all valid ones."""
    near = get_close_matches(name, supported, n=1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return InvalidRequest(
        f"Unsupported query parameter: {name}. {guess}Supported: {', '.join(sorted(supported))}.",
        param=name,
        did_you_mean=near or None,
    )


def _parameters(query_string: str) -> Iterable[tuple[str, list[str], str]]:
    """(name, bracketed path, value) of each parameter."""
    try:
        pairs = parse_qsl(
            query_string, keep_blank_values=True, max_num_fields=BUDGETS.query_parameters
        )
    except ValueError as error:
        raise InvalidRequest(
            f"At most {BUDGETS.query_parameters} query parameters are allowed."
        ) from error
    for key, value in pairs:
        match = _BRACKETS.fullmatch(key)
        if match is None:
            raise InvalidRequest(
                f"Malformed query parameter: {key}. Write it as name=value or name[key]=value.",
                param=key,
            )
        yield match[1], _PART.findall(match[2]), value


def _merge(
    parsed: dict[str, Any],
    argument: str,
    field: Any,
    path: list[str],
    value: str,
    defaults: dict[str, Any],
) -> Any:
    """The argument's value with one more parameter merged."""
    before = None if argument in defaults else parsed.get(argument)
    if path and isinstance(before, str):
        raise InvalidRequest(f"{argument} is given both with and without brackets.", param=argument)
    if isinstance(field, types.TypedFilter) and path:
        return _filter(before or {}, path, value, argument)
    if isinstance(field, types.ExpandLimit) and len(path) == 1:
        return {**(before or {}), path[0]: _number(value)}
    if isinstance(field, types.Names) and path in ([], [""]):
        # `fields` may be a comma list; a stream, a relation or one of `fields[]` may hold a comma.
        names = value.split(",") if argument == "fields" and not path else [value]
        return [*(before or []), *names]
    if path:
        raise InvalidRequest(f"{argument} does not accept brackets.", param=argument)
    if before is not None:
        raise InvalidRequest(f"{argument} is given twice. Send it once.", param=argument)
    if isinstance(field, types.Flag):
        return FLAGS.get(value, value)
    return _number(value, field.most) if isinstance(field, types.Number) else value


def _filter(before: dict[str, Any], path: list[str], value: str, argument: str) -> dict[str, Any]:
    if len(path) == 1:
        return {**before, path[0]: value}
    if len(path) == 2 and isinstance(before.get(path[0], {}), dict):
        return {**before, path[0]: {**before.get(path[0], {}), path[1]: value}}
    raise InvalidRequest(
        "A filter must be filter[field]=value or filter[field][gte]=value.",
        code="invalid_filter",
        param=argument,
    )


def _number(value: str, most: int | None = None) -> Any:
    """A whole number if the text is one; otherwise the text, which the schema refuses.

    A number with a maximum may have any length: as a float it still exceeds the maximum.
    """
    if _NUMBER.fullmatch(value):
        return int(value)
    return min(float(value), sys.float_info.max) if most and _DIGITS.fullmatch(value) else value


def take_alias(parsed: dict[str, Any], extra: dict[str, str]) -> None:
    """The deprecated name of connection_id; both may be given if they agree."""
    alias = extra.pop("connector_instance_id", None)
    if alias is None:
        return
    if parsed.setdefault("connection_id", alias) != alias:
        raise InvalidRequest(
            "connection_id and connector_instance_id differ. Send only connection_id.",
            code="invalid_argument",
            param="connector_instance_id",
        )
    extra["deprecated_alias"] = alias
