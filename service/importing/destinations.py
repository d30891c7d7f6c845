"""Finds the stream of a connection for a file's rows, by the file's name and columns."""

import re
from collections.abc import Iterator, Set
from typing import Final

from evidence.manifest import StreamManifest

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
#: What distinguishes the exports of two months, or two downloads of one file.
_DATED: Final = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d(?:[-_. ]?\d\d){0,2}(?:[-_.T ]+\d\d(?:[-_.:]?\d\d){1,2})?"
    r"|\d{1,2}[-_.]\d{1,2}[-_.](?:19|20)?\d\d)(?!\d)"
    rf"|\b(?:{'|'.join(_MONTHS)})[a-z]*+[-_. ]*(?:19|20)\d\d\b"
)
_COPY = re.compile(r"(?<![ _-])[ _-]*(?:\(\d{1,3}\)|[ _-](?:copy|kopie|copie|copia)(?: \d{1,3})?)$")


def undated(name: str) -> str:
    """The name of a file without dates and copy marks; empty if nothing else is in it."""
    name = _COPY.sub("", name.lower())
    return " ".join(re.findall(r"[^\W_]+", _DATED.sub(" ", name)))


class Destinations:
    """The streams of a connection, by what their files and columns are called."""

    def __init__(self, manifests: list[StreamManifest]) -> None:
        self._by_name: dict[str, list[StreamManifest]] = {}
        self._by_columns: dict[frozenset[str], list[str]] = {}
        for manifest in manifests:
            self.add(manifest)
            self._by_columns.setdefault(frozenset(manifest.fields), []).append(manifest.name)

    def add(self, manifest: StreamManifest) -> None:
        """Adds a stream that the import has created."""
        self._by_name.setdefault(undated(manifest.name), []).append(manifest)

    def series(self, name: str, columns: Set[str], *, exact: bool) -> str | None:
        """The stream whose name differs by a date or a copy mark only, with the same columns.

        Unless `exact`, rows may lack up to half of them.
        """
        if not (stem := undated(name)):
            return None
        for manifest in self._by_name.get(stem, []):
            fields = manifest.fields.keys()
            near = columns <= fields and len(columns) * 2 >= len(fields)
            if fields == columns if exact else near:
                return manifest.name
        return None

    def alike(self, columns: Set[str]) -> Iterator[str]:
        """The streams from before this import with the same columns."""
        yield from self._by_columns.get(frozenset(columns), [])
