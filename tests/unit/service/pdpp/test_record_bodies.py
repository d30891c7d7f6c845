"""Records, pages and windows keep their typed fields through a PDPP body, and rendering them."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from evidence import wire
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.model import Source
from evidence.pointer import path_of
from evidence.records import Count, FieldRead, Record, RecordPage, Related, TimeSpan
from evidence.text import looks_binary
from evidence.values import Base64, BlobRef, Preview
from renderers import document, field, records
from renderers.document import lay_out
from renderers.rendering import Context
from service.pdpp.decode.records import decode_field, decode_page, decode_record
from service.pdpp.encode import encode_field, encode_page, encode_record
from tests.helpers.monsters import Held, held, items, monstrous, record_pages

CONNECTION = "mail-work"
names = st.text("abc/~.% é猫", min_size=1, max_size=12)
paths = names.map(path_of)
words = st.text(max_size=60).filter(lambda text: not looks_binary(text))
times = st.none() | st.just("2026-04-01T00:00:00Z")
numbers = st.integers(0, 10**9)
warnings = st.lists(st.fixed_dictionaries({"code": names, "message": words}), max_size=2)
scalars = st.none() | st.booleans() | numbers | words
references = st.fixed_dictionaries(
    {"blob_id": names}, optional={"mime_type": names, "size_bytes": numbers}
)
blobs = st.one_of(
    st.builds(BlobRef.of, references, names),
    st.builds(BlobRef, references, st.booleans()),
)
described = st.one_of(
    st.builds(Preview, words, numbers, st.sampled_from(["string", "array"]), st.none() | numbers),
    st.builds(Base64, names, numbers, st.none(), st.none() | names),
    blobs,
    st.lists(blobs, min_size=1, max_size=3),
)
data = st.dictionaries(names, scalars | st.lists(scalars) | described, max_size=5)
refs = st.builds(RecordRef, st.just("messages"), names, st.just(CONNECTION))
sources = st.builds(Source, st.just(CONNECTION), st.none(), st.none() | names, st.none())
nearby = st.builds(Record, refs, st.just(Source(CONNECTION, None, None)), times, data)
related = st.one_of(
    st.builds(
        Related,
        st.lists(nearby, max_size=3),
        st.booleans(),
        listing=st.none() | st.just({"stream": "messages", "filter": {"thread": "t1"}}),
    ),
    st.builds(Related, st.lists(nearby, max_size=1), single=st.just(True)),
)
rows = st.one_of(
    st.builds(
        Record, refs, sources, times, data, expanded=st.dictionaries(names, related, max_size=2)
    ),
    st.builds(Record, refs, sources, times, st.just({}), deleted=st.just(True), deleted_at=times),
)
details = st.builds(
    lambda record, key, at, roles: replace(
        record, source=record.source._replace(connector_key=key), authored_at=at, roles=roles
    ),
    rows,
    st.none() | names,
    times,
    st.dictionaries(st.sampled_from(["primary-title", "primary-text", "event-time"]), names),
)
pages = st.builds(
    RecordPage,
    stream=st.just("messages"),
    records=st.lists(rows, max_size=4),
    has_more=st.booleans(),
    next_cursor=st.none() | names,
    next_changes_since=st.none() | names,
    count=st.just(Count()) | st.builds(Count, st.just("exact"), numbers),
    span=st.none() | st.builds(TimeSpan, numbers, times, times),
    warnings=warnings,
)


@st.composite
def windows(draw: st.DrawFn) -> FieldRead:
    ref, source, path = draw(refs), draw(sources), draw(paths)
    if draw(st.booleans()):
        known = draw(blobs | st.builds(Base64, names, numbers, st.none(), st.none() | names))
        return FieldRead(ref, source, path, "binary", binary=known, warnings=draw(warnings))
    text, start = draw(words), draw(numbers)
    read = FieldRead(
        *(ref, source, path, "string", text, start, start + len(text) + draw(numbers)),
        limit=draw(st.integers(1, 16_384)),
        media_type=draw(st.none() | names),
        warnings=draw(warnings),
    )
    if not draw(st.booleans()):
        return read
    match, further = draw(st.integers(1, 99)), draw(st.none() | st.integers(2, 99))
    return replace(read, match_start=start, match_end=start + 1, match=match, next_match=further)


def sent(body: dict[str, Any]) -> dict[str, Any]:
    """The body as a client parses it."""
    parsed: dict[str, Any] = orjson.loads(orjson.dumps(body))
    return parsed


@given(pages)
def test_a_page_is_the_same_after_its_body(page: RecordPage) -> None:
    decoded = decode_page(sent(encode_page(page)), page.stream)
    assert decoded == page
    assert wire.records(decoded, decoded.continuations()) == wire.records(
        page, page.continuations()
    )


@given(details)
def test_a_record_is_the_same_after_its_body(record: Record) -> None:
    decoded = decode_record(sent(encode_record(record)), record.ref)
    assert decoded == record
    assert wire.document(lay_out(decoded)) == wire.document(lay_out(record))


@given(windows())
def test_a_window_is_the_same_after_its_body(read: FieldRead) -> None:
    decoded = decode_field(sent(encode_field(read)), read.ref, read.field_path)
    assert decoded == read
    assert wire.field(decoded) == wire.field(read)


@monstrous
@given(held(record_pages()))
def test_a_page_is_unchanged_by_fitting_and_rendering_it(monster: Held[RecordPage]) -> None:
    page = monster.reading
    before = deepcopy(page)
    fitted = records.fit(page, BUDGETS)
    assert page == before
    before = deepcopy(fitted)
    records.render(fitted, Context())
    assert fitted == before


@monstrous
@given(held(items()))
def test_a_record_is_unchanged_by_its_document(monster: Held[Record]) -> None:
    record = replace(monster.reading, roles={"primary-text": list(monster.reading.data)[-1]})
    before = deepcopy(record)
    laid_out = lay_out(record)
    assert record == before
    shown = deepcopy(laid_out)
    document.render(laid_out, Context())
    document.about(laid_out, Context())
    assert laid_out == shown


@given(windows())
def test_a_window_is_unchanged_by_fitting_and_rendering_it(read: FieldRead) -> None:
    before = deepcopy(read)
    field.render(field.fit(read, BUDGETS), Context())
    assert read == before
