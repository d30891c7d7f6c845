"""What every resource server keeps, wherever its records are."""

from dataclasses import replace
from typing import Any

import pytest

from evidence.errors import Forbidden, InvalidRequest, NotFound
from evidence.hits import SearchPage
from evidence.records import Count, FieldRead
from service.ports import SchemaQuery, SearchQuery, WindowRequest
from tests.contract.subjects import Subject


def found(subject: Subject, query: SearchQuery) -> SearchPage:
    return subject.open().search(query).value


def window(subject: Subject, **asked: Any) -> FieldRead:
    ref, path = subject.long
    return subject.open().field_window(ref, path, WindowRequest(**asked)).value


def test_the_schema_names_every_stream(subject: Subject) -> None:
    index = subject.open().schema(SchemaQuery()).value
    assert {row.stream.name for row in index.rows} == subject.granted
    assert all(source.connection_id for row in index.rows for source in row.connections)


def test_the_schema_of_a_stream_names_its_fields(subject: Subject) -> None:
    index = subject.open().schema(SchemaQuery("messages")).value
    assert {row.stream.name for row in index.rows} == {"messages"}
    assert {"id", "subject", "body"} <= set(index.rows[0].stream.fields)


def test_streams_are_listed_for_each_connection(subject: Subject) -> None:
    rows = subject.open().streams().value.rows
    assert {row.name for row in rows} == subject.granted
    assert len({(row.name, row.source.connection_id) for row in rows}) == len(rows)


def test_a_stream_describes_itself(subject: Subject) -> None:
    assert subject.open().stream("messages").value.row.stream.name == "messages"


def test_a_page_has_as_many_records_as_were_asked_for(subject: Subject) -> None:
    page = subject.open().records(subject.stream).value
    assert len(page.records) == subject.stream.limit
    assert page.has_more and page.next_cursor
    assert {item.source.connection_id for item in page.records} == {subject.stream.connection_id}


def test_pages_follow_each_other_without_repeating(subject: Subject) -> None:
    first = subject.open().records(subject.stream).value
    query = replace(subject.stream, cursor=first.next_cursor)
    second = subject.open().records(query).value
    ids = [record.id for record in [*first.records, *second.records]]
    assert len(set(ids)) == 2 * subject.stream.limit


def test_paging_to_the_end_gives_every_record_once(subject: Subject) -> None:
    if subject.keys is None:
        pytest.skip("nobody recorded every page")
    ids, query = list[str](), subject.stream
    while True:
        page = subject.open().records(query).value
        assert page.count == Count("exact", len(subject.keys))
        ids += [record.ref.record_id for record in page.records]
        if not page.has_more:
            break
        query = replace(query, cursor=page.next_cursor)
    assert tuple(ids) == subject.keys


def test_one_record_has_its_data_and_its_connection(subject: Subject) -> None:
    record = subject.open().record(subject.one).value
    assert {name: record.data[name] for name in subject.data} == subject.data
    assert record.ref[:2] == subject.one[:2]
    assert record.ref.connection_id


def test_a_window_lies_where_it_says(subject: Subject) -> None:
    read = window(subject)
    assert (read.start, read.end, read.total) == (0, 4_096, subject.total)
    assert len(read.text) == 4_096 and not read.complete


def test_windows_lead_to_the_end_and_hold_the_stored_text(subject: Subject) -> None:
    if subject.text is None:
        pytest.skip("nobody recorded every window")
    pieces, end = list[str](), 0
    while end < subject.total:
        read = window(subject, offset_chars=end, limit_chars=5_000)
        assert read.start == end
        pieces.append(read.text)
        end = read.end
    assert "".join(pieces) == subject.text


def test_a_window_opens_at_a_match(subject: Subject) -> None:
    read = window(subject, query="invoice number", before_chars=20, after_chars=30)
    assert read.match_start is not None and read.match_end is not None
    start, end = read.match_start - read.start, read.match_end - read.start
    assert read.text[start:end] == "invoice number"
    assert start == 20 and len(read.text) == 64


def test_a_search_shows_the_proof_of_its_hits(subject: Subject) -> None:
    ref, path, word = subject.found
    hits = {hit.ref: hit for hit in found(subject, subject.search).hits}
    match = next(each for each in hits[ref].matches if each.field_path == path)
    assert f"<mark>{word}</mark>" in match.shown


def test_a_search_pages_without_repeating(subject: Subject) -> None:
    first = found(subject, subject.pages)
    second = found(subject, replace(subject.pages, cursor=first.next_cursor))
    ids = [hit.id for hit in [*first.hits, *second.hits]]
    assert len(set(ids)) == len(ids) == 2 * subject.pages.limit


def test_a_count_is_a_number(subject: Subject) -> None:
    assert subject.open().aggregate(subject.count).value.value == subject.value


def test_groups_have_keys_and_counts(subject: Subject) -> None:
    groups = subject.open().aggregate(subject.groups).value.groups
    assert groups and all(isinstance(group.count, int) for group in groups)
    assert len({group.key for group in groups}) == len(groups)


def test_a_record_that_is_not_there_is_not_found(subject: Subject) -> None:
    error = subject.refused(lambda rs: rs.record(subject.missing))
    assert isinstance(error, NotFound) and error.code == "not_found"


def test_foreign_cursors_are_refused(subject: Subject) -> None:
    for ask in subject.bad_cursors:
        error = subject.refused(ask)
        assert isinstance(error, InvalidRequest) and error.code == "invalid_cursor"


def test_what_is_not_granted_is_refused_and_the_token_lives(subject: Subject) -> None:
    for ask in subject.not_granted:
        assert isinstance(subject.refused(ask), (Forbidden, NotFound))
