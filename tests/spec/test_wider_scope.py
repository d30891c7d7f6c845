"""Words that occur only outside the scope of a search: the answer has the call that finds them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.caller import Answer, Local
from tests.helpers.reading import printed_calls
from tests.helpers.stores import TEXT, TIME, WORD, Connection, Stream, build, client
from tests.helpers.worlds import House

FIELDS = {"id": WORD, "kind": WORD, "at": TIME, "body": TEXT}
KINDS: dict[str, Any] = {"range_filters": {"at": ["gte", "gt", "lte", "lt"]}}


def stream(name: str, *records: dict[str, Any]) -> Stream:
    return Stream(name, FIELDS, records, ["body"], cursor="at", query=KINDS)


def record(id: str, body: str, year: int = 2025) -> dict[str, Any]:
    return {"id": id, "kind": id[0], "at": f"{year}-05-02T08:00:00Z", "body": body}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    mail = stream("mail", record("m1", "amber basket"), record("n2", "amber lantern", 2020))
    notes = stream("notes", record("n1", "cobalt lantern"))
    hidden = stream("hidden", record("h1", "quagga secret"))
    other = stream("mail", record("o1", "indigo meadow"))
    connections = [
        Connection("one", [mail, notes, hidden], "key"),
        Connection("two", [other], "key"),
    ]
    return build(connections, tmp_path_factory.mktemp("scopes"))


@pytest.fixture(scope="module")
def caller(house: House) -> Iterator[Local]:
    shown = [("one", "mail"), ("one", "notes"), ("two", "mail")]
    yield client(house, *({"connection_id": c, "stream": s} for c, s in shown))


def offered(answer: Answer) -> list[dict[str, Any]]:
    assert answer.structured["results"] == []
    found = [call.args for call in printed_calls(answer.text) if call.why == "retry"]
    data = [one["args"] for one in answer.structured["data"]["next"] if one["why"] == "retry"]
    assert data == found
    return found


@pytest.mark.parametrize(
    ("asked", "wider"),
    [
        ({"query": "cobalt", "streams": ["mail"]}, {"query": "cobalt"}),
        ({"query": "indigo", "connection_id": "one"}, {"query": "indigo"}),
        (
            {"query": "basket", "streams": ["mail"], "filter": {"id": "n2"}},
            {"query": "basket", "streams": ["mail"]},
        ),
        ({"query": "lantern", "since": "2026-01-01"}, {"query": "lantern"}),
        (
            {"query": "cobalt", "streams": ["mail"], "filter": {"id": "n2"}, "limit": 5},
            {"query": "cobalt", "limit": 5},
        ),
        (
            {"query": "indigo", "connection_id": "one", "streams": ["notes"], "sort": "newest"},
            {"query": "indigo", "sort": "newest"},
        ),
        (
            {"query": "cobalt meadow", "words": "all", "connection_id": "two"},
            {"query": "cobalt meadow", "words": "any", "connection_id": "two"},
        ),
        (
            {"query": "cobalt basket", "words": "all", "connection_id": "two"},
            {"query": "cobalt basket", "words": "any"},
        ),
    ],
)
def test_the_nearest_scope_with_hits_is_offered(
    caller: Local, asked: dict[str, Any], wider: dict[str, Any]
) -> None:
    (args,) = offered(caller.ok("search", **asked))
    assert args == wider
    assert caller.ok("search", **args).structured["results"]


def test_no_scope_is_wider_than_the_grant(caller: Local) -> None:
    for scope in ({"streams": ["mail"]}, {"connection_id": "one"}, {"until": "2021-01-01"}):
        answer = caller.ok("search", query="quagga", **scope)
        assert offered(answer) == [] and "No record contains: quagga." in answer.text


def test_a_scope_does_not_offer_itself(caller: Local) -> None:
    assert offered(caller.ok("search", query="zymurgy", connection_id="one")) == []
    assert offered(caller.ok("search", query="zymurgy")) == []


def test_rest_names_the_arguments_in_a_warning(caller: Local) -> None:
    meta = caller.get("/v1/search?q=cobalt&streams=mail")["meta"]
    assert meta.keys() == {"count", "count_accuracy", "counts", "ranking", "recall", "warnings"}
    (warning,) = meta["warnings"]
    assert warning["code"] == "no_hits" and "To get hits" in warning["message"]
    assert warning["detail"] == {"retry_arguments": {"streams": None}}


def test_rest_counts_what_newest_leaves_out_in_a_warning(caller: Local) -> None:
    body = caller.get("/v1/search?q=amber&sort=newest&limit=1")
    (warning,) = body["meta"]["warnings"]
    assert warning["detail"] == {"left_out": 1} and "left_out" not in body["meta"]
    answer = caller.ok("search", query="amber", sort="newest", limit=1)
    assert "Matching records left out: 1." in answer.text
