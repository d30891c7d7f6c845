"""A repeated call is answered faster but never differently, whatever changed in between."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import orjson
import pytest
from flask import Flask
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evidence.errors import NotFound
from evidence.limits import BUDGETS
from evidence.manifest import parse
from service.access.guard import Access, Guard
from service.mcp import blueprint as mcp
from service.mcp.surface import RecordsSurface
from service.mcp.answer_cache import AnswerCache
from service.meaning.building import Progress
from service.meaning.building import build as build_vectors
from service.operations import OPERATIONS
from service.records.opening import open_writer
from service.records.writing.streams import declare
from tests.helpers import small
from tests.helpers.api import Answer, Api
from tests.helpers.operated import operated
from tests.helpers.posting import JSON, LEGACY, MODERN, legacy_body, modern_body, modern_headers
from tests.helpers.trigrams import Trigrams
from tests.helpers.stores import EMITTED_AT, Row, bring, build
from tests.helpers.worlds import House

SOON = timedelta(seconds=1.5)
OFF = {"RUNG_ANSWER_CACHE_BYTES": "0"}
ONLY_SUBJECTS = {"connection_id": "mail-work", "stream": "messages", "fields": ["id", "subject"]}
CHOSEN = {"folder": "inbox", "sender": "Ada Brandt"}

#: (tool, arguments): some differ only in spelling, some are refused.
CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("search", {"query": "invoice"}),
    ("search", {"query": "invoice", "limit": 1}),
    ("search", {"query": "invoice", "limit": 1.0}),
    ("search", {"query": "invoice", "limit": True}),
    ("query_records", {"stream": "messages", "connection_id": "mail-work", "filter": CHOSEN}),
    (
        "query_records",
        {
            "connection_id": "mail-work",
            "filter": dict(reversed(CHOSEN.items())),
            "stream": "messages",
            "limit": 3,
        },
    ),
    ("aggregate", {"stream": "messages", "metric": "count"}),
    ("fetch", {"id": "mail-work/messages:m_002"}),
    ("fetch", {"id": "mail-work/messages:nowhere"}),
    ("read_record_field", {"id": small.LONG_ID, "field_path": "body", "query": "4711"}),
    ("schema", {}),
)
ERAS = (*LEGACY, MODERN)


class Counting(RecordsSurface):
    """The records surface, which counts its calls."""

    def __init__(self) -> None:
        super().__init__(OPERATIONS)
        self.asked = 0

    def call(self, name: str, arguments: dict[str, Any], session: Any) -> dict[str, Any]:
        self.asked += 1
        return super().call(name, arguments, session)


class Watched:
    """An application over a world that counts the calls it did not answer from the cache."""

    def __init__(self, house: House, most: int = 1_000_000) -> None:
        self.surface, self.app = Counting(), Flask("watched")
        self.app.register_blueprint(
            mcp.blueprint(
                self.surface,
                path="/mcp",
                guard=Guard(Access.CLIENT_TOKEN),
                open_session=house.app.extensions["rung"].open_session,
                answers=AnswerCache(most),
            )
        )

    def asked_by(self, *calls: tuple[Api, str, dict[str, Any]]) -> int:
        """The number of these calls that reached the surface."""
        before = self.surface.asked
        for api, tool, args in calls:
            api.mcp(tool, **args)
        return self.surface.asked - before


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(small.connections(), tmp_path)


def note(number: int) -> Row:
    """Another record that all the calls about invoices find."""
    key = f"new_{number}"
    record = {"id": key, "title": f"Invoice {number}", "text": "The invoice of somebody else."}
    return Row(record, key, EMITTED_AT, "notes")


def said(api: Api, call: tuple[str, dict[str, Any]], era: str) -> tuple[int, bytes]:
    """The status and the body of an answer, as sent."""
    params = {"name": call[0], "arguments": call[1]}
    body = modern_body("tools/call", params) if era == MODERN else legacy_body("tools/call", params)
    headers = modern_headers(body) if era == MODERN else {"MCP-Protocol-Version": era}
    found = api.send("POST", "/mcp", orjson.dumps(body), {**JSON, **headers})
    return found.status, orjson.dumps(found.body)


#: Each step may be a commit: shrinking a failure would take minutes.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)

STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 2), st.sampled_from(CALLS), st.sampled_from(ERAS)),
    st.tuples(st.just("import"), st.integers(0, 3)),
    st.tuples(st.just("revoke"), st.integers(0, 1)),
    st.tuples(st.just("narrow"), st.integers(0, 1)),
)


@settings(max_examples=10, deadline=None, phases=WITHOUT_SHRINKING)
@given(st.lists(STEPS, max_size=40), st.sampled_from([900, 30_000, 8_000_000]))
def test_with_and_without_the_cache_every_answer_is_the_same(
    steps: list[tuple[Any, ...]], most: int
) -> None:
    with TemporaryDirectory() as folder:
        house = build(small.connections(), Path(folder))
        grants = [house.grant(), house.grant(ONLY_SUBJECTS), house.grant()]
        kept = house.application(RUNG_ANSWER_CACHE_BYTES=str(most))
        plain = house.application(**OFF)
        for step in steps:
            if step[0] == "import":
                bring(house, "notes", note(step[1]))
            elif step[0] == "revoke":
                with suppress(NotFound):  # it is already
                    house.revoke(grants[step[1]][0])
            elif step[0] == "narrow":
                document = orjson.dumps({"streams": [ONLY_SUBJECTS]}).decode()
                sql = 'UPDATE "grant" SET document = ? WHERE grant_id = ?'
                house.change(sql, document, grants[step[1]][0])
            else:
                _, number, call, era = step
                token = grants[number][1]
                expected = said(Api(plain, token), call, era)
                for _ in range(2):
                    assert said(Api(kept, token), call, era) == expected


def test_a_repeated_call_is_answered_from_memory_in_both_eras(house: House) -> None:
    watched = Watched(house)
    api = Api(watched.app, house.grant()[1])
    for era in ERAS:
        before = watched.surface.asked
        first = said(api, CALLS[0], era)
        assert first[0] == 200
        assert [said(api, CALLS[0], era) for _ in range(3)] == [first] * 3
        assert watched.surface.asked == before + 1, "each revision has answers of its own"


def test_any_commit_makes_the_next_call_be_asked_anew(house: House) -> None:
    watched = Watched(house)
    grant_id, token = house.grant()
    call = (Api(watched.app, token), "search", {"query": "invoice"})
    assert watched.asked_by(call, call) == 1
    bring(house, "notes", note(1))
    assert watched.asked_by(call, call) == 1
    house.grant()
    assert watched.asked_by(call, call) == 1
    house.revoke(grant_id)
    refused = call[0].post(orjson.dumps(legacy_body("tools/call", {"name": "schema"})))
    assert refused.status == 401 and refused.body["error"]["data"]["code"] == "grant_revoked"


def test_building_vectors_changes_no_answer_and_no_bookmark(house: House) -> None:
    with open_writer(house.path) as writer:
        documents = [manifest.document for manifest in writer.manifests("mail-work")]
        for document in documents:
            search = document["query"].get("search", {})
            search["semantic_fields"] = search.get("lexical_fields", [])
        declare(writer, "mail-work", parse({"streams": documents}))
    watched = Watched(house)
    api = Api(watched.app, house.grant()[1])
    whole = Api(house.app, house.grant()[1])
    path = "/v1/streams/messages/records"
    asked = {"connection_id": "mail-work", "limit": 100}
    feed = whole.rest(path, **asked, changes_since="beginning").body
    call = (api, "search", {"query": "invoice"})
    assert watched.asked_by(call, call) == 1

    steps = list[Progress]()
    build_vectors(house.path, Trigrams(), Event(), steps.append)
    assert steps[-1].vectors > 5
    with open_writer(house.path):
        """Closing moves the log into the file, which must not matter either."""
    assert watched.asked_by(call, call) == 0
    after = whole.rest(path, **asked, changes_since=feed["next_changes_since"]).body
    assert after["data"] == []
    assert after["next_changes_since"] == feed["next_changes_since"]
    assert whole.rest(path, **asked, changes_since="beginning").body == feed
    bring(house, "notes", note(1))
    assert watched.asked_by(call, call) == 1


def test_another_token_and_other_arguments_have_answers_of_their_own(house: House) -> None:
    watched = Watched(house)
    wide, narrow, twin = (
        Api(watched.app, house.grant(*entries)[1]) for entries in ((), (ONLY_SUBJECTS,), ())
    )
    asked = {"query": "invoice"}
    callers = [(api, "search", asked) for api in (wide, narrow, twin)]
    assert watched.asked_by(*callers, *callers) == 3
    assert wide.mcp("search", **asked) == twin.mcp("search", **asked)
    assert wide.mcp("search", **asked) != narrow.mcp("search", **asked)
    spelled = [(wide, "search", {**asked, "limit": limit}) for limit in (1, 1.0)]
    assert watched.asked_by(*spelled, *spelled) == 2


def test_errors_are_asked_anew_each_time(house: House) -> None:
    watched = Watched(house)
    api = Api(watched.app, house.grant()[1])
    wrong = [
        (api, "fetch", {"id": "mail-work/messages:nowhere"}),
        (api, "search", {"query": "invoice", "limit": 0}),
        (api, "search", {}),
    ]
    assert watched.asked_by(*wrong, *wrong) == 6
    assert all(api.mcp(tool, **args)["isError"] for api, tool, args in wrong)


def test_arguments_no_tool_takes_are_refused_as_ever(house: House) -> None:
    arguments = {"query": "invoice", "filter": "deep"}
    sent = orjson.dumps(legacy_body("tools/call", {"name": "search", "arguments": arguments}))
    around = 3  # the message, its params and the arguments
    kept, plain = (Api(app, house.grant()[1]) for app in (house.app, house.application(**OFF)))
    for levels, refused in ((BUDGETS.json_levels - around, "result"), (300, "error")):
        body = sent.replace(b'"deep"', b"[" * levels + b"]" * levels)
        answers = [api.post(body).body for api in (kept, plain, kept)]
        assert answers[0] == answers[1] == answers[2]
        assert list(answers[0]) == ["jsonrpc", "id", refused]
        assert refused == "error" or answers[0]["result"]["isError"]


def test_a_grant_ends_at_its_second_though_its_answers_are_known(house: House) -> None:
    end = datetime.now(UTC) + SOON
    watched = Watched(house)
    api = Api(watched.app, house.grant(expires_at=end.isoformat())[1])
    body = orjson.dumps(legacy_body("tools/call", {"name": "search", "arguments": CALLS[0][1]}))
    while (answer := api.post(body)).status == 200:
        assert datetime.now(UTC) < end + SOON, "a grant was honoured after its end"
    assert datetime.now(UTC) >= end
    assert answer.body["error"]["data"]["code"] == "grant_expired"
    assert watched.surface.asked == 1


def test_repeated_calls_are_admitted_counted_and_told_as_any_other(house: House) -> None:
    app = house.application(RUNG_RATE_LIMIT_TOKEN="3/hour")
    api = Api(app, house.grant()[1])
    body = orjson.dumps(legacy_body("tools/call", {"name": "search", "arguments": CALLS[0][1]}))
    answers = [api.post(body, **{"Request-Id": f"call-{n}"}) for n in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers[:3]] == ["2", "1", "0"]
    assert [answer.headers["Request-Id"] for answer in answers] == [f"call-{n}" for n in range(4)]
    assert answers[0].body == answers[2].body


def test_a_cache_of_nothing_keeps_nothing(house: House) -> None:
    watched = Watched(house, most=0)
    call = (Api(watched.app, house.grant()[1]), "schema", {})
    assert watched.asked_by(call, call, call) == 3


@pytest.fixture
def served(house: House) -> Iterator[tuple[House, str]]:
    """The world behind a real server, where any thread of two workers may answer."""
    with operated(house.environment, workers=2, threads=2) as found:
        yield house, found.url


def many(api: Api, body: bytes, times: int = 24) -> list[Answer]:
    """The answers to a repeated call, several at once."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: api.post(body), range(times)))


def test_no_thread_of_any_worker_answers_from_before_a_commit(served: tuple[House, str]) -> None:
    house, url = served
    plain = house.application(**OFF)
    grant_id, token = house.grant()
    body = orjson.dumps(legacy_body("tools/call", {"name": "search", "arguments": CALLS[0][1]}))
    for number in range(4):
        expected = Api(plain, token).post(body).body
        assert all(answer.body == expected for answer in many(Api(url, token), body))
        bring(house, "notes", note(number))
        assert Api(plain, token).post(body).body != expected
    house.revoke(grant_id)
    assert {answer.status for answer in many(Api(url, token), body)} == {401}
