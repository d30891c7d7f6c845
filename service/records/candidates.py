"""Stage 1 of search: which records may answer a question best, without reading one of them.

The rare words select, each by itself, as long as they bring few enough rows. Words that are too
common for that select in pairs, and a word that even so is too common selects the newest records.
Records are ordered by how rare the words are that they are known to hold.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

from evidence.limits import BUDGETS
from evidence.question import Required
from evidence.ranking import Group
from service.records.engine import Rows, Scope, Snapshot

#: Words that may select in pairs, the rarest of those that are too common to do so alone.
PAIRED_MAX: Final = 5


@dataclass(slots=True)
class Candidates:
    """Records in the order of what they are known to hold; `held` are numbers of groups.

    `complete` says whether every record that holds one of the groups is among them.
    """

    snapshot: Snapshot
    held: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    ahead: set[int] = field(default_factory=set)
    passages: dict[int, dict[tuple[int, int], set[int]]] = field(default_factory=dict)
    complete: bool = True

    def add(self, rows: Rows, groups: Sequence[int]) -> set[int]:
        """Notes what rows hold; returns their records."""
        seqs = self.snapshot.records_of(rows.short)
        for seq in seqs:
            self.held[seq].update(groups)
        for seq, ordinal, start in rows.passages:
            self.held[seq].update(groups)
            self.passages.setdefault(seq, {}).setdefault((ordinal, start), set()).update(groups)
        return {*seqs, *(seq for seq, _, _ in rows.passages)}

    def ordered(self, groups: Sequence[Group], fields: Sequence[int]) -> list[int]:
        """Rarest words first.

        Ties at the border of a block go to the records in `ahead`, then to the shorter texts of
        some fields, then to the newer records.
        """
        worth = {seq: sum(groups[number].idf for number in held) for seq, held in self.held.items()}
        found = sorted(worth, key=lambda seq: (-worth[seq], -seq))
        border = BUDGETS.candidates_ranked
        if border < len(found) and worth[found[border - 1]] == worth[found[border]]:
            tied = [seq for seq in found if worth[seq] == worth[found[border]]]
            words, ahead = self.snapshot.lengths(fields, tied), self.ahead
            found.sort(key=lambda seq: (-worth[seq], seq not in ahead, words.get(seq, 0), -seq))
        return found

    def starts(self, seq: int, ordinal: int, groups: Sequence[Group], most: int) -> list[int]:
        """Where passages of a long value start that hold the rarest groups, as far as rows tell."""
        known = [
            (-sum(groups[number].idf for number in held), start)
            for (field, start), held in self.passages.get(seq, {}).items()
            if field == ordinal
        ]
        return [start for _, start in sorted(known)[:most]]

    def add_records(self, seqs: Iterable[int]) -> None:
        """Notes records of which nothing is known to be held."""
        for seq in seqs:
            self.held[seq].update(())

    def keep_wanted(
        self, snapshot: Snapshot, scope: Scope, wanted: Sequence[Group], *, every: bool
    ) -> None:
        """Notes which wanted groups the records hold, and leaves out those that hold none.

        With `every`, leaves out those that do not hold all.
        """
        holding = [snapshot.holding(scope, group.spellings, self.held) for group in wanted]
        for number, seqs in enumerate(holding):
            for seq in seqs:
                self.held[seq].add(number)
        self.keep(set.intersection(*holding) if every else set.union(*holding))

    def keep(self, seqs: Iterable[int]) -> None:
        """Leaves out every record but these."""
        kept = set(seqs)
        for seq in self.held.keys() - kept:
            del self.held[seq]


def of_words(
    snapshot: Snapshot, scope: Scope, titles: Scope, groups: Sequence[Group]
) -> Candidates:
    """Records that hold at least one group; `titles` is the part of the scope that has titles."""
    found = Candidates(snapshot)
    numbers = sorted(
        (n for n, one in enumerate(groups) if one.count), key=lambda n: groups[n].count
    )
    room, common = BUDGETS.candidate_rows, list[int]()
    for number in numbers:
        group = groups[number]
        if group.count > room:
            common.append(number)
            continue
        rows = snapshot.rows(scope, [group.spellings], BUDGETS.candidate_rows)
        found.add(rows, [number])
        found.complete &= not rows.cut
        room -= rows.number
    if common:
        found.complete = False
        _add_pairs(snapshot, scope, groups, common, found)
        if len(found.held) < BUDGETS.candidates_ranked:
            _add_titled(snapshot, scope, titles, groups, common, found)
        if len(found.held) < BUDGETS.candidates_ranked:
            _add_newest(snapshot, scope, groups, common, found)
    return found


def _add_pairs(
    snapshot: Snapshot, scope: Scope, groups: Sequence[Group], common: list[int], found: Candidates
) -> None:
    """Adds the records that hold two words together that are too common alone."""
    cap = BUDGETS.candidate_rows
    for pair in combinations(common[:PAIRED_MAX], 2):
        alternative = [groups[number].spellings for number in pair]
        rows = snapshot.rows(scope, alternative, cap)
        if not rows.cut:
            found.add(rows, pair)


def _add_titled(
    snapshot: Snapshot,
    scope: Scope,
    titles: Scope,
    groups: Sequence[Group],
    common: list[int],
    found: Candidates,
) -> None:
    """Adds the records with a common word in the title; those that repeat it elsewhere lead."""
    others = replace(scope, fields=tuple(sorted({*scope.fields} - {*titles.fields})))
    for number in common:
        spellings = groups[number].spellings
        seqs = found.add(snapshot.rows(titles, [spellings], BUDGETS.candidate_rows), [number])
        found.ahead |= snapshot.holding(others, spellings, seqs)


def _add_newest(
    snapshot: Snapshot, scope: Scope, groups: Sequence[Group], common: list[int], found: Candidates
) -> None:
    """Adds the newest records that hold a common word."""
    for number in common:
        spellings = [groups[number].spellings]
        rows = snapshot.rows(scope, spellings, BUDGETS.candidates_newest, newest=True)
        found.add(rows, [number])


def of_required(
    snapshot: Snapshot, scope_of: Callable[[str | None], Scope], required: Sequence[Required]
) -> Candidates:
    """Records that hold every required part and no excluded one; `scope_of` a role its fields."""
    found = Candidates(snapshot)
    kept = [part for part in required if not part.term.excluded]
    first: set[int] | None = None
    for number, part in enumerate(kept):
        rows = snapshot.rows(scope_of(part.role), [[part.term]], BUDGETS.required_rows, newest=True)
        found.complete &= not rows.cut
        seqs = found.add(rows, [])
        first = seqs if first is None else first & seqs
    found.keep(first or ())
    found.keep(meeting(snapshot, scope_of, required, found.held))
    return found


def meeting(
    snapshot: Snapshot,
    scope_of: Callable[[str | None], Scope],
    required: Sequence[Required],
    seqs: Iterable[int],
) -> set[int]:
    """Those of some records that hold every required part and no excluded one."""
    left = set(seqs)
    for part in required:
        if not left:
            break
        term = replace(part.term, excluded=False)
        there = snapshot.holding(scope_of(part.role), [term], left)
        left = left - there if part.term.excluded else left & there
    return left


def holding_all(
    snapshot: Snapshot, scope: Scope, groups: Sequence[Group], seqs: Iterable[int]
) -> set[int]:
    """Those of some records that hold every group."""
    left = set(seqs)
    for group in sorted(groups, key=lambda one: one.count):
        if not left:
            break
        left &= snapshot.holding(scope, group.spellings, left)
    return left
