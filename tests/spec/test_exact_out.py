"""Output equals what a source or the store has: relations, titles, names, counts and cells."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evidence.handles import RecordRef
from evidence.model import Source
from evidence.records import Record
from evidence.work import Deadline
from renderers.document import lay_out
from service import keys
from service.access import packages
from service.access.registry import Registry
from service.pdpp.decode.records import decode_record
from service.pdpp.encode import encode_record
from service.records.opening import open_writer
from service.sources.remote.remote_authority import remote_member
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.two_owners import Pair, local_member, two
from tests.helpers.shell import Shell
from tests.helpers.worlds import SECRET, Connection, House, World, row, text

ODD = {
    "formula": "=HYPERLINK(1)",
    "plus": "+1 555",
    "minus": "-1+cmd",
    "at": "@SUM(1)",
    "tab": "\t=1",
    "return": "\r=1",
    "negative": "-12.50",
    "control": "a\x1b[31mb\u202ec",
    "lines": "one\r\ntwo = 2",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with two(tmp_path_factory.mktemp("pair")) as made:
        yield made


def test_expand_capabilities_name_the_key_field_of_the_parent(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    full = api.rest("/v1/streams/threads").body["expand_capabilities"]
    assert [one["child_parent_key_field"] for one in full] == ["thread_id"]
    (connector,) = api.rest("/v1/schema", detail="compact").body["connectors"]
    (threads,) = (one for one in connector["streams"] if one["name"] == "threads")
    assert threads["expand_capabilities"][0]["child_parent_key_field"] == "thread_id"


def test_a_relayed_record_has_the_title_and_text_that_its_source_gives() -> None:
    body = {
        "object": "record",
        "id": "m1",
        "title": "A letter",
        "text": "Dear Ada,",
        "data": {"subject": "Re: quince", "size": 3},
    }
    record = decode_record(body, RecordRef("messages", "m1", "mail"))
    document = lay_out(record)
    assert (document.title, document.text) == ("A letter", "Dear Ada,")
    assert document.metadata["data.subject"] == "Re: quince" and document.metadata["text_complete"]
    again = decode_record(encode_record(record), record.ref)
    assert (again.title, again.text) == (record.title, record.text)
    ours = decode_record({**body, "roles": {"primary-title": "subject"}}, record.ref)
    assert lay_out(ours).title == "Re: quince"


def test_a_long_text_of_a_source_is_cut_and_says_so() -> None:
    source = Source("mail", None, None)
    record = Record(RecordRef("messages", "m1", "mail"), source, None, {}, text="quince " * 9_000)
    document = lay_out(record)
    assert len(document.text) <= 16_384 and not document.metadata["text_complete"]
    assert document.metadata["text_total_chars"] == 63_000


def test_a_package_names_each_connection_of_a_grant(pair: Pair, tmp_path: Path) -> None:
    house = worlds.build(letters_of("home", "barn", "mill"), tmp_path)
    grant_id, _ = house.grant()
    _, remote = pair.there.grant()
    members = [remote_member(pair.url, remote, Deadline.after(10))]
    with open_writer(house.path) as writer:
        members.append(local_member(writer, house.path, grant_id))
        sealer = keys.of_tokens(SECRET.encode())
        _, token = packages.create(Registry(writer), members, sealer)
    api = Api(house.app, token)
    said = api.mcp("search", query="lantern", limit=8)["content"][0]["text"]
    assert '(Abroad 5, "Barn, Home, Mill" 3)' in said, said


def letters_of(*names: str) -> World:
    """Connections of letters."""
    manifest = worlds.stream(
        "letters",
        {"body": text("primary-text")},
        query={"search": {"lexical_fields": ["body"]}},
    )
    return World(
        tuple(
            Connection(
                name,
                "post",
                name.capitalize(),
                (manifest,),
                (row("letters", f"{name}-1", body=f"A lantern in the {name}."),),
            )
            for name in names
        )
    )


def test_a_package_counts_the_same_streams_with_a_member_down(tmp_path: Path) -> None:
    def counted(api: Api) -> Any:
        body = api.rest("/v1/schema").body
        first, *listed = api.mcp("schema")["content"][0]["text"].splitlines()
        assert all(any(name in line for line in listed) for name in ("home", "abroad")), listed
        return first, body["stream_count"], [one["stream_count"] for one in body["connectors"]]

    with two(tmp_path) as pair:
        api = Api(pair.here.app, pair.package().token)
        before = counted(api)
    assert counted(api) == before == ("schema connectors=1 streams=1", 1, [1])


def test_hits_name_their_connector(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    said = api.mcp("search", query="lantern 3")["content"][0]["text"].splitlines()[1]
    assert 'source="Home mail" connector_key=mail' in said


def test_commands_take_their_arguments_as_people_type_them(house: House) -> None:
    _, token = house.grant({"connection_id": "mail-home"})
    shell = Shell({"RUNG_STORE": str(house.path), "RUNG_TOKEN": token})
    words = ("aggregate", "messages", "sum")
    assert shell.ok(*words, "size").stdout == shell.ok(*words, "--field", "size").stdout
    assert shell.run(*words, "size", "--field", "folder").exit_code == 2
    shell.ok(*words, "size", "--field", "size")
    shell.ok("aggregate", "messages", "count")
    whole = shell.ok("read", "mail-home/messages:m1")
    assert whole.stdout == shell.ok("read", "mail-home/messages:m1", "body").stdout != ""
    failed = shell.run("read", "mail-home/threads:t1")
    assert failed.exit_code == 2 and "field_path is missing" in failed.stderr


def test_no_cell_of_csv_is_a_formula(tmp_path: Path) -> None:
    fields = {name: text() for name in ODD} | {"size": {"type": "integer"}}
    rows = (row("odd", "=1", **ODD, size=-3),)
    world = World((Connection("c", "c", None, (worlds.stream("odd", fields),), rows),))
    house = worlds.build(world, tmp_path)
    shell = Shell({"RUNG_STORE": str(house.path), "RUNG_TOKEN": house.grant()[1]})
    out = tmp_path / "odd.csv"
    said = shell.ok("export", "stream", "odd", "-o", str(out)).stderr
    assert "wrote an apostrophe" in said and "--raw" in said
    queried = shell.ok("query", "odd", "--csv").stdout_bytes
    for raw in (out.read_bytes(), queried):
        (found,) = csv.DictReader(io.StringIO(raw.decode(), newline=""))
        assert found["formula"] == "'=HYPERLINK(1)" and found["plus"] == "'+1 555"
        assert found["minus"] == "'-1+cmd" and found["at"] == "'@SUM(1)"
        assert found["tab"] == "'\t=1" and found["return"] == "'\r=1"
        assert found["negative"] == "-12.50" and found["size"] == "-3"
        assert found["control"] == r"a\u{1B}[31mb\u{202E}c"
        assert found["lines"] == ODD["lines"]

    said = shell.ok("export", "stream", "odd", "-o", str(out), "--raw", "--force").stderr
    assert "--raw" not in said
    queried = shell.ok("query", "odd", "--csv", "--raw").stdout_bytes
    for raw in (out.read_bytes(), queried):
        (found,) = csv.DictReader(io.StringIO(raw.decode(), newline=""))
        assert {name: found[name] for name in ODD} == ODD
