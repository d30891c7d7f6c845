"""Readings no sane upstream would send, for tests that nothing a renderer writes is unbounded."""

from typing import Any, Generic, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from evidence import binary, pointer
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Hit, Match, RecordItem, RecordPage, SearchPage, Source, window_read
from evidence.text import mark

Reading = TypeVar("Reading")

monstrous = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # shrinking monsters takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

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
    """A reading that hypothesis can print without writing megabytes."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def __repr__(self) -> str:
        return f"a monstrous {type(self.reading).__name__}"


def held(strategy: st.SearchStrategy[Reading]) -> st.SearchStrategy[Held[Reading]]:
    return strategy.map(Held)


@st.composite
def texts(draw: st.DrawFn, *, most: int = 4_000, least: int = 0) -> str:
    """A text of some kind of character and any length up to `most`; big ones are cheap."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    size = draw(st.integers(least, most))
    return (alphabet * (size // len(alphabet) + 1))[:size]


def names(most_bytes: int) -> st.SearchStrategy[str]:
    """A name the store would take: not empty, bounded in bytes."""
    return texts(most=most_bytes, least=1).map(
        lambda text: text.encode()[:most_bytes].decode(errors="ignore") or "x"
    )


@st.composite
def sources(draw: st.DrawFn) -> Source:
    key, label = draw(st.none() | names(64)), draw(st.none() | texts(most=120))
    return Source(draw(names(200)), key, label)


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
        title=draw(st.none() | texts(most=BUDGETS.title_chars)),
        at=draw(st.none() | st.just("2026-04-01T00:00:00Z")),
        source=source,
        url="/v1/streams/x/records/y",
        matched_fields=draw(st.lists(names(64), max_size=5)),
        matches=draw(st.lists(matches(str(ref)), max_size=3)),
    )


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
        hits=[
            Hit(h.ref, h.id, h.title, h.at, h.source, h.url, h.matched_fields, list(h.matches))
            for h in (found * count)[:count]
        ],
        has_more=True,
        next_cursor="c" * draw(st.integers(1, 200)),
        count=draw(st.none() | st.integers(0, 10**6)),
        count_accuracy="exact",
        recall={"complete": draw(st.booleans()), "candidate_window_limit": 4_000},
        warnings=[{"code": "partial_results", "message": draw(texts(most=200))}],
    )


@st.composite
def ordinary_pages(draw: st.DrawFn) -> SearchPage:
    """Ten hits as stores have them: ASCII or CJK, ids of some words, three full windows each."""
    letter = draw(st.sampled_from(["lorem ipsum ", "明日の会議は", "Straße Köln "]))
    text = (letter * 60)[: BUDGETS.excerpt_chars]
    source = Source("gmail-work", "gmail", "Work mail")
    ref = RecordRef("messages", "m_0042", "gmail-work")
    window = {"query": "lorem ipsum", "before_chars": 200, "after_chars": 400}
    shown, _ = mark(text, start=0, end=len(text), marks=((9, 14), (20, 25)))
    read = window_read(str(ref), "body", window)
    one = Match("body", shown, 0, len(text), 10**6, 9, 25, False, read)
    listed = [
        Hit(ref, str(ref), letter * 3, "2026-04-01T00:00:00Z", source, "", ["body"], [one] * 3)
        for _ in range(10)
    ]
    return SearchPage({"query": "x"}, listed, True, "c" * 40, 99, "exact", {}, [])


@st.composite
def values(draw: st.DrawFn, *, most: int) -> Any:
    text = draw(texts(most=most))
    nested = {"deep": [{"text": text[:9_000]}] * 3}
    preview = {
        "object": "field_preview",
        "preview_text": text,
        "size_chars": 10**7,
        "type": "string",
    }
    blob = {
        "blob_id": "b" * 70,
        "mime_type": "image/png",
        "size_bytes": 9,
        "fetch_url": "/v1/blobs/b",
    }
    return draw(
        st.sampled_from([text, text[:200], nested, preview, blob, 7, None, True, "QUJD" * 90])
    )


@st.composite
def items(draw: st.DrawFn) -> RecordItem:
    source = draw(sources())
    ref = draw(refs(source))
    # A page of an upstream has some megabytes at most: long values or many fields, not both.
    count, most = draw(st.sampled_from([(1, 60_000), (3, 20_000), (30, 2_000), (2_000, 30)]))
    few = draw(st.lists(values(most=most), min_size=1, max_size=4))
    prefix = draw(names(40))
    data = {f"{prefix}{n}": few[n % len(few)] for n in range(count)}
    data = {
        name: binary.described(value, ref, pointer.path_of(name)) for name, value in data.items()
    }
    held = [b for n, v in data.items() for b in binary.bytes_of(v, ref, pointer.path_of(n))]
    return RecordItem(ref, str(ref), source, "2026-04-01T00:00:00Z", data, False, {}, bytes=held)


@st.composite
def record_pages(draw: st.DrawFn) -> RecordPage:
    few = draw(st.lists(items(), min_size=1, max_size=2))
    most = 100 if all(len(item.data) <= 30 for item in few) else 3
    listed = (few * 100)[: draw(st.sampled_from([1, 2, 25, most]))][:most]
    return RecordPage(
        {"stream": "s", "limit": 100}, "s", listed, True, "c" * 80, None, {"kind": "none"}, []
    )
