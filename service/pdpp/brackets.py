"""Typed arguments to query parameters: lists as repeated keys, objects as brackets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from service.ports import Filter, Scalar

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


def filter_pairs(conditions: Filter) -> list[Pair]:
    """`filter[field]=value` and `filter[field][gte]=value`."""
    return list(_bracketed("filter", conditions))


def expand_pairs(relations: Iterable[str], limits: Mapping[str, int]) -> list[Pair]:
    """`expand=relation` and `expand_limit[relation]=n`."""
    return [*(("expand", name) for name in relations), *_bracketed("expand_limit", limits)]


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
