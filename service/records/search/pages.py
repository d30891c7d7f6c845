"""Search: finds the records that best answer a question, and the passages that prove the matches.

Stage 1 (`candidates`) yields one ordered list of records from the index alone. Stage 2 (`blocks`)
reads and ranks them in blocks of 100 with their neighbours; a page shows the next records of its
block. A cursor holds the block, the offset in it and the figures that the ranking goes by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from evidence.cached import cached_property
from evidence.limits import BUDGETS, CONTRACT
from evidence.hits import Counts, SearchPage, Tail
from evidence.page_order import ENOUGH, NOTHING_MATCHES, TAIL, related_most
from service.keys import Identity, Sealer, identity
from service.ports import SearchQuery
from service.meaning.encoder import Encoder
from service.records.search import candidates, words
from service.records.search.blocks import DIGITS, Ranked
from service.records.search.page_cursor import WHOLE, PageCursor
from service.records.engine import Snapshot
from service.records.engine.vectors import share_of
from service.records.search.hits import hits_of
from service.records.search.explaining import explained
from service.records.search.meaning import Meaning
from service.records.search.ordering import Places
from service.records.search.ranked_blocks import RankedBlocks
from evidence.times import moment
from service.records.view import View

if TYPE_CHECKING:
    from service.records.search.every_match import EveryMatch


def search(
    snapshot: Snapshot,
    view: View,
    request: SearchQuery,
    sealer: Sealer,
    encoder: Encoder | None = None,
) -> SearchPage:
    """A page of hits, each with its proven passages, and of related ones."""
    return Search(snapshot, view, request, encoder).page(sealer)


class Search(RankedBlocks):
    """The pages of one question."""

    cursor = PageCursor()
    #: All matches, if the page is cut from their order.
    matched: "EveryMatch | None" = None

    def page(self, sealer: Sealer) -> SearchPage:
        """The hits that the cursor of the request asks for."""
        request = self.request
        cursor = self.cursor = PageCursor.unseal(request.cursor, sealer, self._bound)
        ranked, warnings = self._begin()
        if request.sort == "newest":
            return self._newest(warnings)
        number, offset, rank = cursor.block, cursor.offset, cursor.rank
        if ranked is None:
            number, offset = (0, 0) if number == WHOLE else (number, offset)
            ranked, number = self._block_after(number, offset + request.limit)
        elif self.matched and self.matched.matches.some > self.block_size:
            number = WHOLE
        cursor_at = partial(self._cursor_at, sealer, ranked)
        page_records = ranked[offset : offset + request.limit]
        cut = len(page_records) if request.cursor else self._tail(page_records)
        tail = Tail(cut, cursor_at(number, cut, cut + 1)) if cut < len(page_records) else None
        if request.cut_tail:
            page_records = page_records[:cut]
        places = Places(range(rank, rank + len(page_records)))
        if not request.cursor:
            places = self._places(ranked, page_records)
            page_records = page_records[: len(places.ranks)]
        following: int | None = number
        after = offset + len(page_records)
        if after >= len(ranked):
            following, after = self._following(number), 0
        next_rank = rank + places.size
        next_cursor = None if following is None else cursor_at(following, after, next_rank)
        plain = replace(
            self._page_of(ranked, page_records, warnings, places),
            has_more=next_cursor is not None,
            next_cursor=next_cursor,
            tail_cut=tail is not None and request.cut_tail,
            tail=None if request.cut_tail or places.related else tail,
            repaired_query=words.repaired(self.question, self.query_groups),
        )
        plain = plain if plain.proven or request.cursor else explained(self, plain)

        def first_hits(limit: int) -> SearchPage:
            proven = sum(hit.related is None for hit in plain.hits[:limit])
            more = plain.has_more or proven < len(plain.proven)
            return replace(
                plain,
                hits=plain.hits[:limit],
                has_more=more,
                next_cursor=cursor_at(number, offset + proven, rank + limit) if more else None,
                tail_cut=False,
                tail=plain.tail if plain.tail and plain.tail.hits < limit else None,
            )

        page = replace(plain, first_hits=first_hits)
        if not self.candidates.complete and next_cursor is None:
            page.recall = plain.recall | self._earliest(page_records)
        return page

    @cached_property
    def _bound(self) -> Identity:
        """What cursors are bound to."""
        return identity(self.request, "hits", self.view.grant.grant_id)

    def _begin(self) -> tuple[list[Ranked] | None, list[dict[str, Any]]]:
        """(the first records of all matches if a page is cut from these, the warnings)."""
        cursor, ordering = self.cursor, self.ordering
        ranked = self._from_every_match(cursor.offset + self.request.limit + 1)
        if ordering:
            ordering.standard = self.matched.standard if self.matched else cursor.standard
        is_moved = cursor.block == WHOLE and ranked is None
        changed = cursor.figures not in (None, self.figures) and not is_moved
        return ranked, list(self.warnings(changed=changed, moved=is_moved))

    def _cursor_at(
        self, sealer: Sealer, ranked: Sequence[Ranked], number: int, offset: int, rank: int
    ) -> str:
        """The cursor of a page that begins at an offset in these records."""
        last = self.cursor.last
        standard = self.ordering.standard if (number or last) and self.ordering else None
        if number == WHOLE:
            last = ranked[offset - 1].value, ranked[offset - 1].seq
        following = PageCursor(number, offset, rank, self.figures, standard, last)
        return following.seal(sealer, self._bound)

    def _from_every_match(self, most: int) -> list[Ranked] | None:
        """The first records of all matches; None for the cursor of a page of blocks."""
        cursor = self.cursor
        of_blocks = cursor.block > 0 or (cursor.block == 0 and cursor.last is not None)
        every = None if of_blocks else self.every_match(most)
        if every is None:
            return None
        if cursor.figures and cursor.block == 0 and every[0].matches.some > self.block_size:
            return None
        self.matched, ranked = every
        self.reader = self.matched.reader
        self.candidates = self.reader.candidates
        self.reader.explain(ranked[self.cursor.offset :])
        return ranked

    def _block_after(self, number: int, most: int) -> tuple[list[Ranked], int]:
        """The records of a block that no page has shown, or of the next with one; its number."""
        following: int | None = number
        while following is not None and self.cursor.last:
            number, ranked = following, self._unshown(following)
            if ranked:
                return ranked, number
            following = self._next_block(number)
        return ([] if self.cursor.last else self.block(number, most)), number

    def _following(self, number: int) -> int | None:
        """The block after one that is shown whole; none after all matches."""
        if self.matched:
            return None
        following = self._next_block(number)
        while following is not None and self.cursor.last and not self._unshown(following):
            following = self._next_block(following)
        return following

    def _unshown(self, number: int) -> list[Ranked]:
        """The records of a block that come after the last one from the order of all matches."""
        assert self.cursor.last is not None
        value, seq = self.cursor.last
        ranked = self.block(number, number * self.block_size + 2 * self.block_size)
        least = round(value, DIGITS)
        tied = [candidate for candidate in ranked if round(candidate.value, DIGITS) == least]
        earlier = self.reader.before(seq, tied) if tied else set()
        return [
            candidate
            for candidate in ranked
            if round(candidate.value, DIGITS) <= least and candidate.seq not in earlier
        ]

    def _earliest(self, page_records: list[Ranked]) -> dict[str, str]:
        """The time before which a narrower search continues."""
        times = [at for at in self.reader.times(page_records).values() if at is not None]
        return {"earliest_event_time": moment(min(times))} if times else {}

    def _places(self, ranked: list[Ranked], page_records: list[Ranked]) -> Places:
        """The places of a first page, with those of related records."""
        limit, ordering = self.request.limit, self.ordering
        places = Places(range(1, len(page_records) + 1))
        if (ranked and ordering is None) or not self.meaning.nearness:
            return places
        standard = ordering.standard if ordering and ordering.standard else NOTHING_MATCHES
        mixed = standard.coverage < ENOUGH
        most = limit if mixed else limit - min(limit, len(ranked))
        if ranked:
            most = min(most, related_most(limit))
        if not most:
            return places
        from service.records.search import related

        nearest, self.compared = related.find(
            self.meaning.nearness,
            self.candidates,
            self.ranker.groups,
            self.searched.covered,
            standard,
            seen=self.candidates.complete and self.is_plain,
        )
        values = [record.value for record in page_records]
        return related.places_on(values, nearest[:most], limit, mixed=mixed)

    def warnings(self, *, changed: bool, moved: bool = False) -> Iterator[dict[str, Any]]:
        """What a client should know of a page; `changed`: the store did since the page before.

        `moved`: the order of the records did, because another process answers.
        """
        if moved:
            yield {
                "code": "ranking_changed",
                "message": "This page is ranked differently from the previous page. Hits that "
                "were already shown are left out.",
            }
        if changed:
            yield {
                "code": "store_changed",
                "message": "The store has changed since the previous page; hits may be repeated or "
                "missing.",
            }
        if timeless := self.searched.timeless:
            yield {
                "code": "no_event_time",
                "message": f"Records left out because they have no event time: {timeless}.",
            }

    def _page_of(
        self,
        ranked: list[Ranked],
        page_records: list[Ranked],
        warnings: list[dict[str, Any]],
        places: Places,
    ) -> SearchPage:
        """A page of some records of a block, and of related ones, at their places."""
        records = self.reader.ranked_records(page_records)
        hits = hits_of(self.ranker, records, places.ranks, self.reads)
        if places.related:
            from service.records.search import related

            hits += related.hits_of(self.candidates, self.searched.covered, places.related)
        is_semantic = self.request.mode == "semantic"
        meaning = self.meaning if self.ordering or places.related or is_semantic else Meaning()
        return SearchPage(
            args={},
            hits=sorted(hits, key=lambda hit: hit.rank or 0),
            has_more=False,
            next_cursor=None,
            counts=self._counts(ranked),
            recall=self.recall(meaning),
            warnings=[*warnings, *meaning.warnings],
            ranking="words+meaning" if meaning.nearness else "words",
            model=meaning.model,
        )

    @cached_property
    def figures(self) -> str:
        """What the order of all pages goes by, before a block is read.

        It counts granted records alone: a number of the store as a whole would tell a client that
        something changed which its grant hides.
        """
        counts = [group.count for group in self.ranker.groups]
        vectors = self.meaning.nearness.version if self.ordering and self.meaning.nearness else ()
        number = self.matched.matches.some if self.matched else len(self.candidates.group_bits)
        figures = [self.records, self.mean, number, *counts, *vectors]
        return blake2b(repr(figures).encode(), digest_size=6).hexdigest()

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
        places = Places(range(1, len(page_records) + 1))
        plain = self._page_of(ranked, page_records, warnings, places)
        matching = plain.counts.some if plain.counts else 0

        def first_hits(limit: int) -> SearchPage:
            hits = plain.hits[:limit]
            return replace(plain, hits=hits, left_out=max(0, matching - len(hits)) or None)

        page = replace(first_hits(len(page_records)), first_hits=first_hits)
        return page if page.hits else explained(self, page)

    def _counts(self, ranked: list[Ranked]) -> Counts:
        """Records that match, and those that hold every wanted word; lower bounds if not exact."""
        if self.matched:
            return Counts(self.matched.matches.all, self.matched.matches.some, exact=True)
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

    def recall(self, meaning: Meaning) -> dict[str, Any]:
        bounded = not self.candidates.complete
        recall: dict[str, Any] = {
            "complete": not bounded,
            "ranking_scope": "candidate_window" if bounded else "all_matches",
            "truncated": bounded,
            "sources_searched_count": self.searched.sources,
        }
        if bounded:
            recall["candidate_window_limit"] = len(self.candidates.group_bits)
        if meaning.nearness:
            covered = self.view.vector_coverage(self.snapshot, meaning.nearness.vectors)
            share = share_of(covered.values())
            recall |= {"vectors": share} if share not in (None, 1) else {}
        if self.compared is not None:
            recall["vectors_compared"] = self.compared
        return recall
