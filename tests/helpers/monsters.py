"""Results that no sane upstream would send, to test that all rendered output is bounded."""

from dataclasses import replace
from typing import Any, Generic, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from evidence.handles import RecordRef
from evidence.hits import Counts, Hit, Match, SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Source, SyncStatus, window_read
from evidence.records import Record, RecordPage
from evidence.text import looks_binary, mark
from evidence.values import BlobRef, Preview, base64_of

Reading = TypeVar("Reading")

monstrous = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # shrinking such results takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

NOON = "2026-04-01T12:00:00Z"
ALPHABETS = (
    "a",
    "ab c.",
    "猫犬",
    "é\u0301ß",
    "👩‍🚀🎉",
    "\x01\u202e",
    "\\u{41}",
    '"\\\n\t',
    "<mark>",
    "{}[]",
)


class Held(Generic[Reading]):
    """A result that hypothesis can print without writing megabytes."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def __repr__(self) -> str:
        return f"a monstrous {type(self.reading).__name__}"


def held(strategy: st.SearchStrategy[Reading]) -> st.SearchStrategy[Held[Reading]]:
    return strategy.map(Held)


@st.composite
def texts(draw: st.DrawFn, *, most: int = 4_000, least: int = 0) -> str:
    """Texts of one kind of character with up to `most` of them; long ones are cheap."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    size = draw(st.integers(least, most))
    return (alphabet * (size // len(alphabet) + 1))[:size]


def names(most_bytes: int) -> st.SearchStrategy[str]:
    """Names that the store would accept: not empty, bounded in bytes."""
    return texts(most=most_bytes, least=1).map(
        lambda text: text.encode()[:most_bytes].decode(errors="ignore") or "x"
    )


@st.composite
def sources(draw: st.DrawFn) -> Source:
    key, label = draw(st.none() | names(64)), draw(st.none() | texts(most=120))
    return Source(draw(names(200)), key, label)


def stale() -> st.SearchStrategy[tuple[Source, ...]]:
    """Connections that are not up to date."""
    late = SyncStatus("late", NOON, NOON, is_stale=True)
    few = st.lists(sources().map(lambda source: source._replace(sync=late)), max_size=2)
    return few.map(lambda some: tuple(some * 50))


@st.composite
def refs(draw: st.DrawFn, source: Source) -> RecordRef:
    return RecordRef(draw(names(64)), draw(names(CONTRACT.record_id_bytes)), source.connection_id)


@st.composite
def matches(draw: st.DrawFn, id: str) -> Match:
    text = draw(texts(most=BUDGETS.excerpt_chars, least=1))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=12)))
    marks = tuple((a, b) for a, b in zip(cuts[::2], cuts[1::2]) if a < b) or ((0, 1),)
    start = draw(st.integers(0, 10**9))
    known = draw(st.booleans())
    window = {"offset_chars": start, "limit_chars": 626}
    path = draw(names(64))
    return Match(
        field_path=path,
        shown=mark(text, start=0, end=len(text), marks=marks)[0],
        start=start if known else None,
        end=start + len(text) if known else None,
        total=10**10 if known else None,
        match_start=start + marks[0][0] if known else None,
        match_end=start + marks[-1][1] if known else None,
        complete=False,
        read=window_read(id, path, window),
    )


@st.composite
def hits(draw: st.DrawFn) -> Hit:
    source = draw(sources())
    ref = draw(refs(source))
    return Hit(
        ref=ref,
        id=str(ref),
        title=draw(
            st.none() | texts(most=BUDGETS.title_chars, least=1)
        ),  # stores have no empty ones
        authored_at=draw(st.none() | st.just("2026-04-01T00:00:00Z")),
        emitted_at=draw(st.none() | st.just("2026-05-01T00:00:00Z")),
        source=source,
        url="/v1/streams/x/records/y?connection_id=z",
        matched_fields=draw(st.lists(names(64), max_size=5)),
        matches=draw(st.lists(matches(str(ref)), max_size=3)),
        rank=draw(st.none() | st.integers(1, 10**6)),
        coverage=draw(st.none() | st.floats(0, 1)),
        matched_words=draw(st.lists(names(64), max_size=3)),
        missing_words=draw(st.lists(names(64), max_size=3)),
        forms=draw(st.dictionaries(names(64), names(64), max_size=2)),
    )


@st.composite
def counted(draw: st.DrawFn) -> Counts:
    some = draw(st.integers(0, 10**6))
    return Counts(draw(st.none() | st.integers(0, some)), some, draw(st.booleans()))


@st.composite
def pages(draw: st.DrawFn, *, most: int) -> SearchPage:
    found = draw(st.lists(hits(), min_size=1, max_size=3))
    count = draw(st.integers(1, most))
    query = draw(texts(most=CONTRACT.query_chars, least=1))
    by_query = {"query": query, "before_chars": 200, "after_chars": 400}
    for hit in found:
        for match in hit.matches:
            if draw(st.booleans()):
                match.read = window_read(hit.id, match.field_path, by_query)
    return SearchPage(
        args={"query": query},
        hits=[replace(h, matches=list(h.matches)) for h in (found * count)[:count]],
        has_more=True,
        next_cursor="c" * draw(st.integers(1, 200)),
        counts=draw(st.none() | counted()),
        recall={"complete": draw(st.booleans()), "candidate_window_limit": 4_000},
        warnings=[{"code": "partial_results", "message": draw(texts(most=200))}],
        as_of=draw(stale()),
    )


def ordinary_pages() -> st.SearchStrategy[SearchPage]:
    return st.sampled_from(["lorem ipsum ", "明日の会議は", "Straße Köln "]).map(ordinary_page)


def ordinary_page(letter: str) -> SearchPage:
    """Ten realistic hits: ASCII or CJK, ids of a few words, three full windows each."""
    text = (letter * 60)[: BUDGETS.excerpt_chars]
    source = Source("gmail-work", "gmail", "Work mail")
    ref = RecordRef("messages", "m_0042", "gmail-work")
    window = {"query": "lorem ipsum", "before_chars": 200, "after_chars": 400}
    shown, _ = mark(text, start=0, end=len(text), marks=((9, 14), (20, 25)))
    read = window_read(str(ref), "body", window)
    one = Match("body", shown, 0, len(text), 10**6, 9, 25, False, read)
    listed = [
        Hit(ref, str(ref), letter * 3, NOON, NOON, source, "", ["body"], [one] * 3, rank)
        for rank in range(1, 11)
    ]
    return SearchPage({"query": "x"}, listed, True, "c" * 40, Counts(9, 99, True), {}, [])


@st.composite
def values(draw: st.DrawFn, *, most: int) -> Any:
    text = draw(texts(most=most))
    nested = {"deep": [{"text": text[:9_000]}] * 3}
    preview = Preview(text, 10**7, "string", 10**7)
    blob = BlobRef({"blob_id": "b" * 70, "mime_type": "image/png", "size_bytes": 9})
    described = (preview, blob, [blob, blob], base64_of("QUJD" * 90))
    return draw(st.sampled_from([text, text[:200], nested, 7, None, True, *described]))


@st.composite
def items(draw: st.DrawFn) -> Record:
    source = draw(sources())
    ref = draw(refs(source))
    # An upstream's page has a few megabytes at most: long values or many fields, not both.
    count, most = draw(st.sampled_from([(1, 60_000), (3, 20_000), (30, 2_000), (2_000, 30)]))
    few = draw(st.lists(values(most=most), min_size=1, max_size=4))
    prefix = draw(names(40))
    few = [base64_of(one) if looks_binary(one) else one for one in few]
    data = {f"{prefix}{n}": few[n % len(few)] for n in range(count)}
    return Record(ref, source, "2026-04-01T00:00:00Z", data)


@st.composite
def record_pages(draw: st.DrawFn) -> RecordPage:
    few = draw(st.lists(items(), min_size=1, max_size=2))
    most = 100 if all(len(item.data) <= 30 for item in few) else 3
    listed = (few * 100)[: draw(st.sampled_from([1, 2, 25, most]))][:most]
    args = {"stream": "s", "limit": 100}
    return RecordPage("s", listed, True, "c" * 80, as_of=draw(stale()), args=args)
