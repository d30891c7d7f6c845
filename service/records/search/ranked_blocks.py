"""One question within one grant: its candidates, ranked in blocks with their neighbors."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from evidence.cached import cached_property
from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.ranking import Ranker
from service.ports import SearchQuery
from service.meaning.encoder import Encoder
from service.records.search import candidates
from service.records.search.blocks import Near, Ranked, Reader, in_order, scored
from service.records.search.candidates import Candidates
from service.records.engine import Snapshot
from service.records.engine.later import Later
from service.records.search.hits import Reads
from service.records.search.meaning import Meaning, meaning_of
from service.records.search.narrowing import Searched
from service.records.search.ordering import Ordering
from service.records.search.required_parts import RequiredParts, holding_all
from service.records.search.words import groups_of
from service.records.view import View

if TYPE_CHECKING:
    from service.records.search.every_match import EveryMatch


class RankedBlocks:
    """One question inside one grant, ranked in blocks of `block_size` candidates."""

    def __init__(
        self,
        snapshot: Snapshot,
        view: View,
        request: SearchQuery,
        encoder: Encoder | None = None,
        block_size: int = BUDGETS.candidates_ranked,
    ) -> None:
        self.block_size, self._order = block_size, list[int]()
        self.encoder = encoder
        #: The vectors that were compared before time ran out; None if all were.
        self.compared: int | None = None
        self.snapshot, self.view, self.request = snapshot, view, request
        self.searched = Searched(snapshot, view, request)
        self.question = view.question(snapshot, request.query)
        if self.question.is_empty:
            raise InvalidRequest(
                "The query has no word to look for. Give at least one word, phrase or emoji; "
                "words with a leading minus only exclude records.",
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
            newest, are_all = self.searched.newest_in(
                self.question.period, BUDGETS.candidates_newest
            )
            selected.add_records(newest)
            selected.complete &= are_all
        return selected

    def every_match(self, most: int) -> tuple["EveryMatch", list[Ranked]] | None:
        """All matches, and the first `most` of them in order.

        None unless the engine ranks by itself, words alone decide the order, and no limit, filter
        or thread does.
        """
        scoring, covered, question = self.snapshot.scoring, self.searched.covered, self.question
        others = question.required or question.period or self.request.sort != "relevance"
        threads = covered.threads.selections
        if scoring is None or others or threads or self.searched.scope().limited:
            return None
        if not self.query_groups or self.meaning.nearness:
            return None
        from service.records.search.every_match import BOUNDS_MOST, EveryMatch

        kinds, groups, every = covered.kinds, self.ranker.groups, self.every
        words = len(groups) if self.ordering else None
        at_once = 1 + self.block_size // 4
        for further in (2 * self.block_size, BOUNDS_MOST):  # the first is mostly enough
            matches = scoring.matches(kinds, self.ranker, every=every, most=most + further)
            if matches is None:
                return None
            chosen = Candidates.of_matches(self.snapshot, matches.best, groups)
            reader = Reader(chosen, covered, self.ranker)
            found = EveryMatch(reader, matches, words, at_once)
            if (first := found.first(most)) is not None:
                return found, first
        return None

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
        reader, ordering = self.reader, self.ordering
        exact = None if near or self.question.period or ordering else most
        texts = ordering.begin([*chosen, *neighbours], near) if ordering else None
        matching = self._matching(reader.ranked(exact))
        values = scored(reader, matching, near, self.question)
        if ordering and texts:
            self._set_standard(ordering, number, matching, values)
            values = ordering.values(reader, matching, values, near, texts.get())
        repeated = {seq for seq in matching if earlier and _is_repeated(seq, earlier, near)}
        ordered = in_order(reader, matching, values, most + len(repeated))
        return [candidate for candidate in ordered if candidate.seq not in repeated]

    def _set_standard(
        self, ordering: Ordering, number: int, matching: dict[int, Ranked], scores: dict[int, float]
    ) -> None:
        if ordering.standard is not None:  # the cursor has it
            return
        if number == 0:
            ordering.set_standard(matching, scores)
        else:  # the cursor is of an older version
            first = RankedBlocks(
                self.snapshot, self.view, self.request, self.encoder, self.block_size
            )
            first.block(0, 0)
            assert first.ordering is not None
            ordering.standard = first.ordering.standard

    @cached_property
    def is_plain(self) -> bool:
        """Whether all words of the question are plain, and none is required."""
        return not (self.every or self.question.required or self.question.only_period)

    @property
    def may_be_related(self) -> bool:
        """Whether records without a word may be shown: also if no record has a quoted part."""
        quoted = all(
            not (part.role or part.term.prefix or part.term.excluded)
            for part in self.question.required
        )
        among_words = quoted and not self.every and len(self.query_groups) > 1
        return self.is_plain or (among_words and not self.candidates.group_bits)

    @cached_property
    def ordering(self) -> Ordering | None:
        """What orders blocks besides words; None if these alone do."""
        count = len(self.query_groups)
        if not self.is_plain or count < 2:
            return None
        return Ordering(self.ranker, count, self.meaning.nearness)

    @cached_property
    def meaning(self) -> Meaning:
        """The vectors of the grant, and how near they are to the question."""
        request = self.request
        is_ranked = request.mode == "semantic" or (request.mode != "words" and self.may_be_related)
        if self.encoder is None or not is_ranked:
            return Meaning()
        return meaning_of(
            self.snapshot, self.encoder, request.query, self.view.covered.meaning_scope
        )

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


def _is_repeated(seq: int, earlier: set[int], near: Near) -> bool:
    """Whether a record is in an earlier block: as one of its candidates, or as a neighbour of one.

    The records near it are those that it is near to.
    """
    return seq in earlier or not earlier.isdisjoint(near.get(seq, ()))
