"""Monstrous results: whatever an upstream sends, an answer stays inside its budget and whole."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Continuation, Source, spelled
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import Connector, Schema, StreamRow, StreamSchema, parse_flags
from service.pdpp.decode.records import decode_record
from service.pdpp.decode import search as search_reading
from renderers import document as documents
from renderers.document import lay_out
from renderers import field, records, schema, search
from renderers.rendering import Context, Rendering
from tests.helpers.monsters import (
    Held,
    held,
    items,
    monstrous,
    names,
    ordinary_pages,
    pages,
    record_pages,
    refs,
    sources,
    texts,
)
from tests.helpers.reading import fenced, printed_calls, structured_calls


def bounded(rendering: Rendering, text_bytes: int = BUDGETS.text_bytes) -> str:
    """The text of a rendering whose both channels are inside their budgets."""
    text = "\n".join(rendering.blocks)
    assert len(text.encode()) <= text_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.structured_bytes
    return text


def carries(rendering: Rendering, continuations: list[Continuation]) -> None:
    """Each continuation of the result is in both channels."""
    text = "\n".join(rendering.blocks)
    found = structured_calls(rendering.structured)
    for one in continuations:
        assert spelled(one) in text or any(
            (call.tool, call.args) == (one.operation, one.args) for call in printed_calls(text)
        ), one
        assert any((call.tool, call.args) == (one.operation, one.args) for call in found), one


@monstrous
@given(held(pages(most=100)))
def test_a_search_page_of_any_hits_is_bounded_and_no_id_is_cut(monster: Held[SearchPage]) -> None:
    page = monster.reading
    fitted = search.fit(page, BUDGETS)
    while len(fitted.hits) < len(page.hits):
        page.hits = page.hits[: len(fitted.hits)]  # as a server asks again for a smaller page
        fitted = search.fit(page, BUDGETS)
    rendering = search.render(fitted, Context())
    text = bounded(rendering)
    assert all(f" {hit.id} " in text for hit in page.hits)
    assert all(
        bool(hit.matches) == bool(shown.matches) for hit, shown in zip(page.hits, fitted.hits)
    )
    first = [hit.matches[0] if hit.matches else None for hit in fitted.hits]
    reads = [one.read for one in first if one and not one.complete]
    fetches = [hit.fetch for hit in fitted.hits if not hit.matches]
    carries(rendering, [*reads, *fetches, *page.continuations()])


@monstrous
@given(held(ordinary_pages()))
def test_ten_ordinary_hits_all_fit_8_kb_each_with_a_window(monster: Held[SearchPage]) -> None:
    page = monster.reading
    fitted = search.fit(page, BUDGETS)
    assert len(fitted.hits) == 10 and all(hit.matches for hit in fitted.hits)
    text = bounded(search.render(fitted, Context()), BUDGETS.search_text_bytes)
    assert len(fenced(text)) >= CONTRACT.full_hits


@monstrous
@given(held(record_pages()))
def test_a_page_of_any_records_is_bounded_and_what_is_cut_can_be_read(
    monster: Held[RecordPage],
) -> None:
    page = monster.reading
    while len((fitted := records.fit(page, BUDGETS)).records) < len(page.records):
        page = replace(page, records=page.records[: len(fitted.records)])
    page = fitted
    rendering = records.render(page, Context())
    text = bounded(rendering)
    assert all(f" {item.id} " in text for item in page.records)
    cut = [part.read for item in page.records for part in item.partial]
    rest = [found for item in page.records if (found := item.rest)]
    carries(rendering, [*cut, *rest, *page.continuations()])


@monstrous
@given(sources(), st.data())
def test_a_window_of_any_text_is_bounded_and_leads_on(source: Source, data: st.DataObject) -> None:
    ref = data.draw(refs(source))
    text = data.draw(texts(most=CONTRACT.window_chars_max))
    start = data.draw(st.integers(0, 10**6))
    path = data.draw(names(64))
    read = FieldRead(ref, source, path, "string", text, start, 10**7, 16_384)
    read = field.fit(read, BUDGETS)
    rendering = field.render(read, Context())
    shown = bounded(rendering)
    assert str(ref) in shown
    carries(rendering, read.continuations())
    assert any(one.why == "next" for one in read.continuations())


@monstrous
@given(held(items()))
def test_a_document_of_any_record_is_bounded_and_mirrored(monster: Held[Record]) -> None:
    item = monster.reading
    roles = {"primary-title": next(iter(item.data)), "primary-text": list(item.data)[-1]}
    document = lay_out(replace(item, roles=roles))
    rendering = documents.render(document, Context())
    text = bounded(rendering)
    assert orjson.loads(text) == rendering.structured
    assert rendering.structured["id"] == item.id
    if document.next_read:
        assert spelled(document.next_read) == rendering.structured["metadata"]["next_read"]


@monstrous
@given(st.data())
def test_an_index_of_500_streams_and_64_connections_names_every_stream(data: st.DataObject) -> None:
    label = data.draw(st.none() | texts(most=120))
    stem = data.draw(st.sampled_from(["stream_of_this_owner", "日記帳の頁", "röhre", "a b"]))
    connections = [Source(f"connection-{n}", f"key-{n % 5}", label) for n in range(64)]
    rows = [
        StreamRow(
            StreamSchema(f"{stem}_{n}", label=label), f"key-{n % 5}", tuple(connections[n % 5 :: 5])
        )
        for n in range(500)
    ]
    grouped = (Connector(k, k, k, tuple(rows[n::5])) for n in range(5) for k in [f"key-{n}"])
    rendering = schema.render(Schema(tuple(grouped), compact=True), Context())
    assert len(rendering.blocks[0].encode()) <= BUDGETS.schema_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.schema_bytes
    named = {
        stream["name"]
        for connector in rendering.structured["data"]["connectors"]
        for stream in connector["streams"]
    }
    assert named == {row.stream.name for row in rows}


@pytest.mark.parametrize(("width", "pages"), [(16, 1), (40, 2)])
@pytest.mark.parametrize("label", [None, "A label of some length"])
def test_a_package_of_1800_streams_continues_only_if_its_names_do_not_fit(
    width: int, pages: int, label: str | None
) -> None:
    names = [f"{'s' * (width - 5)}{n:05}" for n in range(1_800)]
    connections = [Source(f"connection-{n}", f"key-{n % 4}", label) for n in range(40)]
    rows = [
        StreamRow(StreamSchema(name), f"key-{n % 4}", tuple(connections[n % 4 :: 4]))
        for n, name in enumerate(names)
    ]
    grouped = (Connector(k, k, k, tuple(rows[n::4])) for n in range(4) for k in [f"key-{n}"])
    index, listed, args = Schema(tuple(grouped), compact=True), list[str](), {}
    for number in range(1, pages + 1):
        rendering = schema.render(replace(index, args=args), Context())
        text = rendering.blocks[0]
        assert len(text.encode()) <= 40_960
        assert len(orjson.dumps(rendering.structured)) <= 40_960
        shown = [
            name
            for connector in rendering.structured["data"]["connectors"]
            for name in connector["streams"]
        ]
        assert set(shown) <= set(text.split())
        listed += shown
        calls = [call for call in printed_calls(text) if "cursor" in call.args]
        assert len(calls) == (number < pages), text[:200]
        assert ("shown=" in text.splitlines()[0]) == (pages > 1)
        args = calls[0].args if calls else {}
    assert sorted(listed) == names


@monstrous
@given(st.data())
def test_details_of_thousands_of_fields_are_bounded_and_paged(data: st.DataObject) -> None:
    stem = data.draw(names(50))
    count = data.draw(st.sampled_from([1, 40, 3_000]))
    copies = data.draw(st.sampled_from([1, 2, 8, 64]))
    flags = parse_flags("t=text,eq,lex,a=group_by|count_distinct")
    fields = {f"{stem}{n}": flags for n in range(count)}
    stream = StreamSchema("s", primary_key=("id",), cursor_field="at", fields=fields)
    keys = [f"k{n}" for n in range(copies)]
    rows = [StreamRow(stream, key, (Source(f"c{key}", key, None),)) for key in keys]
    connectors = (Connector(key, key, key, (row,)) for key, row in zip(keys, rows))
    index = Schema(tuple(connectors), compact=True, args={"stream": "s"})
    rendering = schema.render(index, Context())
    assert len(rendering.blocks[0].encode()) <= BUDGETS.text_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.structured_bytes
    assert len(printed_calls(rendering.blocks[0])) == len(structured_calls(rendering.structured))


def test_titles_of_any_length_are_short_before_they_are_rendered() -> None:
    row = {"stream": "s", "record_key": "r", "connection_id": "c", "title": "T" * 50_000}
    page = search_reading.read({"data": [row]})
    assert len(page.hits[0].heading) <= BUDGETS.title_chars
    body = {"id": "r", "data": {"t": "T" * 50_000}, "roles": {"primary-title": "t"}}
    document = lay_out(decode_record(body, page.hits[0].ref))
    assert len(document.title) <= 300 and document.metadata["title_field"] == "t"
