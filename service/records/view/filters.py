"""Filters as tests of declared and granted fields, which `sql/conditions.py` turns into SQL."""

from dataclasses import replace
from typing import Any

from evidence.errors import InvalidRequest
from service.ports import Filter, Scalar
from service.records.engine.selections import Test
from evidence.manifest.values import DECIMAL, FieldType, Stored, sortable
from service.records.view.streams import StreamView


def tests_of(view: StreamView, conditions: Filter) -> tuple[Test, ...]:
    """The tests of a typed filter for the records of one stream.

    Raises 403 `field_not_granted`, or 400 `invalid_filter` for a field or operator the stream
    does not declare.
    """
    return tuple(
        _test(view, name, operator, value)
        for name, spec in conditions.items()
        for operator, value in _bounds(view, name, spec)
    )


def _bounds(view: StreamView, name: str, spec: Any) -> list[tuple[str, Scalar]]:
    view.path(name, param="filter")
    return list(spec.items()) if isinstance(spec, dict) else [("eq", spec)]


def _test(view: StreamView, name: str, operator: str, value: Scalar) -> Test:
    manifest, path = view.manifest, view.path(name, param="filter")
    if operator == "eq":
        allowed = path in manifest.exact_filters
    else:
        allowed = operator in manifest.range_filters.get(path, ())
    if not allowed or path not in view.ordinals:
        kinds = "an exact" if operator == "eq" else f"the {operator}"
        raise _invalid(
            f"The stream {view.name!r} does not support {kinds} filter on {name!r}. Call schema "
            "with this stream to see its filters, or use search.",
            name,
        )
    kind = manifest.paths[path]
    stored = _stored(value, kind)
    if stored is None:
        word = kind.format or kind.type
        raise _invalid(f"The filter value for {name!r} is not of type {word}.", name)
    return Test(view.ordinals[path], operator, stored)


def _invalid(message: str, field: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_filter", param="filter", field=field)


def _stored(value: Scalar, kind: FieldType) -> Stored | None:
    """A filter value, written as in the records or in the usual form, as cells have it."""
    stored = sortable(_converted(value, kind), kind)
    if stored is None and kind.form and isinstance(value, str):
        usual = "date-time" if kind.is_time else DECIMAL
        stored = sortable(value, replace(kind, form=None, type="string", format=usual))
    return stored


def _converted(value: Scalar, kind: FieldType) -> Scalar:
    """Text as the declared type, since a query string carries nothing but text."""
    if kind.is_decimal or kind.is_time:
        return value
    if not isinstance(value, str):
        return str(value) if kind.type == "string" and not isinstance(value, bool) else value
    if kind.type == "boolean":
        return {"true": True, "false": False}.get(value, value)
    if kind.is_number:
        try:
            return int(value) if kind.type == "integer" else float(value)
        except ValueError:
            return value
    return value
