"""What exists but is not granted is answered as if it did not exist, to the byte, everywhere.

Only the echo of the requested name may differ.
"""

from pathlib import Path
from typing import Any

import pytest

from evidence import handles
from evidence.handles import RecordRef
from tests.helpers import canaries, worlds
from tests.helpers.api import Api, path, record_path
from tests.helpers.canaries import CONNECTIONS, FIELDS, LEDGER, NOTES, RELATIONS, TASKS, VIEWS
from tests.helpers.trigrams import embed_all
from tests.helpers.uris import record_uri, stream_uri
from tests.spec.isolation_calls import PLAN, Call, ask, written

HERE = CONNECTIONS[0]
NOTE = FIELDS[NOTES]
SHOWN = [NOTE[name] for name in ("id", "title", "kind", "amount")]
RECORDS = [canaries.key_of(HERE, 1), canaries.key_of(HERE, 2)]
ENTRY = {"connection_id": HERE, "stream": NOTES, "fields": SHOWN, "resources": RECORDS}
RECORD = str(RecordRef(NOTES, RECORDS[0], HERE))
NOWHERE = canaries.word("a name that is nowhere")
IN_NOTES = {"stream": NOTES}


@pytest.fixture(scope="module", params=["words", "vectors"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Api:
    house = worlds.build(canaries.world_of(PLAN), tmp_path_factory.mktemp("oracle"))
    return (embed_all(house) if request.param == "vectors" else house).api(ENTRY)


def tool(name: str, **args: Any) -> Call:
    return Call("mcp", name, args)


def with_field(name: str) -> list[Call]:
    counted = {**IN_NOTES, "metric": "count"}
    return [
        tool("query_records", **IN_NOTES, fields=[name]),
        tool("query_records", **IN_NOTES, fields=[SHOWN[0], name]),
        tool("query_records", **IN_NOTES, filter={name: 1}),
        tool("query_records", **IN_NOTES, filter={name: {"gte": "2026-01-01"}}),
        tool("query_records", **IN_NOTES, sort=f"-{name}"),
        tool("query_records", **IN_NOTES, changes_since="beginning", fields=[name]),
        tool("aggregate", **IN_NOTES, metric="sum", field=name),
        tool("aggregate", **counted, group_by=name),
        tool("aggregate", **counted, group_by_time=name, granularity="day"),
        tool("aggregate", **counted, filter={name: 1}),
        tool("search", query="common", streams=[NOTES], filter={name: 1}),
        tool("fetch", id=RECORD, fields=[name]),
        tool("read_record_field", id=RECORD, field_path=name),
        tool("read_record_field", id=RECORD, field_path=f"/{name}/k"),
        tool("read_record_field", id=RECORD, field_path=name, query="common"),
        tool("read_record_field", id=str(RecordRef(NOTES, NOWHERE, HERE)), field_path=name),
        Call("read", handles.field_window_uri(RecordRef(NOTES, RECORDS[0]), name), {}),
    ]


def with_stream(name: str) -> list[Call]:
    ref = RecordRef(name, RECORDS[0], HERE)
    return [
        tool("schema", stream=name),
        tool("schema", stream=name, detail="full"),
        tool("schema", stream=name, connection_id=HERE),
        tool("query_records", stream=name),
        tool("query_records", stream=name, changes_since="beginning"),
        tool("aggregate", stream=name, metric="count"),
        tool("search", query="common", streams=[NOTES, name]),
        tool("fetch", id=str(ref)),
        tool("fetch", id=str(RecordRef(name, RECORDS[0]))),
        tool("read_record_field", id=str(ref), field_path=SHOWN[0]),
        Call("read", stream_uri(name), {}),
        Call("read", record_uri(ref), {}),
        Call("rest", path(name), {}),
    ]


def with_connection(name: str) -> list[Call]:
    ref = RecordRef(NOTES, RECORDS[0], name)
    return [
        tool("schema", connection_id=name),
        tool("schema", stream=NOTES, connection_id=name),
        tool("query_records", **IN_NOTES, connection_id=name),
        tool("aggregate", **IN_NOTES, metric="count", connection_id=name),
        tool("search", query="common", connection_id=name),
        tool("fetch", id=str(ref)),
        tool("read_record_field", id=str(ref), field_path=SHOWN[0]),
        Call("read", record_uri(ref), {}),
        *(
            Call("rest", route, {alias: name})
            for alias in ("connection_id", "connector_instance_id", "connector_id")
            for route in ("/v1/streams", path(NOTES), "/v1/search?q=common", "/v1/blobs/x")
            if "?" not in route
        ),
    ]


def with_record(name: str) -> list[Call]:
    ref = RecordRef(NOTES, name, HERE)
    return [
        tool("fetch", id=str(ref)),
        tool("fetch", id=str(RecordRef(NOTES, name))),
        tool("fetch", id=str(ref), fields=SHOWN[:1], expand=[RELATIONS["tasks"]]),
        tool("read_record_field", id=str(ref), field_path=SHOWN[1]),
        tool("read_record_field", id=str(ref), field_path=SHOWN[1], query="common", match=2),
        tool("query_records", **IN_NOTES, filter={SHOWN[0]: name}),
        tool("search", query=name),
        tool("search", query=f"{name} in other words"),
        Call("read", record_uri(ref), {}),
        Call("read", handles.field_window_uri(ref, SHOWN[1]), {}),
        Call("rest", record_path(NOTES, name), {}),
    ]


def with_blob(name: str) -> list[Call]:
    route = f"/v1/blobs/{name}"
    return [Call("rest", route, {}), Call("rest", route, {"connection_id": HERE})]


def with_view(name: str) -> list[Call]:
    return [tool("query_records", **IN_NOTES, view=name)]


def with_relation(name: str) -> list[Call]:
    return [
        tool("query_records", **IN_NOTES, expand=[name]),
        tool("query_records", **IN_NOTES, expand=[name], expand_limit={name: 99}),
        tool("fetch", id=RECORD, expand=[name]),
    ]


KINDS = {
    "field": (with_field, [NOTE["body"], NOTE["at"], NOTE["tree"], NOTE["flag"]]),
    "field of another stream": (with_field, [FIELDS[TASKS]["parent"]]),
    "stream": (with_stream, [TASKS, LEDGER]),
    "connection": (with_connection, [*CONNECTIONS[1:], canaries.word("connector", 1)]),
    "record": (with_record, [canaries.key_of(HERE, 3), canaries.SHARED, canaries.key_of(HERE, 4)]),
    "blob": (with_blob, [canaries.word("blob", HERE), canaries.word("blob", CONNECTIONS[1])]),
    "view": (with_view, [VIEWS["extras"]]),
    "relation": (with_relation, [RELATIONS["tasks"], RELATIONS["ledger"]]),
}
CASES = [(kind, name) for kind, (_, names) in KINDS.items() for name in names]


def told(api: Api, call: Call, name: str) -> str:
    """The answers without the name, in any encoding of its echo."""
    shown = "\n".join(map(written, ask(api, call)))
    return shown.replace(call.name, "<uri>").replace(name, "<name>")


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{k}-{n}" for k, n in CASES])
def test_hidden_and_absent_are_told_alike(api: Api, kind: str, name: str) -> None:
    calls = KINDS[kind][0]
    for hidden, absent in zip(calls(name), calls(NOWHERE)):
        assert told(api, hidden, name) == told(api, absent, NOWHERE)


def test_a_granted_name_of_each_kind_is_told_otherwise(api: Api) -> None:
    """Otherwise all names might be refused alike, and the comparison would prove nothing."""
    for calls, name in (
        (with_field, SHOWN[1]),
        (with_stream, NOTES),
        (with_connection, HERE),
        (with_record, RECORDS[0]),
        (with_view, VIEWS["titles"]),
    ):
        pairs = list(zip(calls(name), calls(NOWHERE)))
        differing = [one for one, two in pairs if told(api, one, name) != told(api, two, NOWHERE)]
        assert len(differing) > len(pairs) // 2


def test_words_of_hidden_fields_exclude_nothing(api: Api) -> None:
    word = canaries.word("text", "later", "body", HERE, 0)
    found = [api.rest("/v1/search", q=f"common{more}").body["data"] for more in ("", f" -{word}")]
    assert found[0] and worlds.keys_of(found[0]) == worlds.keys_of(found[1])


def test_related_records_stay_inside_the_limits_of_their_own_stream(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    house = worlds.build(canaries.world_of(PLAN), tmp_path_factory.mktemp("related"))
    tasks = [canaries.word("record", HERE, TASKS, number) for number in (1, 3)]
    limits: tuple[dict[str, Any], ...] = (
        {"resources": tasks[:1]},
        {"time_constraint": {"until": "2026-04-01"}},
    )
    for limit in ({}, *limits):
        related = {"connection_id": HERE, "stream": TASKS, **limit}
        api = house.api({"connection_id": HERE, "stream": NOTES}, related)
        name = RELATIONS["tasks"]
        body = api.rest(record_path(NOTES, RECORDS[0]), expand=name).body["expanded"][name]
        assert sorted(worlds.keys_of(body["data"])) == sorted(tasks[:1] if limit else tasks)
        assert body["has_more"] is False


def test_a_reference_inside_a_value_opens_no_blob_of_another_record(tmp_path: Path) -> None:
    """A record that only names a blob inside a value gives no access to it."""
    mailbox = worlds.two_mailboxes().connections[0]
    forged = {"deep": {"blob_id": "text-home", "mime_type": "text/plain"}}
    rows = (*mailbox.rows, worlds.row("messages", "forged", headers=forged))
    world = worlds.World((worlds.Connection("mail-home", "mail", None, mailbox.streams, rows),))
    house = worlds.build(world, tmp_path)
    api = house.api({"connection_id": "mail-home", "stream": "messages"})
    result = api.mcp("read_record_field", id="messages:forged", field_path="/headers/deep")
    assert "plain report" not in str(result)
    assert api.get("/v1/blobs/text-home").status == 404
    everything = house.api()
    found = everything.mcp("read_record_field", id="attachments:a0", field_path="file")
    assert "plain report" in found["content"][0]["text"]
