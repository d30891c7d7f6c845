"""Finds records that have the required parts of a question and none of the excluded ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.question import Question, Required, holds
from evidence.ranking import Group, idf
from service.records.search.candidates import Candidates
from service.records.engine import Rows, Scope, Snapshot
from service.records.engine.later import Later, ready
from service.records.view.granted_words import NewestTexts, Vocabulary
from service.records.view import View
from service.records.search.words import groups_of

#: Prefixes of a refused question that its error names.
PREFIXES_MAX: Final = 8


class RequiredParts:
    """The required parts of a question in what a search covers; `scope_of` gives a role its fields.

    Their records are counted in the whole grant, of which `whole` is the same.
    A prefix of too many words is looked for in the newest rows alone. Several that have too many
    words together are refused.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        vocabulary: Vocabulary,
        scope_of: Callable[[str | None], Scope],
        whole: Callable[[str | None], Scope],
        required: Sequence[Required],
    ) -> None:
        self._snapshot, self._vocabulary, self._scope_of = snapshot, vocabulary, scope_of
        self._whole = whole
        self._excluded = [part for part in required if part.term.excluded]
        self.sought = [part for part in required if not part.term.excluded]
        self._rows: dict[tuple[Required, Scope], Later[Rows]] = {}
        self._broad = set[Required]()
        prefixes = [part for part in required if part.term.prefix]
        asked = [(part.term.words[-1], scope_of(part.role)) for part in prefixes]
        words, counts = 0, [vocabulary.most_beginning(*ask) for ask in asked]
        if sum(count.get() for count in counts) > BUDGETS.prefix_words_read:
            for part, ask in zip(prefixes, asked):
                beginning = vocabulary.beginning(*ask)
                words += beginning
                if beginning > BUDGETS.prefix_words_read:
                    self._broad.add(part)
                if words > BUDGETS.prefix_words_read and len(prefixes) > 1:
                    raise _too_broad([prefix.term.typed for prefix in prefixes])

    def groups(self) -> Iterator[Group]:
        """The sought parts as groups, so that they are ranked and marked like words."""
        rows = [self._rows_of(part, self._whole) for part in self.sought]
        records, _ = self._vocabulary.size.get()
        for part, promise in zip(self.sought, rows):
            count = len(promise.get().records)
            yield Group(part.term, (), False, count, idf(max(records, count), count))

    def candidates(self, scope: Scope, groups: Sequence[Group]) -> Candidates:
        """Records that meet all parts, with all rows of theirs that hold one of the groups.

        The last groups are the sought parts. Of a prefix of too many words the newest rows do.
        """
        candidates, remaining = Candidates(self._snapshot), dict(enumerate(groups))
        records, promises = list[set[int]](), [
            self._rows_of(part, self._scope_of) for part in self.sought
        ]
        first = len(groups) - len(self.sought)
        for number, (part, promise) in enumerate(zip(self.sought, promises), start=first):
            rows = promise.get()
            candidates.complete &= not rows.cut
            records.append(rows.records)
            if part in self._broad:
                candidates.add(rows, [number])
                del remaining[number]
        matching = self._without(set.intersection(*records))
        candidates.add_records(matching)
        candidates.keep(matching)
        candidates.see(scope, remaining)
        return candidates

    def meeting(self, seqs: Iterable[int]) -> set[int]:
        """Those of some records that meet all parts."""
        remaining = set(seqs)
        for part in self.sought:
            remaining = self._holding(part, remaining) if remaining else remaining
        return self._without(remaining)

    def _without(self, seqs: set[int]) -> set[int]:
        """Those of some records that hold no excluded part."""
        for part in self._excluded:
            seqs = seqs - self._holding(part, seqs) if seqs else seqs
        return seqs

    def _rows_of(self, part: Required, scope_of: Callable[[str | None], Scope]) -> Later[Rows]:
        """The newest rows that hold a part."""
        scope = scope_of(part.role)
        if (part, scope) not in self._rows:
            self._rows[part, scope] = (
                ready(NewestTexts(self._snapshot, scope).holding(part.term))
                if part in self._broad
                else self._snapshot.rows(scope, [[part.term]], BUDGETS.required_rows, newest=True)
            )
        return self._rows[part, scope]

    def _holding(self, part: Required, seqs: set[int]) -> set[int]:
        """Those of some records that hold a part, excluded or not."""
        snapshot, scope = self._snapshot, self._scope_of(part.role)
        term = replace(part.term, excluded=False)
        if part not in self._broad:
            return snapshot.holding(scope, [term], seqs).get().records
        texts = snapshot.texts(scope.fields, sorted(seqs)).get()
        holding = {seq for seq, _, _, text in texts if holds(text, term)}
        long = [(seq, n, 0) for seq, n, passages, _ in texts if passages and seq not in holding]
        begun = snapshot.passages(long).get().items()
        holding |= {key[0] for key, text in begun if holds(text, term)}
        undecided = {seq for seq, *_ in long} - holding
        return holding | (
            snapshot.holding(scope, [term], undecided).get().records if undecided else set()
        )


def _too_broad(prefixes: Sequence[str]) -> InvalidRequest:
    names = ", ".join(prefixes[:PREFIXES_MAX])
    most = BUDGETS.prefix_words_read
    longest = max(prefixes, key=len)
    return InvalidRequest(
        f"Together, the prefixes {names} match more than {most} words in the records. Use longer "
        "prefixes or whole words, narrow the search with streams or connection_id, or search for "
        f"one prefix: query={longest!r}.",
        code="query_too_broad",
        param="query",
    )


def groups_to_read(snapshot: Snapshot, view: View, question: Question) -> list[Group]:
    """The words and phrases of a question, each with its matching terms of the grant."""
    vocabulary = view.vocabulary(snapshot)
    phrases = [part for part in question.required if not part.term.prefix]
    scope_of = view.covered.scope
    parts = RequiredParts(snapshot, vocabulary, scope_of, scope_of, phrases)
    return [*groups_of(question, vocabulary, strict=False), *parts.groups()]


def holding_all(
    snapshot: Snapshot, scope: Scope, groups: Sequence[Group], seqs: Iterable[int]
) -> set[int]:
    """Those of some records that hold every group."""
    remaining, by_count = set(seqs), sorted(groups, key=lambda group: group.count)
    for some in (by_count[:1], by_count[1:]):  # the rarest leaves few records for the others
        if remaining:
            rows = [snapshot.holding(scope, group.spellings, remaining) for group in some]
            for promise in rows:
                if remaining:  # in place: a near engine looks only at those that remain
                    remaining &= promise.get().records
    return remaining
