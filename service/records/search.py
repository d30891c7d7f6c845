"""Search: the records that answer a question best, with the passages that prove it.

Stage 1 (`candidates`) yields one ordered list of records from the index alone. Stage 2 (`blocks`)
reads and ranks them in blocks of 100 with their neighbours; a page shows the next records of its
block. A cursor holds the block, the offset in it and the figures that the ranking goes by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from itertools import islice
from typing import Any

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from evidence.hits import Counts, SearchPage, Tail
from evidence.ranking import TAIL, Ranker
from service.keys import Sealer, identity
from service.port_rules import several_streams
from service.ports import SearchQuery
from service.records import candidates, filters, lists, words
from service.records.blocks import Near, Ranked, Reader, in_order
from service.records.candidates import Candidates
from service.records.engine import Order, Scope, Selection, Snapshot, Test
from service.records.hits import Reads, hits_of
from service.records.required_parts import RequiredParts, holding_all
from service.records.values import EARLIEST, microseconds
from service.records.view import Coverage, StreamView, View
from service.records.words import groups_of


def search(snapshot: Snapshot, view: View, request: SearchQuery, sealer: Sealer) -> SearchPage:
    """A page of hits, each with its proven passages."""
    return Search(snapshot, view, request).page(sealer)


@dataclass(frozen=True)
class Searched:
    """The part of a grant that one search covers."""

    snapshot: Snapshot
    view: View
    request: SearchQuery

    @cached_property
    def streams(self) -> Sequence[StreamView]:
        """The streams; 403 for a stream name outside the grant."""
        view, request = self.view, self.request
        found: Sequence[StreamView] = view.within(request.connection_id)
        if request.streams:
            names = dict.fromkeys(request.streams)
            named = (view.stream(name, request.connection_id, param="streams") for name in names)
            found = [stream for group in named for stream in group]
        if request.filter and len({stream.name for stream in found}) != 1:
            raise several_streams()
        if request.filter:
            lists.require_shared(view, found, request.filter, "filter")
        return found

    @cached_property
    def times(self) -> tuple[int | None, int | None]:
        """`since` and `until` in microseconds; 400 for text that is no date."""
        return self._time("since"), self._time("until")

    def _time(self, name: str) -> int | None:
        text = getattr(self.request, name)
        if text is None:
            return None
        found = microseconds(text)
        if found is None:
            raise InvalidRequest(
                f"{name} must be a date such as 2026-03-01 or a date-time such as "
                "2026-03-01T09:00:00Z.",
                param=name,
            )
        return found

    @cached_property
    def selections(self) -> dict[int, Selection]:
        """The covered records, by stream; streams without event times drop out of a time range."""
        found = {}
        for stream in self.streams:
            tests = self._tests(stream)
            bounds = tuple(self._bounds(stream)) if self._timed else ()
            if self._timed and not bounds:
                continue
            found[stream.id] = stream.selection((*tests, *bounds))
        return found

    @property
    def narrowed(self) -> bool:
        """Whether the request leaves out a part of the grant."""
        request = self.request
        return bool(request.streams or request.connection_id or request.filter or self._timed)

    @property
    def _timed(self) -> bool:
        return self.times != (None, None)

    def _tests(self, stream: StreamView) -> tuple[Test, ...]:
        wanted = self.request.filter
        return filters.tests_of(stream, wanted) if wanted else ()

    def _bounds(self, stream: StreamView) -> Iterator[Test]:
        ordinal = stream.event_ordinal
        if ordinal is not None:
            for value, operator in zip(self.times, ("gte", "lt")):
                if value is not None:
                    yield Test(ordinal, operator, value)

    @cached_property
    def timeless(self) -> int:
        """How many records a time range leaves out because they have no event time."""
        if not self._timed:
            return 0
        whole, dated = list[Selection](), list[Selection]()
        for stream in self.streams:
            tests = self._tests(stream)
            whole.append(stream.selection(tests))
            if stream.event_ordinal is not None:
                at = Test(stream.event_ordinal, "gte", EARLIEST)
                dated.append(stream.selection((*tests, at)))
        return lists.count(self.snapshot, whole) - lists.count(self.snapshot, dated)

    @cached_property
    def covered(self) -> Coverage:
        """The streams with their selections."""
        return Coverage(self.streams, self.selections) if self.narrowed else self.view.covered

    def scope(self, role: str | None = None) -> Scope:
        """The searched fields, or those with a role; see `Coverage`."""
        return self.covered.scope(role)

    def newest_in(self, since: int, until: int, limit: int) -> list[int]:
        """The newest records whose event time is in a period, at most `limit` of each stream."""
        found = []
        for stream in self.streams:
            selection, ordinal = self.selections.get(stream.id), stream.event_ordinal
            if selection is None or ordinal is None:
                continue
            period = (Test(ordinal, "gte", since), Test(ordinal, "lt", until))
            selection = replace(selection, tests=(*selection.tests, *period))
            order = Order(by_cursor=True, descending=True)
            found += [row.seq for row in self.snapshot.page([selection], order, None, limit)]
        return found

    @property
    def sources(self) -> int:
        """How many connections it covers."""
        return len({stream.connection_id for stream in self.streams})


class Search:
    """One question inside one grant."""

    def __init__(self, snapshot: Snapshot, view: View, request: SearchQuery) -> None:
        self.snapshot, self.view, self.request = snapshot, view, request
        self.searched = Searched(snapshot, view, request)
        self.question = view.question(snapshot, request.query)
        if self.question.is_empty:
            raise InvalidRequest(
                "The query has no word to look for. Give at least one word, phrase or emoji; "
                "words with a leading minus only exclude.",
                param="query",
            )
        self.every = request.words == "all"
        self.vocabulary = view.vocabulary(snapshot)
        self.required = RequiredParts(
            snapshot, self.vocabulary, self.searched.scope, self.question.required
        )
        self.wanted = groups_of(self.question, self.vocabulary, strict=self.every)
        self.records, self.mean = self.vocabulary.size
        self.ranker = Ranker([*self.wanted, *self.required.groups()], self.mean)
        # A read repairs words, and looks for required parts in the whole grant.
        alike = not (self.every or self.question.required)
        self.reads = Reads(snapshot, view, self.question, self.wanted if alike else None)

    @cached_property
    def candidates(self) -> Candidates:
        """Every candidate, before any is read."""
        snapshot, scope, required = self.snapshot, self.searched.scope, self.required
        if required.sought:
            found = required.candidates(len(self.wanted))
            if self.wanted:
                found.keep_wanted(scope(), self.wanted, every=self.every)
        else:
            records = 0 if self.searched.narrowed else self.records
            found = candidates.of_words(
                snapshot, scope(), scope("primary-title"), self.wanted, records
            )
            if self.every:
                kept = holding_all(snapshot, scope(), self.wanted, found.held)
                found.keep(kept)
            if self.question.required:
                found.keep(required.meeting(found.held))
        if self.question.only_period and self.question.period:
            found.add_records(self._in_period())
        return found

    def _in_period(self) -> list[int]:
        """The newest records whose event time is in the period of the question."""
        period = self.question.period
        assert period is not None
        return self.searched.newest_in(period.since, period.until, BUDGETS.candidates_newest)

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.candidates, self.searched.covered, self.ranker)

    def block(self, number: int, most: int) -> list[Ranked]:
        """The records of a block, best first; those of earlier blocks are not repeated.

        After the first `most` they come in any order.
        """
        first, end = number * BUDGETS.candidates_ranked, (number + 1) * BUDGETS.candidates_ranked
        order = self.candidates.ordered(self.ranker, self.searched.covered, end)
        before, chosen = set(order[:first]), order[first:end]
        threads = self.searched.covered.threads

        def neighbours(seqs: list[int]) -> Near:
            return self.snapshot.neighbours(threads, seqs) if threads.selections else {}

        near = self.reader.load(chosen, partial(neighbours, chosen))
        added = sorted({other for places in near.values() for other in places} - set(chosen))
        near |= self.reader.load(added, partial(neighbours, added))
        exact = None if near or self.question.period else most
        kept = self._matching(self.reader.ranked(exact))
        most += len(before & kept.keys())
        ordered = in_order(self.reader, kept, near, self.question, most)
        return [one for one in ordered if one.seq not in before]

    def _matching(self, ranked: dict[int, Ranked]) -> dict[int, Ranked]:
        """Those of some records that match the query themselves."""
        known, scope = self.candidates.held, self.searched.scope
        wanted = frozenset(range(len(self.wanted)))
        others = {
            seq for seq, one in ranked.items() if seq not in known and wanted & one.score.held
        }
        if others and self.question.required:
            others = self.required.meeting(others)
        if others and self.every:
            others = holding_all(self.snapshot, scope(), self.wanted, others)
        return {seq: one for seq, one in ranked.items() if seq in known or seq in others}

    def page(self, sealer: Sealer) -> SearchPage:
        """The hits that the cursor of the request asks for."""
        request = self.request
        bound = ["search", self.view.grant.grant_id, *identity(request)]
        number, offset, before = 0, 0, None
        if request.cursor:
            number, offset, before = sealer.open(request.cursor, bound=bound)
        current = self._figures()
        warnings = []
        if before is not None and before != current:
            warnings.append(
                {
                    "code": "store_changed",
                    "message": "The store changed since the page before; hits may repeat or be "
                    "missing.",
                }
            )
        if self.searched.timeless:
            left = self.searched.timeless
            warnings.append(
                {
                    "code": "no_event_time",
                    "message": f"{left} records without an event time were left out.",
                }
            )
        if request.sort == "newest":
            return self._newest(warnings)
        ranked = self.block(number, offset + request.limit)
        shown = ranked[offset : offset + request.limit]
        cut = len(shown) if request.cursor else self._tail(shown)
        tail = None
        if cut < len(shown):
            tail = Tail(cut, sealer.seal([number, cut, current], bound=bound))
            if request.cut_tail:
                shown = shown[:cut]
        next_place: tuple[int, int] | None = None
        if offset + len(shown) < len(ranked):
            next_place = number, offset + len(shown)
        elif (number + 1) * BUDGETS.candidates_ranked < len(self.candidates.held):
            next_place = number + 1, 0
        cursor = None
        if next_place is not None:
            cursor = sealer.seal([*next_place, current], bound=bound)
        page = replace(
            self._shown(ranked, shown, warnings, number * BUDGETS.candidates_ranked + offset + 1),
            has_more=cursor is not None,
            next_cursor=cursor,
            tail_cut=tail is not None and request.cut_tail,
            tail=None if request.cut_tail else tail,
            repaired_query=words.repaired(self.question, self.wanted),
        )
        return page if page.hits or request.cursor else self._explained(page)

    def _shown(
        self,
        ranked: list[Ranked],
        shown: list[Ranked],
        warnings: list[dict[str, Any]],
        first: int = 1,
    ) -> SearchPage:
        """A page of some records of a block; `first` is the rank of the first one."""
        return SearchPage(
            args={},
            hits=hits_of(self.ranker, self.reader.shown(shown), first, self.reads),
            has_more=False,
            next_cursor=None,
            counts=self._counts(ranked),
            recall=self._recall(),
            warnings=warnings,
        )

    def _figures(self) -> str:
        """What the order of all pages goes by. It counts granted records alone: a number of the
        store as a whole would tell a client that something changed which its grant hides.
        """
        counts = [group.count for group in self.ranker.groups]
        figures = [self.records, self.mean, len(self.candidates.held), *counts]
        return blake2b(repr(figures).encode(), digest_size=6).hexdigest()

    def _explained(self, page: SearchPage) -> SearchPage:
        """A page without hits, with the words that are missing and a call that has hits."""
        return replace(
            page,
            absent_words=words.absent(self.wanted),
            nearest_words=words.nearest(self.wanted, self.vocabulary),
            retry=self._retry(),
        )

    def _retry(self) -> dict[str, Any] | None:
        """Arguments in place of which this search has hits, as a further search shows.

        Fewer words in the same scope come first, then the same words in a wider one, then both.
        """
        less = words.retries(self.question, self.wanted, every=self.every)
        fewer = list(islice(less, words.RETRIES_MAX))
        wider = list(words.wider(self.request))
        both = [changes | wider[-1] for changes in fewer] if wider else []
        found = (changes for changes in (*fewer, *wider, *both) if self._has_hits(changes))
        return next(found, None)

    def _has_hits(self, changes: dict[str, Any]) -> bool:
        if len(changes.get("query", "")) > CONTRACT.query_chars:
            return False
        request = words.changed(self.request, changes)
        try:
            return bool(Search(self.snapshot, self.view, request).candidates.held)
        except InvalidRequest:  # a filter that does not fit a wider scope
            return False

    def _tail(self, shown: list[Ranked]) -> int:
        """How many hits a first page shows before the scores fall off."""
        if not shown:
            return 0
        least = shown[0].value * TAIL
        for number, one in enumerate(shown):
            if number >= CONTRACT.full_hits and one.value < least:
                return number
        return len(shown)

    def _newest(self, warnings: list[dict[str, Any]]) -> SearchPage:
        """The first block without its tail, by event time."""
        ranked = self.block(0, BUDGETS.candidates_ranked)
        least = ranked[0].value * TAIL if ranked else 0.0
        good = [one for one in ranked if one.value >= least]
        shown = self.reader.newest_first(good)[: self.request.limit]
        page = self._shown(ranked, shown, warnings)
        assert page.counts is not None, "the store counts"
        page.left_out = max(0, page.counts.some - len(shown)) or None
        return page if page.hits else self._explained(page)

    def _counts(self, ranked: list[Ranked]) -> Counts:
        """Records that match, and those that hold every wanted word; lower bounds if not exact."""
        found, every = self.candidates, set(range(len(self.wanted)))
        whole = {one.seq for one in ranked if every <= one.score.held}
        if found.complete:
            bits = candidates.bits_of(every)
            whole |= {seq for seq, held in found.held.items() if held & bits == bits}
        some = len(found.held) + sum(one.seq not in found.held for one in ranked)
        return Counts(all=len(whole), some=max(some, len(whole)), exact=found.complete)

    def _recall(self) -> dict[str, Any]:
        bounded = not self.candidates.complete
        recall: dict[str, Any] = {
            "complete": not bounded,
            "ranking_scope": "candidate_window" if bounded else "all_matches",
            "truncated": bounded,
            "sources_searched_count": self.searched.sources,
        }
        if bounded:
            recall["candidate_window_limit"] = len(self.candidates.held)
        return recall
