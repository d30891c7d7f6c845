"""Search: the records that answer a question best, with the passages that prove it.

Stage 1 (`candidates`) yields one ordered list of records from the index alone. Stage 2 (`blocks`)
reads and ranks them in blocks of 100 with their neighbours; a page shows the next records of its
block. A cursor holds the block, the offset in it and the figures that the ranking goes by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from math import ceil
from typing import Any

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from evidence.hits import Counts, SearchPage, Tail
from evidence.ranking import TAIL, Ranker
from service.keys import Sealer, identity
from service.ports import SearchQuery
from service.records.view import near_values
from service.records.search import candidates, words
from service.records.search.blocks import Near, Ranked, Reader, in_order
from service.records.search.candidates import Candidates
from service.records.engine import Snapshot
from service.records.engine.later import Later
from service.records.search.hits import Reads, hits_of
from service.records.search.narrowing import Searched
from service.records.search.required_parts import RequiredParts, holding_all
from evidence.times import moment
from service.records.view import View
from service.records.search.words import groups_of


def search(snapshot: Snapshot, view: View, request: SearchQuery, sealer: Sealer) -> SearchPage:
    """A page of hits, each with its proven passages."""
    return Search(snapshot, view, request).page(sealer)


class Search:
    """One question inside one grant, ranked in blocks of `block_size` candidates."""

    def __init__(
        self,
        snapshot: Snapshot,
        view: View,
        request: SearchQuery,
        block_size: int = BUDGETS.candidates_ranked,
    ) -> None:
        self.block_size, self._order = block_size, list[int]()
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
            snapshot,
            self.vocabulary,
            self.searched.scope,
            view.covered.scope,
            self.question.required,
        )
        self.query_groups = groups_of(self.question, self.vocabulary, strict=self.every)
        self.records, self.mean = self.vocabulary.size.get()
        parts = list(self.required.groups())
        self.ranker = Ranker([*self.query_groups, *parts], self.mean)
        # A read repairs words, and looks for required parts in the whole grant, but for prefixes.
        to_read = [*self.query_groups, *(part for part in parts if not part.word.prefix)]
        alike = not (self.every or self.question.required)
        self.reads = Reads(
            snapshot, view, self.question, None if self.every else to_read, alike=alike
        )

    @cached_property
    def candidates(self) -> Candidates:
        """Every candidate, before any is read."""
        snapshot, scope, required = self.snapshot, self.searched.scope, self.required
        if required.sought:
            selected = required.candidates(scope(), self.ranker.groups)
            if query_bits := candidates.bits_of(range(len(self.query_groups))):
                least = query_bits if self.every else 1
                selected.keep(
                    seq for seq, bits in selected.group_bits.items() if bits & query_bits >= least
                )
        else:
            records = 0 if self.searched.narrowed else self.records
            selected = candidates.of_words(
                snapshot, scope(), scope("primary-title"), self.query_groups, records
            )
            if self.every:
                matching = holding_all(snapshot, scope(), self.query_groups, selected.group_bits)
                selected.keep(matching)
            if self.question.required:
                selected.keep(required.meeting(selected.group_bits))
        if self.question.only_period and self.question.period:
            selected.add_records(self._in_period())
        return selected

    def _in_period(self) -> list[int]:
        """The newest records whose event time is in the period of the question."""
        period = self.question.period
        assert period is not None
        return self.searched.newest_in(period.since, period.until, BUDGETS.candidates_newest)

    def slice_of(self, number: int) -> tuple[set[int], list[int]]:
        """(the candidates of the blocks before a block, its own in the order of stage 1)."""
        first, end = number * self.block_size, (number + 1) * self.block_size
        if len(self._order) < min(end, len(self.candidates.group_bits)):
            self._order = self.candidates.ordered(self.ranker, self.searched.covered, end)
        return set(self._order[:first]), self._order[first:end]

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.candidates, self.searched.covered, self.ranker)

    def block(self, number: int, most: int) -> list[Ranked]:
        """The records of a block, best first, without those of earlier blocks.

        After the first `most` they come in any order.
        """
        earlier, chosen = self.slice_of(number)
        near_chosen = self._neighbours(chosen)
        self.reader.load(chosen)
        near = near_chosen.get()
        neighbours = sorted(
            {neighbour for places in near.values() for neighbour in places} - set(chosen)
        )
        further = self._neighbours(neighbours)
        self.reader.load(neighbours)
        near |= further.get()
        exact = None if near or self.question.period else most
        matching = self._matching(self.reader.ranked(exact))
        repeated = {seq for seq in matching if _is_repeated(seq, earlier, near)}
        ordered = in_order(self.reader, matching, near, self.question, most + len(repeated))
        return [candidate for candidate in ordered if candidate.seq not in repeated]

    def _next_block(self, number: int) -> int | None:
        """The number of the next block with a candidate that no earlier block has."""
        for later in range(number + 1, ceil(len(self.candidates.group_bits) / self.block_size)):
            earlier, chosen = self.slice_of(later)
            near = self._neighbours(chosen).get()
            if not all(_is_repeated(seq, earlier, near) for seq in chosen):
                return later
            neighbours = self.candidates.group_bits.keys() & {
                n for places in near.values() for n in places
            }
            near = self._neighbours(list(neighbours)).get()
            if not all(_is_repeated(seq, earlier, near) for seq in neighbours):
                return later
        return None

    def _neighbours(self, seqs: Sequence[int]) -> Later[Near]:
        return self.snapshot.neighbours(self.searched.covered.threads, seqs)

    def _matching(self, ranked: dict[int, Ranked]) -> dict[int, Ranked]:
        """Those of some records that match the query themselves."""
        selected, scope = self.candidates.group_bits, self.searched.scope
        query_groups = frozenset(range(len(self.query_groups)))
        neighbours = {
            seq
            for seq, candidate in ranked.items()
            if seq not in selected and (not query_groups or query_groups & candidate.score.held)
        }
        if neighbours and self.question.required:
            neighbours = self.required.meeting(neighbours)
        if neighbours and self.every:
            neighbours = holding_all(self.snapshot, scope(), self.query_groups, neighbours)
        return {
            seq: candidate
            for seq, candidate in ranked.items()
            if seq in selected or seq in neighbours
        }

    def page(self, sealer: Sealer) -> SearchPage:
        """The hits that the cursor of the request asks for."""
        request = self.request
        bound = identity(request, "hits", self.view.grant.grant_id)
        number, offset, rank, before = 0, 0, 1, None
        if request.cursor:
            number, offset, rank, before = sealer.open(request.cursor, bound=bound)
        current = self._figures()
        warnings = list(self._warnings(changed=before not in (None, current)))
        if request.sort == "newest":
            return self._newest(warnings)
        ranked = self.block(number, offset + request.limit)
        page_records = ranked[offset : offset + request.limit]
        cut = len(page_records) if request.cursor else self._tail(page_records)
        tail = None
        if cut < len(page_records):
            tail = Tail(cut, sealer.seal([number, cut, cut + 1, current], bound=bound))
            if request.cut_tail:
                page_records = page_records[:cut]
        following: int | None = number
        after = offset + len(page_records)
        if after >= len(ranked):
            following, after = self._next_block(number), 0
        cursor = None
        if following is not None:
            cursor = sealer.seal([following, after, rank + len(page_records), current], bound=bound)
        plain = replace(
            self._page_of(ranked, page_records, warnings, rank),
            has_more=cursor is not None,
            next_cursor=cursor,
            tail_cut=tail is not None and request.cut_tail,
            tail=None if request.cut_tail else tail,
            repaired_query=words.repaired(self.question, self.query_groups),
        )

        def first_hits(limit: int) -> SearchPage:
            return replace(
                plain,
                hits=plain.hits[:limit],
                has_more=True,
                next_cursor=sealer.seal(
                    [number, offset + limit, rank + limit, current], bound=bound
                ),
                tail_cut=False,
                tail=plain.tail if plain.tail and plain.tail.hits < limit else None,
            )

        page = replace(plain, first_hits=first_hits)
        if not self.candidates.complete and cursor is None:
            times = [at for at in self.reader.times(page_records).values() if at is not None]
            if times:
                page.recall = plain.recall | {"earliest_event_time": moment(min(times))}
        return page if page.hits or request.cursor else self._explained(page)

    def _warnings(self, *, changed: bool) -> Iterator[dict[str, Any]]:
        """What a client should know of a page; `changed`: the store did since the page before."""
        if changed:
            yield {
                "code": "store_changed",
                "message": "The store changed since the page before; hits may repeat or be "
                "missing.",
            }
        if timeless := self.searched.timeless:
            yield {
                "code": "no_event_time",
                "message": f"{timeless} records without an event time were left out.",
            }

    def _page_of(
        self,
        ranked: list[Ranked],
        page_records: list[Ranked],
        warnings: list[dict[str, Any]],
        first: int = 1,
    ) -> SearchPage:
        """A page of some records of a block; `first` is the rank of the first one."""
        return SearchPage(
            args={},
            hits=hits_of(self.ranker, self.reader.ranked_records(page_records), first, self.reads),
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
        figures = [self.records, self.mean, len(self.candidates.group_bits), *counts]
        return blake2b(repr(figures).encode(), digest_size=6).hexdigest()

    def _explained(self, page: SearchPage) -> SearchPage:
        """A page without hits, with the words that are missing and a call that has hits."""
        streams, conditions = self.searched.streams, self.request.filter
        return replace(
            page,
            warnings=[*page.warnings, *near_values.warnings(self.snapshot, streams, conditions)],
            absent_words=words.absent(self.query_groups),
            nearest_words=words.nearest(self.query_groups, self.vocabulary),
            retry=self._retry(),
        )

    def _retry(self) -> dict[str, Any] | None:
        """Arguments in place of which this search has hits, as a further search shows.

        Fewer words in the same scope come first, then the same words in a wider one, then both.
        """
        less = words.retries(self.question, self.query_groups, every=self.every)
        fewer = list(islice(less, words.RETRIES_MAX))
        wider = list(words.wider(self.request))
        both = [changes | wider[-1] for changes in fewer] if wider else []
        successful = (changes for changes in (*fewer, *wider, *both) if self._has_hits(changes))
        return next(successful, None)

    def _has_hits(self, changes: dict[str, Any]) -> bool:
        if len(changes.get("query", "")) > CONTRACT.query_chars:
            return False
        request = words.changed(self.request, changes)
        try:
            return bool(Search(self.snapshot, self.view, request).candidates.group_bits)
        except InvalidRequest:  # a filter that does not fit a wider scope
            return False

    def _tail(self, page_records: list[Ranked]) -> int:
        """How many hits a first page shows before the scores fall off."""
        if not page_records:
            return 0
        least = page_records[0].value * TAIL
        for number, candidate in enumerate(page_records):
            if number >= CONTRACT.full_hits and candidate.value < least:
                return number
        return len(page_records)

    def _newest(self, warnings: list[dict[str, Any]]) -> SearchPage:
        """The first block without its tail, by event time."""
        ranked = self.block(0, BUDGETS.candidates_ranked)
        least = ranked[0].value * TAIL if ranked else 0.0
        good = [candidate for candidate in ranked if candidate.value >= least]
        page_records = self.reader.newest_first(good)[: self.request.limit]
        plain = self._page_of(ranked, page_records, warnings)
        matching = plain.counts.some if plain.counts else 0

        def first_hits(limit: int) -> SearchPage:
            hits = plain.hits[:limit]
            return replace(plain, hits=hits, left_out=max(0, matching - len(hits)) or None)

        page = replace(first_hits(len(page_records)), first_hits=first_hits)
        return page if page.hits else self._explained(page)

    def _counts(self, ranked: list[Ranked]) -> Counts:
        """Records that match, and those that hold every wanted word; lower bounds if not exact."""
        selected, every = self.candidates, set(range(len(self.query_groups)))
        whole = {candidate.seq for candidate in ranked if every <= candidate.score.held}
        if selected.complete:
            bits = candidates.bits_of(every)
            whole |= {
                seq
                for seq, record_bits in selected.group_bits.items()
                if record_bits & bits == bits
            }
        some = len(selected.group_bits) + sum(
            candidate.seq not in selected.group_bits for candidate in ranked
        )
        return Counts(all=len(whole), some=max(some, len(whole)), exact=selected.complete)

    def _recall(self) -> dict[str, Any]:
        bounded = not self.candidates.complete
        recall: dict[str, Any] = {
            "complete": not bounded,
            "ranking_scope": "candidate_window" if bounded else "all_matches",
            "truncated": bounded,
            "sources_searched_count": self.searched.sources,
        }
        if bounded:
            recall["candidate_window_limit"] = len(self.candidates.group_bits)
        return recall


def _is_repeated(seq: int, earlier: set[int], near: Near) -> bool:
    """Whether a record is in an earlier block: as one of its candidates, or as a neighbour of one.

    The records near it are those that it is near to.
    """
    return seq in earlier or not earlier.isdisjoint(near.get(seq, ()))
