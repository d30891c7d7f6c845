"""What a grant hides changes nothing: two stores with the same granted data answer alike.

The second store (see `tests/helpers/variants.py`) has other names and values in everything that the
grant hides, other hidden records, other hidden changes and one more connection. Every answer to
the same call, and to every call that answer offers, must be equal: status, headers, body, the order
of hits, counts, cursors, calls. The request id is fixed by the caller.

Left out, on purpose:
- Bookmarks of `changes_since`. They seal a position in the store's one log, so they differ between
  two stores. Their length is compared, and what follows from them, each in its own store.
- `emitted_at`. It is the time of a record's last import, whatever changed; both stores agree on it.
- Time. How long an answer takes is not checked.

All of it holds with vectors too, which then both stores have of all their texts.
"""

import re
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.records.intake import Row
from tests.helpers import canaries, variants, worlds
from tests.helpers.api import Answer, Api, path
from tests.helpers.canaries import NOTES, RELATIONS
from tests.helpers.trigrams import embed_all
from tests.spec.isolation_calls import (
    FENCE,
    PLAN,
    QUERY,
    TERM,
    Call,
    ask,
    followed,
    grants,
    worlds_of_calls,
    written,
)

pytestmark = pytest.mark.slow

GRANT_ID = "grt_0123456789abcdef"
ANY = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
BOOKMARK = re.compile(r'"next_changes_since": "([^"]+)"|"next_cursor": "(c\.[^"]+)"')
SEVERAL = st.lists(TERM, min_size=2, max_size=3).map(" ".join)

VECTORS = pytest.mark.parametrize("vectored", [False, True], ids=["words", "vectors"])

Scene = tuple[list[dict[str, Any]], list[Call]]


def opened(
    plan: canaries.Plan, folder: str, entries: list[dict[str, Any]], *, vectored: bool
) -> Api:
    """A client of a plan's world, with a grant that has the same id in every store."""
    Path(folder).mkdir()
    house = worlds.build(canaries.world_of(plan), Path(folder))
    if vectored:
        embed_all(house)
    grant_id, token = house.grant(*entries)
    house.change('UPDATE "grant" SET grant_id = ? WHERE grant_id = ?', GRANT_ID, grant_id)
    return Api(house.app, token)


def agenda(entry: dict[str, Any]) -> list[Call]:
    """The calls that are always made to a granted stream, in addition to random ones."""
    stream, fields = entry["stream"], entry["fields"]
    where = {"stream": stream, "connection_id": entry["connection_id"]}
    near = {"streams": [stream], "connection_id": entry["connection_id"], "limit": 100}
    calls = [
        Call("mcp", "query_records", {**where, "count": "exact", "limit": 2}),
        Call("mcp", "query_records", {**where, "changes_since": "beginning", "limit": 2}),
        Call("rest", path(stream, "records"), {"window": "exact", "fields": fields[0]}),
        Call("mcp", "aggregate", {**where, "metric": "count", "group_by": fields[-1]}),
        *(Call("mcp", "search", {**near, "query": text}) for text in ("common", "common -bulk")),
        Call("rest", "/v1/streams", {}),
    ]
    relations = RELATIONS["tasks"] if stream == NOTES else RELATIONS["parent"]
    return [*calls, Call("mcp", "query_records", {**where, "expand": [relations], "limit": 100})]


class Talk:
    """The answers of one store, with bookmarks replaced by their lengths."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.bookmarks: list[str] = []

    def ask(self, call: Call) -> tuple[list[Answer], str]:
        answers = ask(self.api, call)
        told = "\n".join(map(written, answers))
        self.bookmarks += [one or other for one, other in BOOKMARK.findall(told)]
        if self.bookmarks:
            for bookmark in sorted(set(self.bookmarks), key=len, reverse=True):
                told = told.replace(bookmark, f"<bookmark of {len(bookmark)}>")
            told = FENCE.sub("<fence>", told)
        return answers, told


def agree(told: str, there: str, call: Call) -> None:
    """Fails unless two stores gave the same answers; the message shows the first difference."""
    if told != there:
        place = next((n for n, (a, b) in enumerate(zip(told, there)) if a != b), 0)
        near = slice(max(0, place - 300), place + 300)
        raise AssertionError(f"{call}\n--- one: {told[near]}\n--- two: {there[near]}")


@VECTORS
@ANY
@given(scene=worlds_of_calls(QUERY | SEVERAL), seed=st.integers(0, 2**32))
def test_what_is_hidden_changes_no_answer(vectored: bool, scene: Scene, seed: int) -> None:
    entries, asked = scene
    varied = variants.vary(PLAN, entries, Random(seed))
    with TemporaryDirectory() as folder:
        one = Talk(opened(PLAN, f"{folder}/one", entries, vectored=vectored))
        other = Talk(opened(varied, f"{folder}/two", entries, vectored=vectored))
        for call in [*(call for entry in entries for call in agenda(entry)), *asked]:
            answers, told = one.ask(call)
            theirs, told_there = other.ask(call)
            agree(told, told_there, call)
            mine, yours = followed(call, answers), followed(call, theirs)
            assert [offer.kind for offer in mine] == [offer.kind for offer in yours]
            for offer, same in zip(mine, yours):
                agree(one.ask(offer)[1], other.ask(same)[1], offer)


@VECTORS
@settings(ANY, max_examples=10)
@given(entries=grants(), queries=st.lists(SEVERAL, min_size=2, max_size=6), seed=st.integers())
def test_what_is_hidden_changes_no_order_of_hits(
    vectored: bool, entries: list[dict[str, Any]], queries: list[str], seed: int
) -> None:
    varied = variants.vary(PLAN, entries, Random(seed))
    with TemporaryDirectory() as folder:
        one = opened(PLAN, f"{folder}/one", entries, vectored=vectored)
        other = opened(varied, f"{folder}/two", entries, vectored=vectored)
        for query in queries:
            assert hits_of(one, query) == hits_of(other, query), query


def hits_of(api: Api, query: str) -> tuple[int, list[Any], Any]:
    """The hits of a query of several words, best first, and the rest of the answer."""
    status, _, body = api.rest("/v1/search", q=query, limit=100)
    hits = [
        (hit["record_url"], hit.get("related"), hit.get("begins"), sorted(hit["matched_fields"]))
        for hit in body.get("data", ())
    ]
    return status, hits, body.get("meta") or body["error"]


@VECTORS
def test_a_cursor_tells_of_changes_of_granted_streams_alone(vectored: bool, tmp_path: Path) -> None:
    house = worlds.build(canaries.world_of(PLAN), tmp_path)
    if vectored:
        embed_all(house)
    connection, query = canaries.CONNECTIONS[0], "common filler"
    api = house.api({"connection_id": connection, "stream": NOTES})
    first = api.rest("/v1/search", q=query, limit=1).body

    def warned() -> list[str]:
        if vectored:
            embed_all(house)
        page = api.rest("/v1/search", q=query, limit=1, cursor=first["next_cursor"]).body
        return [one["code"] for one in page["meta"]["warnings"]]

    assert warned() == []
    for stream, name, codes in (
        (canaries.TASKS, "note", []),
        (NOTES, "body", ["store_changed"]),
    ):
        fields = canaries.FIELDS[stream]
        data = {fields["id"]: "late", fields[name]: "common"}
        house.add(connection, Row(data, "late", canaries.EMITTED_AT, stream))
        assert warned() == codes


def test_the_second_store_does_differ_and_its_owner_sees_it(tmp_path: Path) -> None:
    """The control: with everything granted in both, the two stores answer differently."""
    entry = {"connection_id": canaries.CONNECTIONS[0], "stream": canaries.NOTES}
    shown = list(canaries.FIELDS[canaries.NOTES].values())[:3]
    plan = variants.vary(PLAN, [{**entry, "fields": shown}], Random(7))
    one = worlds.build(canaries.world_of(PLAN), tmp_path)
    (tmp_path / "two").mkdir()
    other = worlds.build(canaries.world_of(plan), tmp_path / "two")
    told = [house.api().rest("/v1/search", q="common", limit=100).body for house in (one, other)]
    assert told[0]["meta"]["count"] != told[1]["meta"]["count"]
    assert len(other.api().rest("/v1/streams").body["data"]) > 6
