"""Monstrous readings: whatever an upstream sends, an answer stays inside its budget and whole."""

from typing import Any, Generic, TypeVar

import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evidence import wire
from evidence.continuation import Continuation
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import (
    Document,
    FieldRead,
    Hit,
    Match,
    RecordItem,
    RecordPage,
    SchemaIndex,
    SearchPage,
    Source,
    StreamRow,
)
from evidence.envelope import Envelope
from evidence.reading import records as reading
from evidence.text import mark
from renderers import field, records, schema, search
from renderers import document as documents
from renderers.rendering import Context, Rendering
from tests.helpers.reading import fenced, printed_calls, structured_calls

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
def matches(draw: st.DrawFn) -> Match:
    text = draw(texts(most=BUDGETS.excerpt_chars, least=1))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=12)))
    marks = tuple((a, b) for a, b in zip(cuts[::2], cuts[1::2]) if a < b) or ((0, 1),)
    start = draw(st.integers(0, 10**9))
    known = draw(st.booleans())
    window = {"offset_chars": start, "limit_chars": 626}
    return Match(
        field_path=draw(names(64)),
        shown=mark(text, start=0, end=len(text), marks=marks)[0],
        start=start if known else None,
        end=start + len(text) if known else None,
        total=10**10 if known else None,
        match_start=start + marks[0][0] if known else None,
        match_end=start + marks[-1][1] if known else None,
        complete=False,
        window=window,
    )


@st.composite
def hits(draw: st.DrawFn) -> Hit:
    source = draw(sources())
    ref = draw(refs(source))
    return Hit(
        ref=ref,
        id=str(ref),
        title=draw(st.none() | texts(most=20_000)),
        at=draw(st.none() | st.just("2026-04-01T00:00:00Z")),
        source=source,
        url="/v1/streams/x/records/y",
        matched_fields=draw(st.lists(names(64), max_size=5)),
        matches=draw(st.lists(matches(), max_size=3)),
    )


@st.composite
def pages(draw: st.DrawFn, *, most: int) -> SearchPage:
    found = draw(st.lists(hits(), min_size=1, max_size=3))
    count = draw(st.integers(1, most))
    query = draw(texts(most=CONTRACT.query_chars, least=1))
    for match in (match for hit in found for match in hit.matches if draw(st.booleans())):
        match.window = {"query": query, "before_chars": 200, "after_chars": 400}
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
        envelope={},
    )


def bounded(rendering: Rendering, text_bytes: int = BUDGETS.text_bytes) -> str:
    """The text of a rendering whose both channels are inside their budgets."""
    text = "\n".join(rendering.blocks)
    assert len(text.encode()) <= text_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.structured_bytes
    return text


def carries(rendering: Rendering, continuations: list[Continuation]) -> None:
    """Each continuation of the reading stands in both channels."""
    text = "\n".join(rendering.blocks)
    found = structured_calls(rendering.structured)
    for one in continuations:
        assert wire.spelled(one) in text or any(
            (call.tool, call.args) == (one.operation, one.args) for call in printed_calls(text)
        ), one
        assert any((call.tool, call.args) == (one.operation, one.args) for call in found), one


@monstrous
@given(held(pages(most=100)))
def test_a_search_page_of_any_hits_is_bounded_and_no_id_is_cut(monster: Held[SearchPage]) -> None:
    page = monster.reading
    while (kept := search.fits(page, BUDGETS)) < len(page.hits):
        page.hits = page.hits[: max(1, kept)]  # as a server asks again for a smaller page
    rendering = search.render(page, Context())
    text = bounded(rendering)
    assert all(f" {hit.id} " in text for hit in page.hits)
    first = [hit.read(hit.matches[0]) if hit.matches else hit.fetch for hit in page.hits]
    carries(rendering, [*first, *page.continuations()])


@st.composite
def ordinary_pages(draw: st.DrawFn) -> SearchPage:
    """Ten hits as stores have them: ASCII or CJK, ids of some words, three full windows each."""
    letter = draw(st.sampled_from(["lorem ipsum ", "明日の会議は", "Straße Köln "]))
    text = (letter * 60)[: BUDGETS.excerpt_chars]
    source = Source("gmail-work", "gmail", "Work mail")
    ref = RecordRef("messages", "m_0042", "gmail-work")
    window = {"query": "lorem ipsum", "before_chars": 200, "after_chars": 400}
    shown, _ = mark(text, start=0, end=len(text), marks=((9, 14), (20, 25)))
    one = Match("body", shown, 0, len(text), 10**6, 9, 25, False, window)
    listed = [
        Hit(ref, str(ref), letter * 3, "2026-04-01T00:00:00Z", source, "", ["body"], [one] * 3)
        for _ in range(10)
    ]
    return SearchPage({"query": "x"}, listed, True, "c" * 40, 99, "exact", {}, [], {})


@monstrous
@given(held(ordinary_pages()))
def test_ten_ordinary_hits_all_fit_8_kb_each_with_a_window(monster: Held[SearchPage]) -> None:
    page = monster.reading
    assert search.fits(page, BUDGETS) == 10
    text = bounded(search.render(page, Context()), BUDGETS.search_text_bytes)
    assert len(fenced(text)) >= 10


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
    return RecordItem(ref, str(ref), source, "2026-04-01T00:00:00Z", data, False, {})


@st.composite
def record_pages(draw: st.DrawFn) -> RecordPage:
    few = draw(st.lists(items(), min_size=1, max_size=2))
    most = 100 if all(len(item.data) <= 30 for item in few) else 3
    listed = (few * 100)[: draw(st.sampled_from([1, 2, 25, most]))][:most]
    return RecordPage(
        {"stream": "s", "limit": 100}, "s", listed, True, "c" * 80, None, {"kind": "none"}, [], {}
    )


@monstrous
@given(held(record_pages()))
def test_a_page_of_any_records_is_bounded_and_what_is_cut_can_be_read(
    monster: Held[RecordPage],
) -> None:
    page = monster.reading
    while (kept := records.fits(page, BUDGETS)) < len(page.records):
        page.records = page.records[: max(1, kept)]
    rendering = records.render(page, Context())
    text = bounded(rendering)
    assert all(f" {item.id} " in text for item in page.records)
    cut = [part.read for item in page.records for part in item.partial]
    rest = [found for item in page.records if (found := item.rest())]
    carries(rendering, [*cut, *rest, *page.continuations()])


@monstrous
@given(sources(), st.data())
def test_a_window_of_any_text_is_bounded_and_leads_on(source: Source, data: st.DataObject) -> None:
    ref = data.draw(refs(source))
    text = data.draw(texts(most=CONTRACT.window_chars_max))
    start = data.draw(st.integers(0, 10**6))
    path = data.draw(names(64))
    read = FieldRead(
        ref, str(ref), source, path, "string", text, start, start + len(text), 10**7, 16_384
    )
    read = field.fit(read, BUDGETS)
    rendering = field.render(read, Context())
    shown = bounded(rendering)
    assert str(ref) in shown
    carries(rendering, read.continuations())
    assert any(one.why == "next" for one in read.continuations())


@monstrous
@given(held(items()))
def test_a_document_of_any_record_is_bounded_and_mirrored(monster: Held[RecordItem]) -> None:
    item = monster.reading
    roles = {"primary-title": next(iter(item.data)), "primary-text": list(item.data)[-1]}
    body = {"id": item.ref.record_id, "connection_id": item.ref.connection_id, "roles": roles}
    envelope = Envelope({**body, "data": item.data, "display_name": item.source.display_name})
    document: Document = reading.read_document(envelope, ref=item.ref)
    rendering = documents.render(document, Context())
    text = bounded(rendering)
    assert orjson.loads(text) == rendering.structured
    assert rendering.structured["id"] == item.id
    if document.next_read:
        assert wire.spelled(document.next_read) == rendering.structured["metadata"]["next_read"]


@monstrous
@given(st.data())
def test_an_index_of_500_streams_and_64_connections_names_every_stream(data: st.DataObject) -> None:
    label = data.draw(st.none() | texts(most=120))
    stem = data.draw(st.sampled_from(["stream_of_this_owner", "日記帳の頁", "röhre", "a b"]))
    connections = [Source(f"connection-{n}", f"key-{n % 5}", label) for n in range(64)]
    rows = [
        StreamRow(
            f"{stem}_{n}", f"key-{n % 5}", label, connections[n % 5 :: 5], {}, [], [], [], None, {}
        )
        for n in range(500)
    ]
    rendering = schema.render(SchemaIndex({}, rows, "compact", [], {}), Context())
    assert len(rendering.blocks[0].encode()) <= BUDGETS.schema_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.schema_bytes
    named = {
        stream["name"]
        for connector in rendering.structured["data"]["connectors"]
        for stream in connector["streams"]
    }
    assert named == {row.name for row in rows}


@monstrous
@given(st.data())
def test_details_of_thousands_of_fields_are_bounded_and_paged(data: st.DataObject) -> None:
    stem = data.draw(names(50))
    count = data.draw(st.sampled_from([1, 40, 3_000]))
    copies = data.draw(st.sampled_from([1, 2, 8, 64]))
    flags = {f"{stem}{n}": "t=text,eq,lex,a=group_by|count_distinct" for n in range(count)}
    rows = [
        StreamRow(
            "s", f"k{n}", None, [Source(f"c{n}", f"k{n}", None)], flags, [], [], ["id"], "at", {}
        )
        for n in range(copies)
    ]
    index = SchemaIndex({"stream": "s"}, rows, "compact", [], {})
    rendering = schema.render(index, Context())
    assert len(rendering.blocks[0].encode()) <= BUDGETS.schema_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.structured_bytes
    assert len(printed_calls(rendering.blocks[0])) == len(structured_calls(rendering.structured))
