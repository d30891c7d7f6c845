"""From the pages of many sources to one page: round-robin by rank, no record twice."""

import hashlib
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import orjson

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS, CONTRACT
from service.pdpp.decode import number_of, pick, reference, rows, source_of, text_of
from service.sources.package.cursor import END, LOST, MARK_BYTES, Progress, State
from service.sources.package.membership import Child

Hit = dict[str, Any]
#: What may be different when asked again; everything else stays as it is.
PASSING = frozenset({"rate_limited", "unavailable", "timed_out", "internal", "gone"})


@dataclass(frozen=True, slots=True)
class Page:
    """A page of one source: `cursor` opens it, at the source's hit number `at`."""

    cursor: str | None
    at: int
    body: dict[str, Any] = field(default_factory=dict)

    def size(self, taken: int, limit: int) -> int:
        """How many hits to ask for: enough to reach behind those that were taken of it."""
        skip = taken - self.at
        return limit if skip < limit else min(CONTRACT.page_items, skip + limit)

    @property
    def hits(self) -> list[Hit]:
        return rows(self.body, "data", "results", "hits")

    @property
    def next_cursor(self) -> str | None:
        return text_of(self.body, "next_cursor")

    @property
    def has_more(self) -> bool:
        return self.body.get("has_more", self.next_cursor is not None) is True

    def following(self) -> "Page | None":
        """The page after it, unread, where there is a way to it."""
        if not self.has_more or self.next_cursor is None:
            return None
        return Page(self.next_cursor, self.at + len(self.hits))


class SourceReader:
    """One source during one request: the hits it brought that are not shown yet."""

    def __init__(self, child: Child, progress: Progress) -> None:
        self.child, self.progress = child, progress
        self.hits: deque[Hit] = deque()
        self.begun = self.asked = self.stuck = False
        self.shown = 0
        self.error: EvidenceError | None = None
        self.late = False
        self._began, self._new = progress.taken, progress.fresh
        self._final = False
        self._names = {held.stream: held for held in reversed(child.held)}
        self._shared = Counter(held.stream for held in child.held)
        self._page = Page(progress.cursor, progress.at)

    @property
    def unmet(self) -> bool:
        """Whether nothing of it was shown yet and it was not asked now."""
        return self.progress.fresh and not self.asked

    @property
    def failed(self) -> bool:
        """Whether it did not answer when it was asked last."""
        return self.late or self.error is not None

    def absorb(self, page: Page) -> None:
        """Takes in a page, less what was shown of it."""
        progress = self.progress
        progress.cursor, progress.at = page.cursor, page.at
        found, skip = page.hits, progress.taken - page.at
        self.stuck = page.has_more and page.following() is None and skip >= len(found)
        self._page = page
        self.hits.extend(self._named(hit) for hit in found[skip:])
        if not self.hits:
            self._turn()

    def take(self) -> Hit:
        """The next hit. After the last of a page the next one opens."""
        hit = self.hits.popleft()
        self.progress.taken += 1
        if not self.hits:
            self._turn()
        return hit

    def refuse(self, error: EvidenceError) -> None:
        """The source answered with an error; where that may be about its cursor, it is dropped."""
        self.error, self._final = error, error.kind not in PASSING
        if self.progress.cursor and error.kind in ("invalid", "gone"):
            self.progress.forget()
            self._final = False

    def close(self, state: State) -> None:
        """Settles the account of this request: who brings nothing too often is lost."""
        progress = self.progress
        if self._new and not progress.fresh and self._page.body:
            self._count_in(state)
        if not self.asked or progress.state:
            return
        if progress.taken > self._began or self.hits:
            progress.tries = 0
            return
        progress.tries += 1
        if self._final or progress.tries >= BUDGETS.fan_in_tries:
            progress.state = LOST

    @property
    def uncounted(self) -> bool:
        """Whether it answered and has shown nothing yet: its hits are counted when it does."""
        return self.progress.fresh and bool(self._page.body)

    def _turn(self) -> None:
        """The page is read: on to the next, or, where it has none, to more of the same."""
        following = self._page.following()
        if not self._page.has_more or self.stuck:
            self.progress.state = END
        elif following is not None:
            self.progress.cursor, self.progress.at = following.cursor, following.at

    def _count_in(self, state: State) -> None:
        """Adds what the source says of its number of hits, once."""
        meta = self._page.body.get("meta") or {}
        found = pick(meta, "count")
        number = found if isinstance(found, int) else number_of(found, "value")
        state.count = None if number is None or state.count is None else state.count + number
        state.exact &= text_of(meta, "count_accuracy") == "exact"

    def _named(self, hit: Hit) -> Hit:
        """The hit with its connection, where only one of the child can be meant."""
        stream = text_of(hit, "stream", "stream_name") or ""
        held = self._names.get(stream)
        if held is None or source_of(hit).connection_id or self._shared[stream] > 1:
            return hit
        named = {"connection_id": held.connection_id, "connector_key": held.connector_key}
        return {**hit, **named, "display_name": held.display_name}


def fill(page: list[Hit], limit: int, readers: list[SourceReader], seen: "Seen") -> None:
    """Takes hits in turns, the best of each source first, until the page or they are full."""
    while len(page) < limit and any(reader.hits for reader in readers):
        for reader in readers:
            while reader.hits and len(page) < limit:
                hit = reader.take()
                if seen.first(hit, reader.child):
                    page.append(hit)
                    reader.shown += 1
                    break


class Seen:
    """Which records a page has, and those of earlier pages that another source may bring too."""

    def __init__(self, state: State, shared: Collection[tuple[str, str | None]]) -> None:
        self._state, self._shared = state, shared
        self._marks = set(state.seen)

    def first(self, hit: Hit, child: Child) -> bool:
        """Whether the record was not there yet; then it is from now on."""
        ref = reference(hit, None, source_of(hit))
        if ref is None:
            return True
        owner = ref.connection_id or f"\0{child.grant_id}"
        raw = orjson.dumps([owner, ref.stream, ref.record_id])
        mark = hashlib.blake2b(raw, digest_size=MARK_BYTES).digest()
        if mark in self._marks:
            return False
        self._marks.add(mark)
        if (ref.stream, ref.connection_id) in self._shared:
            self._state.seen.append(mark)
        return True
