"""Fits rows to their manifest: text becomes typed values, and misfits are counted."""

from dataclasses import dataclass, field
from typing import Any

from evidence.pointer import find
from service.importing.column_types import as_stored
from service.importing.exact_json import Numeral
from service.records.manifest import StreamManifest
from service.records.values import COMMA, sortable

EXAMPLES = 3
_NUMBERS = (int, float)


@dataclass(slots=True)
class Misfits:
    """Values of one field that do not have its type: they are kept, but not compared."""

    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def note(self, line: int, value: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((line, str(value)[:40]))


class Fitter:
    """Fits the rows of one stream to its manifest; `untyped` rows hold nothing but text."""

    def __init__(self, manifest: StreamManifest, misfits: dict[str, Misfits]) -> None:
        self._fields = manifest.fields
        self._misfits = misfits
        self._checked = [
            (path, kind)
            for path, kind in manifest.paths.items()
            if kind.is_time or kind.is_number or kind.type == "boolean"
        ]
        #: Fields whose numbers are kept as text.
        self._texts = [
            name
            for name, kind in manifest.fields.items()
            if kind.type == "string" and (kind.is_decimal or kind.form)
        ]

    def fit(self, data: dict[str, Any], line: int, untyped: bool) -> dict[str, Any]:
        """The row as it is stored."""
        if untyped:
            data = {name: as_stored(value, self._type(name)) for name, value in data.items()}
        for name in self._texts:
            value = data.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                comma = self._fields[name].form == COMMA
                data[name] = repr(value).replace(".", ",") if comma else repr(value)
        for path, kind in self._checked:
            value = find(data, path)
            if value is None or value == "" or (type(value) in _NUMBERS and kind.form is None):
                continue
            lossy = isinstance(value, Numeral) and not (kind.is_decimal or kind.form)
            if not lossy and sortable(value, kind) is not None:
                continue
            self._misfits.setdefault(path, Misfits()).note(line, value)
        return data

    def _type(self, name: str) -> str:
        found = self._fields.get(name)
        return found.type if found else "string"
