"""A ranked record as a hit: what it is, and the passages that earned its rank."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from evidence import pointer
from evidence.fold import fold
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.hits import Hit, Match
from evidence.model import Source, window_read
from evidence.passages import Passage, passages
from evidence.query import needle
from evidence.ranking import Group, Ranker
from evidence.text import beginning, excerpt, mark
from evidence import routes
from service.records import lists
from service.records.blocks import Ranked
from service.records.engine import Snapshot
from service.records.texts import text_of

#: A further window of a hit is worth at least this share of its first one.
WORTH_SHOWN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Window:
    """A passage of one field with the text around it; offsets are code points of the field.

    `read_from` is where a read of it begins, 0 in a field that one read shows whole.
    """

    field: str
    shown: str
    start: int
    end: int
    total: int
    match_start: int
    match_end: int
    read_from: int
    worth: float

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end >= self.total


def hit_of(snapshot: Snapshot, ranker: Ranker, one: Ranked, rank: int) -> Hit:
    """The hit of a ranked record, which is number `rank` of its question."""
    stream, record = one.stream, one.record
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    windows = _windows(snapshot, ranker.groups, one)
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
        matches=[_match(id, window) for window in _shown(windows, stream.title_field)],
        rank=rank,
        coverage=round(ranker.coverage(one.score.held), 2),
        matched_words=[group.word.typed for group in held],
        missing_words=[group.word.typed for group in missing],
        forms=dict(_forms(held, windows)),
    )


def _windows(snapshot: Snapshot, groups: Sequence[Group], one: Ranked) -> list[Window]:
    """The passages of a record, best first: rarest words, then the shorter, then field order."""
    found: list[tuple[float, int, Window]] = []
    for name in one.stream.searchable.values():
        for base, text, total in _texts(snapshot, one, name):
            for passage in passages(text, groups, limit=CONTRACT.windows_per_hit):
                window = _window(name, text, base, total, passage)
                found.append((-passage.worth, window.match_end - window.match_start, window))
    found.sort(key=lambda each: each[:2])
    chosen: list[Window] = []
    for _, _, window in found:
        if not any(_overlap(window, other) for other in chosen):
            chosen.append(window)
    return chosen


def _shown(windows: Sequence[Window], title: str | None) -> Sequence[Window]:
    """The windows that a hit shows: not the title again, and none of little worth."""
    beside = [window for window in windows if window.field != title] or list(windows)
    worth = [one for one in beside if one.worth >= WORTH_SHOWN * beside[0].worth]
    return worth[: CONTRACT.windows_per_hit]


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


def _window(name: str, text: str, base: int, total: int, passage: Passage) -> Window:
    span = passage.span
    start, end = excerpt(text, span, size=BUDGETS.excerpt_chars)
    shown, _ = mark(text, start=start, end=end, marks=span.marks)
    read_from = 0
    if total > CONTRACT.window_chars:
        read_from = base + beginning(text, span.start - CONTRACT.match_before_chars)
    return Window(
        name,
        shown,
        base + start,
        base + end,
        total,
        base + span.start,
        base + span.end,
        read_from,
        passage.worth,
    )


def _match(id: str, window: Window) -> Match:
    path = window.field
    at = {"offset_chars": window.read_from} if window.read_from else {}
    return Match(
        field_path=path,
        shown=window.shown,
        start=window.start,
        end=window.end,
        total=window.total,
        match_start=window.match_start,
        match_end=window.match_end,
        complete=window.whole,
        read=window_read(id, path, at),
    )


def _forms(held: Sequence[Group], windows: Sequence[Window]) -> Iterator[tuple[str, str]]:
    """(word of the question, word of the text) of words that stand there in another form only."""
    folded = [f" {fold(window.shown)} " for window in windows]
    for group in held:
        if not group.forms or any(needle(group.word)[0] in text for text in folded):
            continue
        for form in group.forms:
            if any(needle(form)[0] in text for text in folded):
                yield group.word.typed, " ".join(form.words)
                break


@lru_cache(maxsize=1024)
def source_of(connection_id: str, connector_key: str, display_name: str | None) -> Source:
    """The source of a connection's records, one value for all of them."""
    return Source(connection_id, connector_key, display_name or None)
