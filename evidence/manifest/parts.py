"""Reads a manifest document piece by piece; errors name the invalid path."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from evidence.errors import InvalidRequest
from evidence.names import Refused, check_name
from evidence.pointer import escaped, path_of
from evidence.manifest.forms import FORMS
from evidence.manifest.values import COMMA, JSON_TYPES, FieldType

Rule = Callable[[FieldType], str | None]


@dataclass(frozen=True, slots=True)
class View:
    """A named selection of fields."""

    id: str
    label: str | None
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A place in the document: its path and its value."""

    path: str
    value: Any

    def fault(self, message: str) -> InvalidRequest:
        return InvalidRequest(f"{self.path}: {message}.", code="invalid_manifest", param=self.path)

    def at(self, key: str | int) -> "Part":
        """The member at a key; its value is None if it is missing."""
        if isinstance(key, int):
            return Part(f"{self.path}[{key}]", self.value[key])
        if not isinstance(self.value, dict):
            raise self.fault("must be an object")
        return Part(f"{self.path}.{key}", self.value.get(key))

    def _member(self, key: str, kind: type, what: str) -> "Part":
        """The member at a key, which must be of this type or missing."""
        member = self.at(key)
        if member.value is not None and not isinstance(member.value, kind):
            raise member.fault(f"must be {what}")
        return member

    def part(self, key: str) -> "Part":
        """The object at a key, empty if missing."""
        member = self._member(key, dict, "an object")
        return Part(member.path, member.value or {})

    def parts(self, key: str) -> list["Part"]:
        """The members of the list at a key, empty if missing."""
        member = self._member(key, list, "a list")
        return [member.at(number) for number in range(len(member.value or ()))]

    def text(self, key: str) -> str | None:
        text: str | None = self._member(key, str, "a string").value
        return text

    def count(self, key: str, default: int, most: int) -> int:
        """The whole number at a key, from 1 to `most`."""
        member = self.at(key)
        if member.value is None:
            return default
        whole = isinstance(member.value, int) and not isinstance(member.value, bool)
        if not whole or not 1 <= member.value <= most:
            raise member.fault(f"must be a whole number from 1 to {most}")
        return int(member.value)

    def field(self, key: str, fields: Mapping[str, FieldType]) -> str | None:
        """The declared field named at a key."""
        name = self.text(key)
        if name is not None:
            self.at(key).require(name, fields)
        return name

    def fields(
        self, key: str, fields: Mapping[str, FieldType], rule: Rule | None = None
    ) -> tuple[str, ...]:
        """The declared fields named in the list at a key (a single name needs no list)."""
        member = self.at(key)
        names = [member.value] if isinstance(member.value, str) else member.value or []
        if not isinstance(names, list):
            raise member.fault("must be a list of field names")
        paths = [as_path(name, fields) for name in names]
        for name in paths:
            member.require(name, fields, rule)
        return tuple(dict.fromkeys(paths))

    def require(self, name: Any, fields: Mapping[str, FieldType], rule: Rule | None = None) -> None:
        """Refuses a field that is not declared or that a rule forbids."""
        if not isinstance(name, str) or name not in fields:
            near = get_close_matches(str(name), fields, 1)
            hint = f"; try {near[0]!r}" if near else "; declare it in schema.properties"
            raise self.fault(f"{name!r} is not a declared field{hint}")
        complaint = rule(fields[name]) if rule else None
        if complaint:
            raise self.fault(f"{name!r} {complaint}")

    def choices(self, key: str, allowed: Iterable[str]) -> tuple[str, ...]:
        """The words in the list at a key; each must be allowed."""
        member = self.at(key)
        if not isinstance(member.value, list) or not set(map(str, member.value)) <= set(allowed):
            raise member.fault(f"must be a list that contains only {', '.join(allowed)}")
        return tuple(member.value)

    def refuse_unknown(self, words: Iterable[str]) -> None:
        allowed = tuple(words)
        for word in self.value:
            if word not in allowed:
                near = get_close_matches(word, allowed, 1)
                hint = f"try {near[0]!r}" if near else f"use {', '.join(allowed)}"
                raise self.fault(f"{word!r} is not a valid key; {hint}")


def read_name(part: Part, key: str) -> str:
    """The stream or field name at a key; required."""
    name = part.text(key)
    if name is None:
        raise part.at(key).fault("is missing; add a name")
    return _checked(part.at(key), name, key)


def _checked(part: Part, name: str, what: str) -> str:
    try:
        return check_name(name, what=what)
    except Refused as refused:
        raise part.fault(str(refused).rstrip(".")) from None


def fields_of(part: Part) -> dict[str, FieldType]:
    """The fields that a stream's `schema.properties` declares; at least one."""
    properties = part.part("schema").part("properties")
    fields = {}
    for name in properties.value:
        declaration = properties.part(name)
        fields[_checked(declaration, name, "field")] = _read_type(declaration)
    if not fields:
        raise properties.fault('declares no fields; use {"id": {"type": "string"}, …}')
    return fields


def as_path(name: Any, fields: Mapping[str, FieldType]) -> Any:
    """The path of a field that a manifest names: literally, or by JSON Pointer."""
    literal = path_of(name) if isinstance(name, str) else name
    return literal if literal in fields else name


def nested_of(path: str, schema: Any) -> dict[str, FieldType]:
    """The fields inside the one at a pointer, as far as its schema declares them."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    fields: dict[str, FieldType] = {}
    for key, inner in (properties if isinstance(properties, dict) else {}).items():
        inside = path + escaped(key)
        try:
            fields[inside] = _read_type(Part(inside, inner if isinstance(inner, dict) else {}))
        except InvalidRequest:
            continue  # JSON Schema has more than is used here
        fields |= nested_of(inside, inner)
    return fields


def _read_type(part: Part) -> FieldType:
    declared = part.value.get("type")
    types = declared if isinstance(declared, list) else [declared]
    types = [word for word in types if word != "null"]
    if len(types) != 1 or types[0] not in JSON_TYPES:
        raise part.at("type").fault(f"must be one of {', '.join(sorted(JSON_TYPES))}")
    form = part.text("x_rung_form")
    if form is not None and form not in (COMMA, *FORMS):
        raise part.at("x_rung_form").fault(f"must be one of {', '.join((COMMA, *FORMS))}")
    return FieldType(
        type=types[0],
        form=form,
        format=part.text("format"),
        role=part.text("x_pdpp_role"),
        shown_as=part.text("x_pdpp_type"),
        schema=part.value,
    )
