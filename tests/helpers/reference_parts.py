"""What the naive search of `tests/helpers/reference.py` is given: records and a question."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from evidence.fold import fold
from evidence.ranking import PLACES_MAX
from tests.helpers.reference_meaning import Vector


@dataclass(frozen=True)
class Record:
    """A record that a grant shows: the texts of its searched fields, and what its roles say.

    `thread` is (connection, stream, thread), `place` its place in there, `at` its event time.
    `covered` is whether the request covers it too, `limited` whether the grant limits its stream by
    record or time. `vectors` are those of the fields.
    """

    id: str
    texts: Mapping[str, str]
    title: str | None = None
    actor: str | None = None
    thread: tuple[str, str, str] | None = None
    place: tuple[int, str] = (0, "")
    at: int | None = None
    covered: bool = True
    limited: bool = False
    vectors: tuple[Vector, ...] = ()


@dataclass(frozen=True)
class Part:
    """A word, phrase or `prefix*` with its spellings; `role` says where it must be."""

    spellings: tuple[str, ...]
    role: str | None = None

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        ends = (
            re.escape(one.rstrip("*")) + ("" if one.endswith("*") else r"(?!\S)")
            for one in self.spellings
        )
        return tuple(re.compile(rf"(?<!\S){end}") for end in ends)

    def starts(self, folded: str) -> list[int]:
        """Where it occurs in a folded text."""
        each = (
            [match.start() for match in pattern.finditer(folded)][:PLACES_MAX]
            for pattern in self.patterns
        )
        return sorted(start for starts in each for start in starts)[:PLACES_MAX]


@dataclass(frozen=True)
class Question:
    """`wanted` words, of which with `every` each must occur, and what is required or excluded."""

    wanted: tuple[Part, ...] = ()
    required: tuple[Part, ...] = ()
    excluded: tuple[Part, ...] = ()
    every: bool = False
    period: tuple[int, int] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.wanted, *self.required)

    @property
    def is_plain(self) -> bool:
        return not (self.every or self.required or self.excluded)


def occurs(part: Part, record: Record) -> bool:
    """Whether a part of a question is in a record: in one field, which may have to be of a role."""
    names = {"primary-title": [record.title], "actor": [record.actor], None: list(record.texts)}
    return any(
        part.starts(fold(record.texts[name])) for name in names[part.role] if name in record.texts
    )
