"""The cursor of a package: how far each source was read, in less than 4,096 bytes.

A source is at its `taken`-th hit. If there is space, the cursor also has the source's own cursor
and the hit it opens at; otherwise the source is read again from the start to its position. So a
lack of space costs time, but never a hit. Sources are read in groups: those that wait for their
turn need only their number.
"""

import base64
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from evidence.hits import Counts
from evidence.limits import BUDGETS
from service.keys import Sealer

#: Bytes of JSON in the longest cursor: encryption adds 16, then 3 become 4 characters.
ROOM = BUDGETS.package_cursor_bytes * 3 // 4 - 16
MARK_BYTES = 6
MARK_CHARS = 8
END, LOST = -1, -2


@dataclass(slots=True)
class Progress:
    """The progress in one source: `taken` hits were read; `cursor` opens at hit number `at`.

    `tries` counts the pages in a row for which it returned nothing. `state` is 0 while hits may be
    left, `END` once all are read, `LOST` if it failed too often.
    """

    taken: int = 0
    cursor: str | None = None
    at: int = 0
    tries: int = 0
    state: int = 0

    @property
    def fresh(self) -> bool:
        """True if none of its hits was shown yet."""
        return not self.state and not self.taken

    def packed(self, *, marked: bool) -> Any:
        if self.state:
            return self.state
        if marked and self.cursor:
            return [self.taken, self.tries, self.at, self.cursor]
        return [self.taken, self.tries] if self.tries else self.taken

    @classmethod
    def unpacked(cls, value: Any) -> "Progress":
        if isinstance(value, list):
            taken, tries, *mark = value
            at, cursor = mark or (0, None)
            return cls(taken, cursor, at, tries)
        return cls(state=value) if value < 0 else cls(value)


@dataclass(slots=True)
class State:
    """The state that the next page needs.

    `counts` are the matching records in sources with shown hits, None if grants overlap.
    `earlier_hits` is the number of hits on earlier pages. `marks` identify the newest shown hits
    that another source may also return.
    """

    sources: list[Progress]
    counts: Counts | None = Counts(0, 0, True)
    earlier_hits: int = 0
    marks: deque[bytes] = field(default_factory=lambda: deque(maxlen=BUDGETS.package_seen_hits))

    @property
    def unfinished(self) -> bool:
        """True if a next page may have hits."""
        return any(not progress.state for progress in self.sources)


def seal(state: State, sealer: Sealer, bound: Any) -> str:
    """The state as a cursor: the sources' cursors that fit, then the latest marks.

    Short ones come first, because more of them fit.
    """
    packed = [progress.packed(marked=False) for progress in state.sources]
    counts = state.counts and [state.counts.all, state.counts.some, state.counts.exact]
    head = {"n": counts, "k": state.earlier_hits, "s": packed, "w": ""}
    room = ROOM - len(orjson.dumps(head))
    marked = [progress.packed(marked=True) for progress in state.sources]
    costs = [len(orjson.dumps(full)) - len(orjson.dumps(raw)) for full, raw in zip(marked, packed)]
    for number in sorted(range(len(costs)), key=costs.__getitem__):
        if costs[number] > room:
            break
        packed[number] = marked[number]
        room -= costs[number]
    marks = list(state.marks)[-(room // MARK_CHARS) :] if room >= MARK_CHARS else []
    head["w"] = base64.b64encode(b"".join(marks)).decode()
    return sealer.seal(head, bound=bound)


def unseal(text: str, sealer: Sealer, bound: Any, size: int) -> State:
    """The state of a cursor; raises `InvalidRequest` (`invalid_cursor`) for foreign text."""
    head = sealer.open(text, bound=bound)
    sources = [Progress.unpacked(value) for value in head["s"]]
    assert len(sources) == size, "a cursor is bound to the members of its package"
    state = State(sources, head["n"] and Counts(*head["n"]), head["k"])
    raw = base64.b64decode(head["w"])
    state.marks.extend(raw[at : at + MARK_BYTES] for at in range(0, len(raw), MARK_BYTES))
    return state
