"""Converts typed arguments to query parameters: lists to repeated keys, objects to brackets."""

from collections.abc import Iterator, Mapping
from typing import Any

from service.ports import Scalar
from service.ports.request import Request

Pair = tuple[str, str]


def parameters(**arguments: Any) -> list[Pair]:
    """`{"limit": 5, "fields": ("a", "b")}` as pairs; None and empty values are left out."""
    return [pair for name, value in arguments.items() for pair in _pairs(name, value)]


def pairs_of(arguments: Mapping[str, Any]) -> list[Pair]:
    """Arguments of any of these kinds as pairs."""
    return [
        pair
        for name, value in arguments.items()
        for pair in (_bracketed if isinstance(value, Mapping) else _pairs)(name, value)
    ]


def arguments_of(request: Request, *omitted: str) -> list[Pair]:
    """The arguments of a request that differ from their default, by their REST names.

    The size of a page is always included, because servers have defaults of their own.
    """
    names = [*request.arguments.fields, *request.rest_only]
    changed = {"limit": getattr(request, "limit", None), **request.changed()}
    rest_names = request.marked("rest_name")
    return pairs_of(
        {
            rest_names.get(name, name): changed[name]
            for name in names
            if name in changed and name not in omitted
        }
    )


def _pairs(name: str, value: Any) -> Iterator[Pair]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield name, _as_text(item)
    elif value is not None:
        yield name, _as_text(value)


def _bracketed(name: str, members: Mapping[str, Any]) -> Iterator[Pair]:
    for key, value in members.items():
        if isinstance(value, Mapping):
            yield from _bracketed(f"{name}[{key}]", value)
        else:
            yield f"{name}[{key}]", _as_text(value)


def _as_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
