"""Who may ask, and what a narrower grant shows: nothing outside it, and no trace of the rest."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from service import settings
from service.settings import SettingsError
from tests.helpers.caller import Local
from tests.helpers.reading import printed_calls
from tests.helpers.stores import client
from tests.helpers.worlds import House
from tests.spec.scenarios import scenario

SUBJECTS = {
    "connection_id": "mail-work",
    "stream": "messages",
    "fields": ["id", "subject", "received_at"],
}


@pytest.fixture(scope="module")
def narrow(small_house: House) -> Local:
    """A client that may read the subjects of one mailbox."""
    return client(small_house, SUBJECTS)


@scenario("004/owner/owner-tokens-refused")
@pytest.mark.parametrize("token", ["rung_owner_abc", "rung_owner_"])
def test_an_owner_token_is_refused_on_both_surfaces_before_anything_is_done(
    small: Local, token: str
) -> None:
    owner = {"Authorization": f"Bearer {token}"}
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    answer = small.api.post(body, **owner)
    assert answer.status == 403 and "result" not in answer.body
    assert "rung grant create" in orjson.dumps(answer.body).decode()
    assert small.api.get("/v1/schema", **owner).status == 403


@scenario("004/owner/owner-tokens-refused")
@pytest.mark.parametrize("variable", settings.OWNER_VARIABLES)
def test_an_owner_credential_in_the_environment_stops_the_start(variable: str) -> None:
    with pytest.raises(SettingsError, match="an owner credential, which Rung refuses") as raised:
        settings.load({variable: "s3cret"})
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("token", ["rung_unknown", "x", "Bearer"])
def test_an_unknown_token_is_401_on_both_surfaces(small: Local, token: str) -> None:
    unknown = {"Authorization": f"Bearer {token}"}
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    for answer in (small.api.post(body, **unknown), small.api.get("/v1/schema", **unknown)):
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="rung"')


@scenario("004/tools/same-contract-same-grant")
@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        ("query_records", {"stream": "notes"}, "grant_stream_not_allowed"),
        ("query_records", {"stream": "nonsense"}, "grant_stream_not_allowed"),
        ("query_records", {"stream": "messages", "fields": ["body"]}, "field_not_granted"),
        ("query_records", {"stream": "messages", "fields": ["nonsense"]}, "field_not_granted"),
        ("query_records", {"stream": "messages", "connection_id": "notes"}, "connection_not_found"),
        ("query_records", {"stream": "messages", "connection_id": "x"}, "connection_not_found"),
        ("fetch", {"id": "mail-home/messages:m_001"}, "connection_not_found"),
        ("fetch", {"id": "mail-work/messages:nonsense"}, "not_found"),
        ("search", {"query": "flow", "streams": ["notes"]}, "grant_stream_not_allowed"),
        ("schema", {"stream": "notes"}, "grant_stream_not_allowed"),
    ],
)
def test_outside_the_grant_is_one_answer_whether_it_exists_or_not(
    narrow: Local, tool: str, args: dict[str, Any], code: str
) -> None:
    assert narrow.fails(tool, **args).error["code"] == code


@pytest.mark.parametrize("field", ["body", "nonsense"])
def test_a_field_outside_the_grant_cannot_be_read_filtered_sorted_or_counted(
    narrow: Local, field: str
) -> None:
    read = {"id": "mail-work/messages:m_002", "field_path": field}
    answers = [narrow.fails("read_record_field", **read)]
    asked = {"stream": "messages"}
    answers.append(narrow.fails("query_records", **asked, filter={field: "x"}))
    answers.append(narrow.fails("query_records", **asked, sort=field))
    answers.append(narrow.fails("aggregate", **asked, metric="count", group_by=field))
    params = [answer.error["param"] for answer in answers]
    assert params == ["field_path", "filter", "sort", "group_by"]
    assert all(field in answer.text for answer in answers)
    assert answers[0].error["code"] == "field_not_granted"


def test_words_of_a_field_outside_the_grant_are_not_found(narrow: Local, small: Local) -> None:
    assert small.ok("search", query="settled").structured["results"]
    answer = narrow.ok("search", query="settled")
    assert answer.structured["results"] == [] and " all=0 some=0 " in answer.lines[0]
    assert answer.structured["data"]["meta"]["absent_words"] == ["settled"]
    found = narrow.ok("search", query="invoice")
    assert {result["id"] for result in found.structured["results"]} == {
        "mail-work/messages:m_002",
        "mail-work/messages:m_003",
    }


@scenario("001/tokens/omissions-are-callable")
def test_every_call_that_is_printed_stays_inside_the_grant(narrow: Local) -> None:
    for answer in (
        narrow.ok("schema"),
        narrow.ok("schema", stream="messages"),
        narrow.ok("search", query="standup", limit=2),
        narrow.ok("query_records", stream="messages", limit=2),
        narrow.ok("fetch", id="mail-work/messages:m_long"),
    ):
        for hidden in ("body", "folder", "mail-home", "diary"):
            assert hidden not in answer.text, answer.text
        for call in printed_calls(answer.text):
            narrow.ok(call.tool, **call.args)


def test_a_revoked_grant_ends_with_the_next_request(small_house: House) -> None:
    grant_id, token = small_house.grant(SUBJECTS)
    one = Local(small_house.app, token)
    assert one.ok("schema")
    small_house.revoke(grant_id)
    assert one.api.get("/v1/schema").status == 401
    assert one.api.get("/v1/schema").error["code"] == "grant_revoked"


@scenario("004/ambiguity/bounded-candidates")
def test_an_ambiguous_read_lists_a_dozen_candidates_of_many_and_the_way_to_all(
    wide: Local,
) -> None:
    answer = wide.fails("fetch", id="messages:w1")
    error = answer.error
    assert error["code"] == "ambiguous_connection" and error["retry_with"] == "connection_id"
    assert error["available_connection_count"] == 64
    listed = error["available_connections"]
    assert len(listed) == 12 and len(answer.text.encode()) <= 4_096
    for entry in listed:
        assert {"grant_id", "connector_key", "connection_id"} <= set(entry)
        assert entry["connection_id"] in answer.text
    assert "12 of 64 connections" in answer.text and "schema {}" in answer.text
    chosen = listed[3]["connection_id"]
    assert (
        wide.ok("fetch", id="messages:w1", connection_id=chosen).structured["id"].startswith(chosen)
    )


@scenario("004/ambiguity/bounded-candidates")
def test_a_small_ambiguity_lists_every_candidate(small: Local) -> None:
    answer = small.fails("fetch", id="messages:m_001")
    ids = [entry["connection_id"] for entry in answer.error["available_connections"]]
    assert sorted(ids) == ["mail-home", "mail-work"]


@pytest.mark.parametrize(
    "tool, args",
    [
        ("search", {"query": "lantern", "streams": ["messages"]}),
        ("query_records", {"stream": "messages"}),
        ("aggregate", {"stream": "messages", "metric": "count"}),
        ("schema", {"stream": "messages"}),
        ("fetch", {"id": "notes/messages:m_001"}),
    ],
)
def test_a_stream_of_another_connection_is_refused_with_the_connections_that_have_it(
    small: Local, narrow: Local, tool: str, args: dict[str, Any]
) -> None:
    at = {} if "id" in args else {"connection_id": "notes"}
    error = small.fails(tool, **args, **at).error
    assert error["code"] == "grant_stream_not_allowed" and "has no stream" in error["message"]
    listed = [one["connection_id"] for one in error["available_connections"]]
    assert listed == ["mail-home", "mail-work"]
    retries = error.get("next", [])
    assert bool(retries) is ("id" not in args)
    for call in retries:
        assert small.ok(call["tool"], **call["args"])
    hidden = narrow.fails("query_records", stream="notes", connection_id="mail-work").error
    assert "available_connections" not in hidden and "not in this grant" in hidden["message"]


def test_tokens_never_appear_in_answers(small: Local, small_house: House) -> None:
    token = small.api.token or ""
    for answer in (small.ok("schema"), small.fails("fetch", id="x")):
        assert token not in answer.text
    if isinstance(small_house.path, Path):
        assert token.encode() not in small_house.path.read_bytes()
