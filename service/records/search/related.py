"""Related hits: records that contain no word of the question but are close to it in meaning.

Nothing is proven in them. They are found by vectors of the fields that the grant shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evidence.hits import Hit, Related
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import window_read
from evidence.page_order import Standard, with_neighbours
from evidence.ranking import Group
from evidence.work import Deadline
from service.records.engine import Scope, Snapshot, Spellings, Stored
from service.records.engine.later import all_of
from service.records.engine.vectors import VectorRow
from service.records.search.blocks import DIGITS
from service.records.search.candidates import Candidates
from service.records.search.hits import identified
from service.records.search.ordering import Places, RelatedRecord
from service.records.view.streams import StreamView
from service.records.view.coverage import Coverage
from service.records.view.texts import text_of

if TYPE_CHECKING:
    from service.records.search.nearest import Nearness

#: The nearest records without a word whose neighbours are looked at, and records whose words are
#: looked up together.
NEAREST, LOOKED_UP = 50, 200


def find(
    nearness: "Nearness",
    candidates: Candidates,
    groups: Sequence[Group],
    covered: Coverage,
    standard: Standard,
    *,
    seen: bool,
) -> tuple[list[RelatedRecord], int | None]:
    """(records without a word of the question, best first, None).

    Instead of None the number of vectors that were compared, if time ran out before all were. With
    `seen` the candidates are all records that hold a word.
    """
    snapshot, scope = candidates.snapshot, covered.scope()
    texts, compared = nearness.search(
        covered.meaning_scope, Deadline.after(BUDGETS.related_seconds)
    )
    order = sorted(
        texts.keys() - candidates.group_bits.keys(), key=lambda seq: (-texts[seq].nearness, seq)
    )
    if not seen:
        occurring = [group.spellings for group in groups if group.count]
        order = list(islice(_wordless(snapshot, scope, occurring, order), NEAREST))
    nearest = order[:NEAREST]
    texts |= nearness.of(nearest).get()  # with windows whose codes were not near
    near = snapshot.neighbours(covered.threads, nearest).get()
    others = nearness.of({n for places in near.values() for n in places} - texts.keys()).get()
    nearness_of = {seq: text.nearness for seq, text in (texts | others).items()}
    meaning = with_neighbours(nearness_of, near)
    nearest = [seq for seq in nearest if meaning[seq] > 0]
    nearest.sort(key=lambda seq: (-round(meaning[seq], DIGITS), seq))
    return [RelatedRecord(standard.value(0.0, meaning[seq]), texts[seq].row) for seq in nearest], (
        compared
    )


def _wordless(
    snapshot: Snapshot, scope: Scope, words: Sequence[Spellings], seqs: Sequence[int]
) -> Iterator[int]:
    """Those of the records that hold none of the words, in their order."""
    for first in range(0, len(seqs), LOOKED_UP):
        part = seqs[first : first + LOOKED_UP]
        rows = all_of(snapshot.holding(scope, spellings, part) for spellings in words).get()
        holding = set().union(*(word_rows.records for word_rows in rows))
        yield from (seq for seq in part if seq not in holding)


def places_on(
    values: Sequence[float], records: Sequence[RelatedRecord], limit: int, *, mixed: bool
) -> Places:
    """The places on a page of proven hits with these values and of related records.

    `mixed` puts both in one order; otherwise related ones come last.
    """
    entries = [(-value, 0, number) for number, value in enumerate(values)]
    entries += [(-record.value, 1, number) for number, record in enumerate(records)]
    if mixed:
        entries.sort()
    ranked = list(enumerate(entries[:limit], start=1))
    return Places(
        [rank for rank, (_, is_related, _) in ranked if not is_related],
        {rank: records[number] for rank, (_, is_related, number) in ranked if is_related},
    )


def hits_of(
    candidates: Candidates, covered: Coverage, records: Mapping[int, RelatedRecord]
) -> list[Hit]:
    """Hits of related records, which are given by their ranks."""
    seqs = [record.window.seq for record in records.values()]
    stored = candidates.snapshot.load(seqs).get()
    return [
        _hit(candidates, covered, stored[record.window.seq], record.window, rank)
        for rank, record in records.items()
        if record.window.seq in stored
    ]


def _hit(
    candidates: Candidates, covered: Coverage, record: Stored, window: VectorRow, rank: int
) -> Hit:
    field = covered.fields[window.ordinal]
    stream, path = field.stream, field.name
    hit = identified(stream, record, rank)
    text = text_of(candidates.snapshot, record, path, window.ordinal)
    place = {}
    if text.total > CONTRACT.window_chars:
        place = {"offset_chars": window.start, "limit_chars": window.stop - window.start}
    begins = _beginning(candidates, stream, record) or text.read(0, BUDGETS.begins_chars).get()
    hit.related = Related(path, begins, window_read(hit.id, path, place))
    return hit


def _beginning(candidates: Candidates, stream: StreamView, record: Stored) -> str:
    """The beginning of the primary text; empty if the grant shows none."""
    name = stream.roles.get("primary-text")
    if name is None:
        return ""
    text = text_of(candidates.snapshot, record, name, stream.search_ordinal(name))
    return text.read(0, BUDGETS.begins_chars).get()
