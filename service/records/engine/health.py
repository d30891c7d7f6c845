"""The health of a store, as far as it was checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

#: The problem of a database that contains no store yet.
EMPTY: Final = "database-empty"


class Depth(IntEnum):
    """How deep a check looks."""

    #: Whether there is a store of this version, from its header. Asks no other machine.
    HEADER = 0
    #: Also counts, and a sample of the indexes, within a deadline.
    SAMPLE = 1
    #: Everything is compared with the records, without a deadline.
    CONTENTS = 2


class Verdict(NamedTuple):
    """What a check says in one line.

    `problem` is a key of `doctor/findings.toml`, None if all is well; `facts` complete its texts.
    """

    message: str
    problem: str | None = None
    facts: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a store. What a check did not look at is empty.

    `privacy` is the verdict on who else can read the store, `grants` counts grants by state, and
    `faults` are the differences between the records and what is derived from them. Hidden streams
    are left by a command that replaces or removes streams, while it runs or after it was killed.
    """

    state: Verdict
    privacy: Verdict = Verdict("")
    grants: Mapping[str, int] | None = None
    faults: list[str] = field(default_factory=list)
    hidden_streams: int = 0
    size_bytes: int = 0
