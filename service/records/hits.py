"""A ranked record as a hit: what it is, and the passages that earned its rank."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from evidence import pointer
from evidence.fold import fold
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.hits import Hit, Match
from evidence.model import Continuation, Source
from evidence.find import RECORD_PASSAGE_CHARS, Passage, passages
from evidence.proven import spelling
from evidence.query import needle
from evidence.ranking import Group, Ranker
from evidence.text import beginning, excerpt, mark
from evidence import routes
from service.records import lists
from service.records.blocks import Ranked
from service.records.engine import Snapshot
from service.records.hit_reads import Reads, Window
from service.records.texts import text_of

#: A further window of a hit adds at least this share of the worth of its first one.
WORTH_ADDED: Final = 0.75
#: Characters that a window shows beside the passage it proves, if there is room for them.
BESIDE_CHARS: Final = 40


def hit_of(snapshot: Snapshot, ranker: Ranker, one: Ranked, rank: int, reads: Reads) -> Hit:
    """The hit of a ranked record, which is number `rank` of its question."""
    stream, record = one.stream, one.record
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    size = BUDGETS.first_window_chars if rank == 1 else BUDGETS.later_window_chars
    windows = _windows(snapshot, ranker.groups, one, size)
    held = [ranker.groups[number] for number in sorted(one.score.held)]
    missing = [group for n, group in enumerate(ranker.groups) if n not in one.score.held]
    id = str(ref)
    return Hit(
        ref=ref,
        id=id,
        title=lists.title_of(stream, record) or None,
        authored_at=lists.time_of(stream, record, stream.granted),
        emitted_at=record.emitted_at(stream.granted),
        source=source_of(stream.connection_id, stream.connector_key, stream.display_name),
        url=f"{routes.record(stream.name, record.record_key)}"
        f"?connection_id={routes.name(stream.connection_id)}",
        matched_fields=list(dict.fromkeys(window.field for window in windows)),
        matches=[
            _match(window, reads.of(id, one, window, walks=rank <= CONTRACT.full_hits))
            for window in _shown(windows, ranker.groups, stream.title_field)
        ],
        rank=rank,
        coverage=round(ranker.coverage(one.score.held), 2),
        matched_words=[spelling(group.word) for group in held],
        missing_words=[spelling(group.word) for group in missing],
        forms=dict(_forms(held, windows)),
    )


def _windows(snapshot: Snapshot, groups: Sequence[Group], one: Ranked, size: int) -> list[Window]:
    """The passages of a record, best first: rarest words, then the shorter, then field order.

    The best one has `size` characters if its passage needs no more, the others have fewer.
    """
    found = [
        (name, base, text, total, passage)
        for name in one.stream.searchable.values()
        for base, text, total in _texts(snapshot, one, name)
        for passage in passages(
            text,
            groups,
            limit=CONTRACT.windows_per_hit,
            most=RECORD_PASSAGE_CHARS,
            among=one.score.held,
        )
    ]
    found.sort(key=lambda each: (-each[4].worth, each[4].span.end - each[4].span.start))
    chosen: list[Window] = []
    for each in found:
        window = _window(*each, size=BUDGETS.later_window_chars if chosen else size)
        if not any(_overlap(window, other) for other in chosen):
            chosen.append(window)
    return chosen


def _shown(
    windows: Sequence[Window], groups: Sequence[Group], title: str | None
) -> Sequence[Window]:
    """The windows that a hit shows: not the title again, and none of little worth.

    A further one is as good as the first, or proves words that those before it do not.
    """
    beside = [window for window in windows if window.field != title] or list(windows)
    shown, proven = beside[:1], beside[0].held if beside else frozenset[int]()
    for one in beside[1:]:
        best = beside[0].worth
        added = sum(groups[number].idf for number in one.held - proven)
        if one.worth >= best or added >= WORTH_ADDED * best:
            shown.append(one)
            proven |= one.held
    return shown[: CONTRACT.windows_per_hit]


def _texts(snapshot: Snapshot, one: Ranked, name: str) -> Iterator[tuple[int, str, int]]:
    """(offset, text, length of the field) of what is looked at of a field."""
    if name not in one.passages:
        if value := pointer.searched_text(pointer.find(one.record.data, name)):
            yield 0, value, len(value)
        return
    text = text_of(snapshot, one.record, name, None)
    for start in one.passages[name]:
        yield start, text.read(start, start + CONTRACT.passage_chars), text.total


def _overlap(one: Window, other: Window) -> bool:
    return one.field == other.field and one.start < other.end and other.start < one.end


def _window(name: str, base: int, text: str, total: int, passage: Passage, *, size: int) -> Window:
    """The window of a passage. A field of at most `excerpt_chars` is shown whole."""
    span = passage.span
    size = max(size, span.end - span.start + BESIDE_CHARS)
    if total <= BUDGETS.excerpt_chars or size > BUDGETS.excerpt_chars:
        size = BUDGETS.excerpt_chars
    start, end = excerpt(text, span, size=size)
    shown, _ = mark(text, start=start, end=end, marks=span.marks)
    return Window(
        name,
        shown,
        base + start,
        base + end,
        total,
        base + span.start,
        base + span.end,
        base + beginning(text, span.start - CONTRACT.match_before_chars),
        passage.worth,
        passage.held,
    )


def _match(window: Window, read: Continuation) -> Match:
    return Match(
        field_path=window.field,
        shown=window.shown,
        start=window.start,
        end=window.end,
        total=window.total,
        match_start=window.match_start,
        match_end=window.match_end,
        complete=window.whole,
        read=read,
    )


def _forms(held: Sequence[Group], windows: Sequence[Window]) -> Iterator[tuple[str, str]]:
    """(word of the question, word of the text) of words that stand there in another form only."""
    folded = [f" {fold(window.shown)} " for window in windows]
    for group in held:
        if not group.forms or any(needle(group.word)[0] in text for text in folded):
            continue
        for form in group.forms:
            if any(needle(form)[0] in text for text in folded):
                yield spelling(group.word), " ".join(form.words)
                break


@lru_cache(maxsize=1024)
def source_of(connection_id: str, connector_key: str, display_name: str | None) -> Source:
    """The source of a connection's records, one value for all of them."""
    return Source(connection_id, connector_key, display_name or None)
