"""Walking the pages of a search gives each record once, also where neighbours are ranked too."""

from typing import Any

import pytest

from tests.helpers.caller import Local
from tests.helpers.stores import BODY, TIME, WHOLE, WORD, Connection, Stream, build, client

MESSAGES = 260
ROLES = {
    "thread": {**WORD, "x_pdpp_role": "thread"},
    "number": {**WHOLE, "x_pdpp_role": "position"},
}
FIELDS = {"id": WORD, "kind": WORD, "at": TIME, "body": BODY, **ROLES}
QUERY: dict[str, Any] = {
    "exact_filters": ["kind"],
    "range_filters": {"at": ["gte", "gt", "lte", "lt"]},
}


def message(number: int, thread: str, body: str, kind: str = "a") -> dict[str, Any]:
    at = f"2026-01-{1 + number % 28:02}T08:00:00Z"
    id = f"{thread}{number:03}"
    return {"id": id, "kind": kind, "at": at, "body": body, "thread": thread, "number": number}


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """A long thread about a lantern, and short ones in which messages are near and far."""
    records = [
        message(number, "long", "lantern" + " gravel" * (number * 37 % 11))
        for number in range(MESSAGES)
    ]
    far = ("amber gravel gravel", "gravel", "gravel", "gravel", "amber gravel gravel")
    records += [message(n, "far", body, kind) for n, (body, kind) in enumerate(zip(far, "abbba"))]
    records += [message(n, "near", "amber gravel gravel gravel") for n in range(2)]
    records.append(message(0, "lone", "amber gravel"))
    stream = Stream("chat", FIELDS, records, ["body"], "at", QUERY)
    return client(build([Connection("c", [stream], "key")], tmp_path_factory.mktemp("chat")))


@pytest.mark.parametrize("limit", [7, 100])
def test_all_pages_together_have_each_record_once(chat: Local, limit: int) -> None:
    walk = [answer.structured for answer in chat.pages("search", query="lantern", limit=limit)]
    hits = [hit for page in walk for hit in page["results"]]
    assert len({hit["id"] for hit in hits}) == len(hits) == MESSAGES
    assert [hit["rank"] for hit in hits] == list(range(1, MESSAGES + 1))
    assert all(page["results"] for page in walk)
    assert [page["data"]["has_more"] for page in walk] == [True] * (len(walk) - 1) + [False]
    assert {page["data"]["meta"]["counts"]["some"] for page in walk} == {MESSAGES}
    assert all(page["data"]["meta"]["recall"]["complete"] for page in walk)


def test_the_pages_of_rest_have_each_record_once(chat: Local) -> None:
    target, ids = "/v1/search?q=lantern", list[str]()
    while target:
        body = chat.get(target)
        assert body["data"]
        ids += [hit["record_key"] for hit in body["data"]]
        target = body.get("links", {}).get("next")
    assert len(set(ids)) == len(ids) == MESSAGES


def test_a_filter_brings_no_messages_of_a_thread_nearer(chat: Local) -> None:
    """Neighbours lift each other by their places in the thread that the grant shows."""
    found = chat.ok("search", query="amber", filter={"kind": "a"}).structured["results"]
    threads = [hit["record_id"].rstrip("0123456789") for hit in found]
    assert threads == ["near", "near", "lone", "far", "far"]


@pytest.fixture(scope="module")
def tiers(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """One record with all words of a question, 21 with a rarer one, many with a common one."""
    bodies = ["amber basket lantern", *["basket"] * 21, *["lantern"] * 26, *["gravel"] * 52]
    records = [{"id": f"r{number:03}", "body": body} for number, body in enumerate(bodies)]
    stream = Stream("notes", {"id": WORD, "body": BODY}, records, ["body"])
    return client(build([Connection("c", [stream], "key")], tmp_path_factory.mktemp("tiers")))


def test_the_tail_is_cut_once_after_the_third_hit(tiers: Local) -> None:
    """Each tier scores less than a tenth of the one before; later pages have hits of two tiers."""
    query = "amber basket lantern"
    pages = [page.structured for page in tiers.pages("search", query=query, limit=8)]
    assert [len(page["results"]) for page in pages] == [3, 8, 8, 8, 8, 8, 5]
    assert [page["data"]["meta"].get("tail_cut") for page in pages] == [True, *[None] * 6]
    assert len(tiers.get("/v1/search?q=amber+basket+lantern&limit=8")["data"]) == 8
