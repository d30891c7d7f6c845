"""A package asks one child where one is meant, by membership alone, and refuses as a grant does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evidence.model import Continuation
from evidence.errors import Ambiguous, EvidenceError, Forbidden, NotFound
from evidence.handles import RecordRef
from evidence.schema import FULL, Bearer
from service.sources.package import PackageResourceServer
from service.ports import (
    AggregateQuery,
    RecordQuery,
    ResourceServer,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)
from tests.helpers import worlds
from tests.helpers.sources import DOWN, LATE, REVOKED, Crowd, Plan, of_grants
from tests.helpers.worlds import House

ENTRIES = {
    "Mail at home": ({"connection_id": "mail-home"},),
    "Mail at work": ({"connection_id": "mail-work"},),
    "Money": ({"connection_id": "bank"},),
}
Ask = Callable[[ResourceServer], Any]

TARGETED: dict[str, Callable[[str | None], Ask]] = {
    "records": lambda at: lambda rs: rs.records(RecordQuery("notes", at)),
    "record": lambda at: lambda rs: rs.record(RecordRef("notes", "n1", at)),
    "aggregate": lambda at: lambda rs: rs.aggregate(
        AggregateQuery("notes", "count", connection_id=at)
    ),
    "field_window": lambda at: lambda rs: rs.field_window(
        RecordRef("notes", "n1", at), "text", WindowRequest()
    ),
    "blob": lambda at: lambda rs: rs.blob("b1", connection_id=at),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def package(house: House) -> Callable[[], PackageResourceServer]:
    return of_grants(house, ENTRIES)


@pytest.fixture(scope="module")
def single(house: House) -> ResourceServer:
    """One grant over everything, to compare with."""
    server: ResourceServer = house.app.extensions["rung"].store.open(house.grant()[1])
    return server


def refused(ask: Ask, server: ResourceServer) -> EvidenceError:
    with pytest.raises(EvidenceError) as error:
        ask(server)
    return error.value


@pytest.mark.parametrize("name", TARGETED)
def test_a_connection_leads_to_its_child_and_nobody_else_is_asked(name: str) -> None:
    crowd = Crowd([Plan(1), Plan(1), Plan(1)])
    TARGETED[name]("source-1")(crowd.open())
    assert [len(server.calls) for server in crowd.servers] == [0, 1, 0]


@pytest.mark.parametrize("name", TARGETED)
def test_without_a_connection_the_caller_chooses_and_nobody_is_asked(name: str) -> None:
    crowd = Crowd([Plan(1) for _ in range(20)])
    error = refused(TARGETED[name](None), crowd.open())
    assert isinstance(error, Ambiguous) and error.code == "ambiguous_connection"
    assert error.retry_with == "connection_id"
    listed = error.details["available_connections"]
    assert len(listed) == 12 and error.details["available_connection_count"] == 20
    assert listed[3] == {
        "grant_id": "grant of source 3",
        "connector_key": "list",
        "connection_id": "source-3",
        "display_name": "source 3",
    }
    assert error.calls == (Continuation("schema", {}, "all_connections"),)
    assert not any(server.calls for server in crowd.servers)


def test_a_stream_of_one_child_needs_no_connection() -> None:
    crowd = Crowd([Plan(1), Plan(1, streams=("pictures",))])
    found = crowd.open().records(RecordQuery("pictures", cursor="as it came", limit=7))
    assert found.body and found.body["by"] == "source 1"
    assert crowd.servers[1].calls == [RecordQuery("pictures", cursor="as it came", limit=7)]


def test_a_stream_of_another_connection_is_refused_with_the_connections_that_have_it() -> None:
    crowd = Crowd([Plan(1), Plan(1, streams=("pictures",))])
    error = refused(lambda rs: rs.records(RecordQuery("pictures", "source-0")), crowd.open())
    assert isinstance(error, Forbidden) and "has no stream 'pictures'" in error.message
    assert error.details["available_connections"] == [{"connection_id": "source-1"}]


def test_search_asks_each_child_for_the_streams_it_holds_and_skips_the_others() -> None:
    crowd = Crowd(
        [Plan(1, streams=("notes", "mail")), Plan(1, streams=("mail",)), Plan(1, streams=("x",))]
    )
    crowd.search(limit=5, streams=("notes", "mail"))
    asked = [[call.streams for call in server.calls] for server in crowd.servers]
    assert asked == [[("notes", "mail")], [("mail",)], []]


def test_a_search_in_one_child_is_answered_by_it_alone() -> None:
    crowd = Crowd([Plan(5), Plan(5)])
    first = crowd.search(limit=2, connection_id="source-1").body
    assert first["next_cursor"] == "source 1:2" and "package" not in first["meta"]
    assert not crowd.servers[0].calls
    second = crowd.search(limit=2, connection_id="source-1", cursor="source 1:2").body
    assert [hit["record_key"] for hit in second["data"]] == ["source 1-2", "source 1-3"]


REFUSALS: tuple[Ask, ...] = (
    lambda rs: rs.search(SearchQuery("lantern", streams=("nothing",))),
    lambda rs: rs.search(SearchQuery("lantern", streams=("messages", "message"))),
    lambda rs: rs.search(SearchQuery("lantern", connection_id="mail-hom")),
    lambda rs: rs.search(
        SearchQuery("lantern", streams=("transactions",), connection_id="mail-home")
    ),
    lambda rs: rs.search(SearchQuery("lantern", filter={"folder": "inbox"})),
    lambda rs: rs.search(SearchQuery("lantern", cursor="garbage")),
    lambda rs: rs.search(SearchQuery("-only")),
    lambda rs: rs.records(RecordQuery("message")),
    lambda rs: rs.records(RecordQuery("messages", "nowhere")),
    lambda rs: rs.record(RecordRef("messages", "m1", "nowhere")),
    lambda rs: rs.record(RecordRef("messages", "nobody", "bank")),
    lambda rs: rs.aggregate(AggregateQuery("nothing", "count")),
    lambda rs: rs.field_window(RecordRef("nothing", "m1"), "body", WindowRequest()),
    lambda rs: rs.blob("nothing", connection_id="nowhere"),
    lambda rs: rs.schema(SchemaQuery("nothing")),
    lambda rs: rs.schema(SchemaQuery(connection_id="nowhere")),
    lambda rs: rs.streams(connection_id="nowhere"),
    lambda rs: rs.stream("nothing"),
)


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_what_a_package_refuses_it_refuses_in_the_words_of_a_grant(
    number: int, package: Callable[[], PackageResourceServer], single: ResourceServer
) -> None:
    ours, theirs = refused(REFUSALS[number], package()), refused(REFUSALS[number], single)
    assert (type(ours), ours.body()) == (type(theirs), theirs.body())


def test_the_schema_of_a_package_is_that_of_a_grant_over_the_same(
    package: Callable[[], PackageResourceServer], single: ResourceServer
) -> None:
    for query in (SchemaQuery(), SchemaQuery("messages"), SchemaQuery(detail="document")):
        ours, theirs = package().schema(query).value, single.schema(query).value
        assert ours.bearer == Bearer("package", "client")
        assert ours == replace(theirs, bearer=ours.bearer)


def test_lists_and_details_are_those_of_a_grant_over_the_same(
    package: Callable[[], PackageResourceServer], single: ResourceServer
) -> None:
    asks: tuple[Ask, ...] = (
        lambda rs: rs.streams().value,
        lambda rs: rs.connectors().value,
        lambda rs: rs.stream("threads").value,
        lambda rs: rs.stream("transactions").value,
        lambda rs: rs.records(RecordQuery("messages", "mail-work", limit=3)).value.records,
    )
    for ask in asks:
        assert ask(package()) == ask(single)


def test_a_shared_stream_in_full_needs_a_connection(
    package: Callable[[], PackageResourceServer],
) -> None:
    error = refused(lambda rs: rs.schema(SchemaQuery("messages", detail="full")), package())
    assert error.code == "ambiguous_schema_detail" and error.retry_with == "connection_id"
    assert error.details["available_connection_count"] == 3
    assert {one["stream"] for one in error.details["available_connections"]} == {"messages"}
    full = package().schema(SchemaQuery("messages", "bank", "full")).value
    assert full.rows[0].stream.detail == FULL


def test_a_stream_that_is_not_the_same_everywhere_needs_a_connection(
    package: Callable[[], PackageResourceServer],
) -> None:
    assert isinstance(refused(lambda rs: rs.stream("messages"), package()), Ambiguous)


@pytest.mark.parametrize("fate, words", [(LATE, "in time"), (DOWN, "upstream_unreachable")])
def test_a_silent_child_is_told_and_its_streams_are_still_named(fate: str, words: str) -> None:
    crowd = Crowd([Plan(1, (fate,)), Plan(1, streams=("pictures",)), Plan(1)])
    index = crowd.open().schema(SchemaQuery()).value
    assert {row.stream.name for row in index.rows} == {"notes", "pictures"}
    connections = {source.connection_id for row in index.rows for source in row.connections}
    assert connections == {"source-0", "source-1", "source-2"}
    (warning,) = index.warnings
    assert warning["code"] == "source_unavailable" and warning["grant_id"] == "grant of source 0"
    assert "source 0" in warning["message"] and words in warning["message"]


def test_where_all_children_fail_a_list_raises_the_first_error() -> None:
    crowd = Crowd([Plan(1, (LATE,)), Plan(1, (REVOKED,))])
    assert refused(lambda rs: rs.schema(SchemaQuery()), crowd.open()).code == "grant_revoked"
    crowd = Crowd([Plan(1, (LATE,)), Plan(1, (LATE,))])
    assert refused(lambda rs: rs.streams(), crowd.open()).code == "deadline_exceeded"


def test_every_hit_of_a_package_can_be_read(
    package: Callable[[], PackageResourceServer], single: ResourceServer
) -> None:
    shown, cursor = list[str](), None
    while True:
        page = package().search(SearchQuery("lantern", limit=4, cursor=cursor)).value
        for hit in page.hits:
            assert package().record(hit.ref).value.ref == hit.ref
        shown += [hit.id for hit in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            break
    whole = single.search(SearchQuery("lantern", limit=100)).value
    assert sorted(shown) == sorted(hit.id for hit in whole.hits)


def test_grants_that_overlap_show_a_record_once_and_read_what_either_shows(house: House) -> None:
    halves = {
        "early": ({"connection_id": "mail-home", "resources": ["m1"], "stream": "messages"},),
        "late": ({"connection_id": "mail-home", "resources": ["m1", "m2"], "stream": "messages"},),
    }
    package = of_grants(house, halves)
    page = package().search(SearchQuery("lantern")).value
    assert sorted(hit.ref.record_id for hit in page.hits) == ["m1", "m2"]
    read = package().record(RecordRef("messages", "m2", "mail-home"))
    assert read.value.ref.record_id == "m2"
    error = refused(lambda rs: rs.record(RecordRef("messages", "m3", "mail-home")), package())
    assert isinstance(error, (NotFound, Forbidden))


def test_a_blob_is_read_through_whichever_grant_of_its_connection_shows_it(house: House) -> None:
    halves = {
        name: ({"connection_id": "mail-home", "stream": name},)
        for name in ("messages", "attachments")
    }
    package = of_grants(house, halves)
    blob = package().blob("text-home", connection_id="mail-home")
    assert b"".join(blob.chunks(0, blob.size_bytes)).startswith(b"A plain report")
    error = refused(lambda rs: rs.blob("nowhere", connection_id="mail-home"), package())
    assert error.code == "blob_not_found"


def test_a_count_is_that_of_every_source_that_answered_shown_or_not() -> None:
    crowd = Crowd([Plan(1), Plan(1)])
    first, second = crowd.pages(1)
    for page in (first, second):
        assert (page["meta"]["count"], page["meta"]["count_accuracy"]) == (2, "exact")
