"""Stage 1 of search: finds the likeliest answers in the index, without reading any record.

Rare words each select records, as long as they bring few enough rows. Words too common for that
select in pairs; where pairs bring too few records, titles with a word do, then the newest records.
Records are ordered by how rare the words are that they are known to hold, the first of them by the
score that is to be expected from that, from their length and from where the words were seen.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain, combinations
from operator import or_
from typing import Final

from evidence.limits import BUDGETS
from evidence.ranking import TITLE_WEIGHT, Group, Ranker
from service.records.engine import Rows, Scope, Size, Snapshot, ValueText
from service.records.engine.matches import Match
from service.records.engine.later import Later, ready
from service.records.view.coverage import Coverage

#: Words that may select in pairs, the rarest of those that are too common to do so alone.
PAIRED_MAX: Final = 5
#: Passages of a long value that are read although others hold the same groups.
BEST_PASSAGES: Final = 3
#: Candidates whose scores are estimated, at least.
ESTIMATED: Final = 2 * BUDGETS.candidates_ranked
#: Of the candidates that tie with the last of these, how many are estimated.
TIES_ESTIMATED: Final = 5 * BUDGETS.candidates_ranked


#: Passages of one record with the groups each is known to hold, by ordinal, then by start.
Passages = dict[int, dict[int, int]]


#: The groups that a record holds, as bits, and the groups whose rows are of its title, of its other
#: short fields, of fields whose words are near every place, and of each passage.
GroupLocations = tuple[int, int, int, int, frozenset[int]]


@dataclass(slots=True)
class Candidates:
    """Records with the groups they are known to hold: bit n of a number in `group_bits` is group n.

    `complete_groups` are those of which every row was seen; `complete` says whether that is all of
    them. `in_titles` are those that were looked for in titles, and in other fields only of new
    records.
    """

    snapshot: Snapshot
    group_bits: dict[int, int] = field(default_factory=partial(defaultdict, int))
    complete_groups: int = 0
    in_titles: int = 0
    complete: bool = True
    _rows: list[tuple[int, Rows]] = field(default_factory=list)
    _worth: dict[int, float] = field(default_factory=dict)
    _passages: dict[int, Passages] = field(default_factory=dict)

    @classmethod
    def of_matches(
        cls, snapshot: Snapshot, matches: Sequence[Match], groups: Sequence[Group]
    ) -> "Candidates":
        """Records whose index rows the engine has all seen."""
        return cls(
            snapshot,
            defaultdict(int, {match.seq: match.groups for match in matches}),
            bits_of(number for number, group in enumerate(groups) if group.count),
        )

    def add_passages(self, matches: Iterable[Match]) -> None:
        """Notes the passages of records whose index rows the engine has all seen."""
        for match in matches:
            passages = self._passages[match.seq] = Passages()
            for ordinal, start, bits in match.passages:
                passages.setdefault(ordinal, {})[start] = bits

    def add(self, rows: Rows, groups: Sequence[int]) -> int:
        """Notes what rows hold; returns how many they are."""
        bits, group_bits = bits_of(groups), self.group_bits
        for seq in chain(rows.short[0], rows.passages[0]):
            group_bits[seq] |= bits
        self._rows.append((bits, rows))
        return len(rows.short[0]) + len(rows.passages[0])

    def passages_of(self, seqs: Sequence[int]) -> dict[int, Passages]:
        """The passages of long values of some records that rows were seen of, by record."""
        passages = self._passages
        if new := {seq for seq in seqs if seq not in passages}:
            passages |= ((seq, defaultdict(partial(defaultdict, int))) for seq in new)
            for bits, rows in self._rows:
                for seq, ordinal, start in zip(*rows.passages):
                    if seq in new:
                        passages[seq][ordinal][start] |= bits
        return {seq: passages[seq] for seq in seqs}

    def ordered(self, ranker: Ranker, covered: Coverage, most: int) -> list[int]:
        """At least the first `most`, rarest words first, then the newer ones.

        The first of them are ordered by their expected scores, those that tie with the last of
        these too. Of many ties, these are the ones with a word in the title or a short value.
        """
        by_bits, alike = defaultdict[int, list[int]](list), defaultdict[float, list[int]](list)
        for seq, bits in self.group_bits.items():
            by_bits[bits].append(seq)
        for bits, seqs in by_bits.items():
            alike[self._worth_of(bits, ranker.groups)] += seqs
        order, first = list[int](), 0
        for value in sorted(alike, reverse=True):
            if len(order) >= max(most, ESTIMATED):
                break
            tied = sorted(alike[value], reverse=True)
            if first < ESTIMATED:
                if len(tied) > TIES_ESTIMATED:
                    tied = self._titled_and_short_first(tied, covered)
                first = len(order) + min(len(tied), TIES_ESTIMATED)
            order += tied
        if len(order) > BUDGETS.candidates_ranked:
            scores = self._expected_scores(order[:first], ranker, covered)
            order[:first] = sorted(order[:first], key=scores.__getitem__, reverse=True)
        return order

    def _titled_and_short_first(self, seqs: Sequence[int], covered: Coverage) -> list[int]:
        """Records with a row of their title first, then those with a row of another short value."""
        titles, titled, short = set(covered.scope("primary-title").fields), set[int](), set[int]()
        for _, rows in self._rows:
            short.update(rows.short[0])
            titled.update([seq for seq, ordinal in zip(*rows.short) if ordinal in titles])
        return sorted(seqs, key=lambda seq: (seq not in titled, seq not in short))

    def _expected_scores(
        self, seqs: Sequence[int], ranker: Ranker, covered: Coverage
    ) -> dict[int, float]:
        """The scores of records if each word occurs once in every value with a row of it."""
        worths, scores = dict[GroupLocations, tuple[float, float, float]](), dict[int, float]()
        lengths_later = self._lengths(seqs, ranker, covered)
        locations_later = self._locations(seqs, ranker, covered)
        lengths = lengths_later.get()
        for seq, locations in locations_later.get():
            if locations not in worths:
                worths[locations] = self._worths(locations, ranker.groups)
            body, title, both = worths[locations]
            damp = ranker.damp(lengths[seq])
            # As `Ranker` weighs words that occur so often.
            scores[seq] = (
                body / (1 + damp)
                + title * TITLE_WEIGHT / (TITLE_WEIGHT + damp)
                + both * (TITLE_WEIGHT + 1) / (TITLE_WEIGHT + 1 + damp)
            )
        return scores

    def _lengths(
        self, seqs: Sequence[int], ranker: Ranker, covered: Coverage
    ) -> Later[dict[int, int]]:
        """The words of records, without titles and the like if there are other fields."""
        field_of = dict[int, int]()
        for _, rows in self._rows:
            for records, ordinals, *_ in (rows.short, rows.passages):
                field_of.update(zip(records, ordinals))
        values = [
            (seq, ordinal)
            for seq in seqs
            if seq in field_of
            for ordinal in covered.fields[field_of[seq]].stream.long
        ]

        def summed(sizes: Iterable[Size]) -> dict[int, int]:
            lengths = dict.fromkeys(seqs, 0)
            for seq, count, words in sizes:
                lengths[seq] += ranker.length_of(count) if count else words
            return lengths

        return self.snapshot.sizes(values).then(summed)

    def _locations(
        self, seqs: Sequence[int], ranker: Ranker, covered: Coverage
    ) -> Later[list[tuple[int, GroupLocations]]]:
        """Where the groups of each record are, as far as rows and short texts tell."""
        titled, short, free = (dict.fromkeys(seqs, 0) for _ in range(3))
        fields, passages = covered.fields, self.passages_of(seqs)

        def note(seq: int, ordinal: int, bits: int) -> None:
            field_bits = titled if fields[ordinal].is_title else short
            field_bits[seq] |= bits
            if fields[ordinal].everywhere:
                free[seq] |= bits

        for bits, rows in self._rows:
            for seq, ordinal in zip(*rows.short):
                if seq in titled:
                    note(seq, ordinal, bits)
        repeated = [seq for seq in seqs if titled[seq] & self.in_titles]

        def locations(texts: Iterable[ValueText]) -> list[tuple[int, GroupLocations]]:
            located = list[tuple[int, GroupLocations]]()
            # Long values are not read: they come without their text.
            for seq, ordinal, _, text in texts:
                note(seq, ordinal, bits_of(ranker.places(text, self.in_titles)))
            for seq in seqs:
                places = frozenset(chain(*(starts.values() for starts in passages[seq].values())))
                bits = self.group_bits[seq], titled[seq], short[seq], free[seq]
                located.append((seq, (*bits, places)))
            return located

        return (self.snapshot.texts(covered.untitled, repeated) if repeated else ready([])).then(
            locations
        )

    def _worths(
        self, locations: GroupLocations, groups: Sequence[Group]
    ) -> tuple[float, float, float]:
        """The summed idf of the words outside the title, in it alone, and in both.

        Each is multiplied by the summed idf of the best place. A place is a passage, or all
        other short fields together; fields whose words are near every place belong to each.
        """
        record_bits, titled, short, free, places = locations
        apart = reduce(or_, places, 0)
        unseen = record_bits & ~(titled | short | apart)  # in a value without a row
        outside = short | unseen | apart
        near = max(self._worth_of(bits | unseen | free, groups) for bits in places | {short})
        body, title, both = (
            near * self._worth_of(bits, groups)
            for bits in (outside & ~titled, titled & ~outside, titled & outside)
        )
        return body, title, both

    def starts(self, places: dict[int, int], groups: Sequence[Group], most: int) -> list[int]:
        """Where passages of a long value start that hold the rarest groups, as far as rows tell.

        After the best few, only those that hold a group which the ones before do not.
        """
        if len(places) <= BEST_PASSAGES:
            return sorted(places)[:most]
        chosen, covered = list[int](), 0
        by_worth = sorted((-self._worth_of(bits, groups), at, bits) for at, bits in places.items())
        for _, start, bits in by_worth:
            if len(chosen) < BEST_PASSAGES or bits & ~covered:
                chosen.append(start)
                covered |= bits
        return chosen[:most]

    def is_apart(self, places: dict[int, int]) -> bool:
        """Whether none of the passages of a long value that rows were seen of can hold all."""
        complete_groups = self.complete_groups
        return complete_groups > 0 and not any(
            complete_groups & ~bits == 0 for bits in places.values()
        )

    def saw_all(self, groups: Sequence[Group]) -> bool:
        """Whether every row was seen that holds a group."""
        occurring = bits_of(number for number, group in enumerate(groups) if group.count)
        return not occurring & ~self.complete_groups

    def possible(self, seq: int) -> int:
        """The groups that a record may hold, as bits."""
        return ~self.complete_groups | self.group_bits[seq] if seq in self.group_bits else -1

    def _worth_of(self, bits: int, groups: Sequence[Group]) -> float:
        """The summed idf of the groups in a bit mask."""
        if bits not in self._worth:
            idfs = (group.idf for number, group in enumerate(groups) if bits >> number & 1)
            self._worth[bits] = sum(idfs)
        return self._worth[bits]

    def add_records(self, seqs: Iterable[int]) -> None:
        """Notes records of which nothing is known to be held."""
        for seq in seqs:
            self.group_bits.setdefault(seq, 0)

    def see(self, scope: Scope, groups: Mapping[int, Group]) -> None:
        """Notes which groups the records hold, by all rows of theirs."""
        seqs = list(self.group_bits)
        holding = [self.snapshot.holding(scope, group.spellings, seqs) for group in groups.values()]
        for number, rows in zip(groups, holding):
            self.add(rows.get(), [number])
            self.complete_groups |= 1 << number

    def keep(self, seqs: Iterable[int]) -> None:
        """Leaves out every record but these."""
        remaining = set(seqs)
        for seq in self.group_bits.keys() - remaining:
            del self.group_bits[seq]


def bits_of(groups: Iterable[int]) -> int:
    """Numbers of groups as bits."""
    return sum(1 << number for number in groups)


def of_words(
    snapshot: Snapshot, scope: Scope, titles: Scope, groups: Sequence[Group], records: int = 0
) -> Candidates:
    """Records that hold at least one group.

    `titles` is the part of the scope that has titles, `records` how many the scope has, if known.
    """
    words = _Words(snapshot, scope, groups, records)
    words.select(words.promise)
    words.common = words.select(words.add)
    if words.common:
        words.candidates.complete = False
        if len(words.candidates.group_bits) < BUDGETS.candidates_ranked:
            words.add_titled_and_newest(titles)
    return words.candidates


class _Words:
    """Selects records by groups; `common` are the numbers of those too common to do so alone."""

    def __init__(
        self, snapshot: Snapshot, scope: Scope, groups: Sequence[Group], records: int
    ) -> None:
        self.candidates, self.common = Candidates(snapshot), list[int]()
        self._snapshot, self._scope, self._groups = snapshot, scope, groups
        self._records = records
        self._promises: dict[tuple[int, ...], Later[Rows]] = {}

    def _rows(self, numbers: Sequence[int], scope: Scope | None = None) -> Later[Rows]:
        """Rows that hold all of some groups."""
        terms = [self._groups[number].spellings for number in numbers]
        return self._snapshot.rows(scope or self._scope, terms, BUDGETS.candidate_rows)

    def _newest(self, numbers: Sequence[int]) -> Later[Rows]:
        """The newest of them."""
        terms = [self._groups[number].spellings for number in numbers]
        return self._snapshot.rows(self._scope, terms, BUDGETS.candidates_newest, newest=True)

    def select(self, use: Callable[[tuple[int, ...], int], int]) -> list[int]:
        """Selects by each group as long as there is room, the rarest first, then by pairs.

        The pairs are of groups too common to select alone, which it returns, if there is room for
        them should words be independent. `use` takes groups that select together and the room, and
        returns how many rows of them fill it.
        """
        groups, room, common = self._groups, BUDGETS.candidate_rows, list[int]()
        numbers = (number for number, group in enumerate(groups) if group.count)
        for number in sorted(numbers, key=lambda number: groups[number].count):
            if groups[number].count > room:
                common.append(number)
            else:
                room -= use((number,), room)
        room = BUDGETS.candidate_rows
        for pair in combinations(common[:PAIRED_MAX], 2):
            first_count, second_count = (groups[number].count for number in pair)
            if room <= 0:
                break
            if not self._records or first_count * second_count <= room * self._records:
                room -= use(pair, room)
        return common

    def promise(self, numbers: tuple[int, ...], room: int) -> int:
        """Promises the rows of some groups; returns how many of them to expect."""
        self._promises[numbers] = self._rows(numbers)
        first, *second = (self._groups[number].count for number in numbers)
        if not second:
            return first
        expected_rows = first * second[0] // max(1, self._records)
        return expected_rows if expected_rows < room else 0

    def add(self, numbers: tuple[int, ...], room: int) -> int:
        """Adds the records of some groups, of a pair only if there is room for all of them."""
        promise, candidates = self._promises.get(numbers), self.candidates
        rows = (promise or self._rows(numbers)).get()
        if len(numbers) == 1:
            if rows.cut:
                candidates.complete = False
            else:
                candidates.complete_groups |= 1 << numbers[0]
        elif max(len(rows.short[0]), len(rows.passages[0])) >= room:
            return 0
        return candidates.add(rows, numbers)

    def add_titled_and_newest(self, titles: Scope) -> None:
        """Adds records with a common word in the title.

        Then the newest records with the two rarest common words, and with any of them.
        """
        pair = [self.common[:2]] if len(self.common) > 1 else []
        newest_groups = [*pair, *([number] for number in self.common)]
        titled = [self._rows([number], titles) for number in self.common]
        newest_rows = [self._newest(numbers) for numbers in newest_groups]
        for number, rows in zip(self.common, titled):
            self.candidates.add(rows.get(), [number])
        for numbers, rows in zip(newest_groups, newest_rows):
            self.candidates.add(rows.get(), numbers)
        self.candidates.in_titles = bits_of(self.common)
