"""Merges the pages of many sources: best coverage first, each record once."""

import hashlib
import math
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, zip_longest

import orjson

from evidence.errors import EvidenceError
from evidence.hits import Counts, Hit, SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Continuation, Source
from evidence.proven import Judge, Order
from service.pdpp.decode.search import address
from evidence.model import MemberStream
from service.sources.package.cursor import END, LOST, MARK_BYTES, Progress, State
from service.sources.package.membership import Child

#: Kinds of errors that a retry may avoid; all others are final.
TRANSIENT = frozenset({"rate_limited", "unavailable", "timed_out", "internal", "gone"})


@dataclass(frozen=True, slots=True)
class Page:
    """A page of one source: `cursor` opens it, at the source's hit number `at`."""

    cursor: str | None
    at: int
    answer: SearchPage | None = None

    def size(self, taken: int, limit: int) -> int:
        """The number of hits to request: a page beyond the taken ones."""
        return min(CONTRACT.page_items, taken - self.at + limit)

    @property
    def hits(self) -> list[Hit]:
        """Its hits that hold a word; only these have places in the source's order."""
        return self.answer.proven if self.answer else []

    @property
    def related(self) -> list[Hit]:
        hits = self.answer.hits if self.answer else []
        return [hit for hit in hits if hit.related is not None]

    @property
    def has_more(self) -> bool:
        return self.answer is not None and self.answer.has_more

    def following(self) -> "Page | None":
        """The next page, unread, if it can be requested."""
        if self.answer is None or not self.answer.has_more or self.answer.next_cursor is None:
            return None
        return Page(self.answer.next_cursor, self.at + len(self.hits))


class SourceReader:
    """One source during one request, with its hits that have not been shown yet."""

    def __init__(self, child: Child, progress: Progress) -> None:
        self.child, self.progress = child, progress
        self.hits: deque[Hit] = deque()
        self.related = list[Hit]()
        self.begun = self.queried = self.stuck = False
        self.hit_count = 0
        #: Its next hit with its sort key, once computed.
        self.judged: tuple[Order, Hit] | None = None
        self.error: EvidenceError | None = None
        self.late = False
        self._began, self._new = progress.taken, progress.fresh
        self._final = False
        self._names = {member.stream: member for member in reversed(child.streams)}
        self._shared = Counter(member.stream for member in child.streams)
        self._page = Page(progress.cursor, progress.at)

    @property
    def unmet(self) -> bool:
        """True if none of its hits has been shown and this request has not asked it yet."""
        return self.progress.fresh and not self.queried

    @property
    def failed(self) -> bool:
        """True if its last request failed."""
        return self.late or self.error is not None

    @property
    def ranking(self) -> str | None:
        """What its hits are ranked by; None if it did not answer or does not report it."""
        return self._page.answer.ranking if self._page.answer else None

    @property
    def is_open(self) -> bool:
        """True if it answered and has hits after the taken ones."""
        return self.queried and not (self.hits or self.failed or self.progress.state or self.stuck)

    def absorb(self, page: Page) -> None:
        """Adds the hits of a page, without those already taken."""
        progress = self.progress
        progress.cursor, progress.at = page.cursor, page.at
        hits, skip = page.hits, progress.taken - page.at
        self.stuck = page.has_more and page.following() is None and skip >= len(hits)
        self._page = page
        self.hits.extend(self._with_connection(hit) for hit in hits[skip:])
        self.related += [self._with_connection(hit) for hit in page.related]
        if not self.hits:
            self._advance_page()

    def take(self) -> Hit:
        """The next hit. After the last hit of a page, opens the next page."""
        hit, self.judged = self.hits.popleft(), None
        self.progress.taken += 1
        if not self.hits:
            self._advance_page()
        return hit

    def refuse(self, error: EvidenceError) -> None:
        """Records an error of the source. Drops the cursor if it may be the cause."""
        self.error, self._final = error, error.kind not in TRANSIENT
        if self.progress.cursor and error.kind in ("invalid", "gone"):
            self.progress.cursor, self.progress.at = None, 0
            self._final = False

    def close(self, state: State) -> None:
        """Updates counts and tries; a source that returns nothing too often is set to LOST."""
        progress = self.progress
        state.counts = self.counted(state.counts, fresh=self._new and not progress.fresh)
        if not self.queried or progress.state:
            return
        if progress.taken > self._began or self.hits:
            progress.tries = 0
            return
        progress.tries += 1
        if self._final or progress.tries >= BUDGETS.fan_in_tries:
            progress.state = LOST

    def counted(self, counts: Counts | None, *, fresh: bool) -> Counts | None:
        """The counts, plus those of its records if it answered and is or was `fresh`."""
        answer = self._page.answer
        return add_counts(counts, answer.counts) if fresh and answer is not None else counts

    def _advance_page(self) -> None:
        """Moves to the page after a used-up one, or sets END. Otherwise stays on this page."""
        following = self._page.following()
        if not self._page.has_more or self.stuck:
            self.progress.state = END
        elif following is not None:
            self.progress.cursor, self.progress.at = following.cursor, following.at

    def _with_connection(self, hit: Hit) -> Hit:
        """The hit with its connection, if only one of the child's connections has the stream."""
        member = self._names.get(hit.ref.stream)
        if member is None or hit.source.connection_id or self._shared[hit.ref.stream] > 1:
            return hit
        return _of_connection(hit, member)


def _of_connection(hit: Hit, member: MemberStream) -> Hit:
    """The hit with its connection in its id, its address and its calls."""
    ref = hit.ref._replace(connection_id=member.connection_id)
    id = str(ref)

    def reading(call: Continuation) -> Continuation:
        return replace(call, args={**call.args, "id": id})

    related = hit.related
    return replace(
        hit,
        ref=ref,
        id=id,
        source=Source(member.connection_id, member.connector_key, member.display_name),
        url=address(hit.url, ref),
        matches=[replace(match, read=reading(match.read)) for match in hit.matches],
        related=related and related._replace(read=reading(related.read)),
    )


def add_counts(total: Counts | None, counts: Counts | None) -> Counts | None:
    """The counts of some sources plus one more; a source without counts makes them lower bounds."""
    if total is None:
        return None
    if counts is None:
        return Counts(None, total.some, False)
    both = None if total.all is None or counts.all is None else total.all + counts.all
    return Counts(both, total.some + counts.some, total.exact and counts.exact)


class Turns:
    """Chooses the source of the next hit of a page; each keeps its own order.

    The best hit comes first, by `Order`. Among equal hits, one from a source without shown hits
    comes first, then one from the source with the fewest hits on the page. With `by_time` hits are
    ordered by event time, which requires the next hit of every source.
    """

    def __init__(self, query: str, *, by_time: bool) -> None:
        self._judge, self._by_time = Judge(query), by_time

    def next(self, readers: Sequence[SourceReader]) -> SourceReader | None:
        """The next source; None if no hits are left, or if the order is not known yet."""
        if self._by_time and any(reader.is_open for reader in readers):
            return None
        able = [reader for reader in readers if reader.hits]
        return min(able, key=self._time if self._by_time else self._turn, default=None)

    def head(self, reader: SourceReader) -> Hit:
        """The next hit of a source that has one, with the coverage that its windows prove."""
        return self._judged(reader)[1]

    def _turn(self, reader: SourceReader) -> tuple[Order, bool, int]:
        return self._judged(reader)[0], not reader.progress.fresh, reader.hit_count

    def _judged(self, reader: SourceReader) -> tuple[Order, Hit]:
        if reader.judged is None:
            reader.judged = self._judge.judged(reader.hits[0])
        return reader.judged

    def _time(self, reader: SourceReader) -> tuple[float, str]:
        hit = self.head(reader)
        return -_moment(hit.authored_at or ""), hit.id


def _moment(text: str) -> float:
    """Seconds from 1970 UTC to a date or date-time; before all others if it is neither."""
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return -math.inf


def fill(
    page: list[Hit],
    limit: int,
    readers: Sequence[SourceReader],
    turns: Turns,
    marks: "RecordMarks",
    tail: float = 0.0,
) -> bool:
    """Takes hits in turns until the page is full or no source has any.

    Returns whether it stopped early, after the hits shown in full, at a hit whose coverage is below
    the share `tail` of the first.
    """
    while len(page) < limit and (reader := turns.next(readers)):
        hit = turns.head(reader)
        if len(page) >= CONTRACT.full_hits:
            if (hit.coverage or 0.0) < tail * (page[0].coverage or 0.0):
                return True
        reader.take()
        if marks.first(hit, reader.child):
            page.append(hit)
            reader.hit_count += 1
    return False


def related_of(readers: Sequence[SourceReader], marks: "RecordMarks", most: int) -> Iterator[Hit]:
    """Related hits of the sources in turn, each record once."""
    turns = zip_longest(*(reader.related for reader in readers))
    pairs = (pair for turn in turns for pair in zip(turn, readers))
    fresh = (hit for hit, reader in pairs if hit is not None and marks.first(hit, reader.child))
    return islice(fresh, most)


class RecordMarks:
    """The records on this page, and those of earlier pages that another source may have too."""

    def __init__(self, state: State, shared: Collection[tuple[str, str | None]]) -> None:
        self._state, self._shared = state, shared
        self._marks = set(state.marks)

    def first(self, hit: Hit, child: Child) -> bool:
        """True if the record is new. Remembers it."""
        ref = hit.ref
        owner = ref.connection_id or f"\0{child.grant_id}"
        raw = orjson.dumps([owner, ref.stream, ref.record_id])
        mark = hashlib.blake2b(raw, digest_size=MARK_BYTES).digest()
        if mark in self._marks:
            return False
        self._marks.add(mark)
        if (ref.stream, ref.connection_id) in self._shared:
            self._state.marks.append(mark)
        return True
