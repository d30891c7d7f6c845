"""Typed filters as tests of field values: declared, granted fields only."""

from typing import Any

from evidence.errors import InvalidRequest
from service.ports import Filter, Scalar
from service.records.engine import Test
from service.records.manifest import FieldType, sortable
from service.records.view import StreamView


def tests_of(view: StreamView, wanted: Filter) -> tuple[Test, ...]:
    """What a typed filter asks of the records of one stream.

    Raises 403 `field_not_granted`, or 400 `invalid_filter` for a field or operator the stream
    does not declare.
    """
    return tuple(
        _test(view, name, operator, value)
        for name, spec in wanted.items()
        for operator, value in _bounds(view, name, spec)
    )


def _bounds(view: StreamView, name: str, spec: Any) -> list[tuple[str, Scalar]]:
    view.require(name, param="filter")
    return list(spec.items()) if isinstance(spec, dict) else [("eq", spec)]


def _test(view: StreamView, name: str, operator: str, value: Scalar) -> Test:
    manifest = view.manifest
    if operator == "eq":
        allowed = name in manifest.exact_filters
    else:
        allowed = operator in manifest.range_filters.get(name, ())
    if not allowed or name not in view.ordinals:
        raise InvalidRequest(
            f"The stream {view.name!r} does not support "
            f"{'an exact' if operator == 'eq' else f'a {operator}'} filter on {name!r}. Call "
            "schema with this stream to see its filters, or use search.",
            code="invalid_filter",
            param="filter",
            field=name,
        )
    kind = manifest.fields[name]
    stored = sortable(_typed(value, kind), kind)
    if stored is None:
        raise InvalidRequest(
            f"The filter value for {name!r} is not of type {kind.format or kind.type}.",
            code="invalid_filter",
            param="filter",
            field=name,
        )
    return Test(view.ordinals[name], operator, stored)


def _typed(value: Scalar, kind: FieldType) -> Scalar:
    """Text as the declared type, since a query string carries nothing but text."""
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
