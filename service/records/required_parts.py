"""Records with the required parts of a question and without the excluded ones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from evidence.limits import BUDGETS
from evidence.question import Required
from evidence.ranking import Group
from service.records.candidates import Candidates
from service.records.engine import Scope, Snapshot


def with_required(
    snapshot: Snapshot,
    scope_of: Callable[[str | None], Scope],
    required: Sequence[Required],
    first_group: int,
) -> Candidates:
    """Records that hold every required part and no excluded one; `scope_of` a role its fields.

    Parts that are not excluded are groups, numbered from `first_group`.
    """
    found = Candidates(snapshot)
    kept = [part for part in required if not part.term.excluded]
    first: set[int] | None = None
    for number, part in enumerate(kept, start=first_group):
        rows = snapshot.rows(scope_of(part.role), [[part.term]], BUDGETS.required_rows, newest=True)
        found.complete &= not rows.cut
        found.add(rows, [number])
        seqs = rows.records
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
