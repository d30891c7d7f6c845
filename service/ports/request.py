"""Requests: each is a dataclass that declares its arguments once, for all surfaces and sources."""

import dataclasses
from collections.abc import Callable, Mapping
from copy import copy
from inspect import get_annotations
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypedDict, TypeVar, Unpack, dataclass_transform, overload

from marshmallow import RAISE, Schema
from marshmallow.fields import Field

from evidence.limits import CONTRACT
from service.ports.types import Number

T = TypeVar("T")


class Marks(TypedDict, total=False):
    """What surfaces and sources need to know of a field of a request, besides its type.

    `rest_name` is its name over REST, `rest_default` its value there unless a caller sets it.
    `rest_only` arguments are not listed by tools and commands; those that are `accepted` work there
    nevertheless. REST requires `rest_required` arguments, lowers `clamped` ones to their maximum
    instead of refusing them, and accepts the `synonyms` of a value.

    `paging` fields may differ between the pages of one query; all others are part of the identity
    of its cursors. `narrows` are the attempts, by number, in which a search without hits is tried
    without this argument; a filter is for one stream, so it is also left out with `streams`.
    `standard` arguments are part of PDPP. `tool_value` and `rest_value` are what tools and REST set
    in fields that callers cannot set.
    """

    rest_name: str
    rest_default: Any
    rest_only: bool
    accepted: bool
    rest_required: bool
    clamped: bool
    synonyms: dict[str, str]
    paging: bool
    narrows: tuple[int, ...]
    standard: bool
    tool_value: bool
    rest_value: bool


def required(kind: Field[Any], **marks: Unpack[Marks]) -> Any:
    """A field of a request that callers must set. Its `kind` is one of `types`."""
    kind = copy(kind)
    kind.required = True
    return dataclasses.field(metadata={"kind": kind, **marks})


@overload
def optional(kind: Field[Any] | None, **marks: Unpack[Marks]) -> None: ...


@overload
def optional(kind: Field[Any] | None, default: T, **marks: Unpack[Marks]) -> T: ...


def optional(kind: Field[Any] | None, default: Any = None, **marks: Unpack[Marks]) -> Any:
    """A field of a request with a default. Callers can set it if it has a `kind`."""
    metadata = {"kind": kind, **marks}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def page_limit(default: int, **marks: Unpack[Marks]) -> int:
    """The field for the size of a page."""
    rest = {"rest": "Results per page.", "default": default}
    kind = Number(f"Results per page, {default} by default.", 1, CONTRACT.page_items, rest=rest)
    return optional(kind, default, **marks)


class Arguments(Schema):
    """Arguments of an operation: unknown names are refused, null means absent."""

    class Meta:
        unknown = RAISE


@dataclass_transform(frozen_default=True, field_specifiers=(required,))
class Request:
    """What an operation is asked for. Subclasses are frozen dataclasses.

    `arguments` are the listed arguments, `rest_only` those of REST alone. `loaded` are the
    arguments that the caller set, which next calls repeat.
    """

    operation: ClassVar[str]
    arguments: ClassVar[Schema]
    rest_only: ClassVar[Mapping[str, Field[Any]]]
    loaded: ClassVar[dict[str, Any]] = {}
    _fields: ClassVar[tuple[dataclasses.Field[Any], ...]]

    def __init_subclass__(cls, operation: str = "") -> None:
        dataclasses.dataclass(frozen=True)(cls)
        own = get_annotations(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        # The arguments of a subclass are listed before those that it inherits.
        cls._fields = tuple(sorted(fields, key=lambda field: field.name not in own))
        kinds = {field.name: kind for field in cls._fields if (kind := field.metadata.get("kind"))}
        cls.operation = operation
        cls.rest_only = {name: kinds.pop(name) for name in cls.marked("rest_only")}
        cls.arguments = Arguments.from_dict(kinds)()

    @classmethod
    def of(cls, loaded: dict[str, Any], fixed: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """The request with checked arguments, and `fixed` values of other fields."""
        build: Callable[..., Self] = cls
        request = build(**fixed, **loaded)
        object.__setattr__(request, "loaded", loaded)
        return request

    @classmethod
    def settled(cls, loaded: dict[str, Any]) -> dict[str, Any]:
        """Arguments that are valid by themselves, checked against each other."""
        return loaded

    @classmethod
    def marked(cls, mark: str) -> dict[str, Any]:
        """{name: value of the mark} of the fields that have it, in the order of the arguments."""
        return {f.name: f.metadata[mark] for f in cls._fields if mark in f.metadata}

    @classmethod
    def unmarked(cls, *marks: str) -> list[str]:
        """The fields that have none of these marks."""
        return [field.name for field in cls._fields if not field.metadata.keys() & set(marks)]

    def changed(self) -> dict[str, Any]:
        """The fields that differ from their default."""
        values = {field: getattr(self, field.name) for field in self._fields}
        return {field.name: value for field, value in values.items() if value != _default(field)}

    def identity(self) -> dict[str, Any]:
        """The fields that differ from their default, without those that pages may differ in."""
        paging = self.marked("paging")
        return {name: value for name, value in self.changed().items() if name not in paging}


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()
