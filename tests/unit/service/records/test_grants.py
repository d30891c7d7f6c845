from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evidence.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated
from service.access.grants import create, find, revoke
from service.access.registry import Registry, RegistryReader, StreamGrant
from evidence.manifest import parse
from service.records.writing.streams import declare
from service.records.sqlite.reader import Reader
from service.records.sqlite.writer import Writer, open_writer

STREAMS = [
    {
        "name": "notes",
        "cursor_field": "at",
        "schema": {
            "properties": {
                "id": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
            }
        },
    },
    {"name": "tags", "schema": {"properties": {"id": {"type": "string"}}}},
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Writer]:
    with open_writer(tmp_path / "rung.db") as writer:
        declare(writer, "c", parse({"streams": STREAMS}))
        yield writer


def entry(**members: Any) -> dict[str, Any]:
    return {"streams": [{"connection_id": "c"} | members]}


def test_a_token_finds_its_grant_through_any_connection(store: Writer) -> None:
    grant_id, token = create(Registry(store), entry(stream="notes"), label="laptop")
    with closing(Reader(store.path)) as reader, reader.snapshot() as snapshot:
        found = find(RegistryReader(snapshot), token)
    assert (found.grant_id, found.label) == (grant_id, "laptop")
    assert found.streams == (StreamGrant("c", "notes", ("id", "at")),)


def test_ids_and_tokens_have_their_promised_form(store: Writer) -> None:
    grant_id, token = create(Registry(store), entry())
    assert grant_id.startswith("grt_") and len(bytes.fromhex(grant_id[4:])) == 8
    assert token.startswith("rung_") and len(token) == len("rung_") + 43


def test_a_grant_is_frozen_when_it_is_made(store: Writer) -> None:
    _, token = create(Registry(store), entry())
    more = STREAMS[1] | {
        "schema": {"properties": {"id": {"type": "string"}, "new": {"type": "object"}}}
    }
    declare(store, "c", parse({"streams": [more, {**STREAMS[0], "name": "later"}]}))
    assert [(item.stream, item.fields) for item in find(Registry(store), token).streams] == [
        ("notes", ("id", "at")),
        ("tags", ("id",)),
    ]


def test_times_and_records_narrow_a_stream(store: Writer) -> None:
    limits = entry(
        stream="notes",
        fields=["id"],
        time_constraint={"since": "1970-01-01T00:00:01Z", "until": "1970-01-02"},
        resources=["a", "b"],
    )
    _, token = create(Registry(store), limits)
    (found,) = find(Registry(store), token).streams
    assert found == StreamGrant(
        "c", "notes", ("id",), 1_000_000, 86_400_000_000, frozenset({"a", "b"})
    )


def test_only_the_hash_of_a_token_is_stored(store: Writer) -> None:
    _, token = create(Registry(store), entry())
    assert token not in "\n".join(store.db.iterdump())


def test_finding_a_grant_is_one_indexed_look_up(store: Writer) -> None:
    plan = store.db.execute(
        'EXPLAIN QUERY PLAN SELECT document FROM "grant" WHERE token_hash = ?', (b"",)
    ).fetchall()
    assert [row[3].split(" (")[0] for row in plan] == [
        "SEARCH grant USING INDEX sqlite_autoindex_grant_2"
    ]


def test_an_unknown_token_is_not_authenticated(store: Writer) -> None:
    for token in ("", "rung_", "rung_" + "x" * 43, "\udcff"):
        with pytest.raises(Unauthenticated) as caught:
            find(Registry(store), token)
        assert caught.value.code == "invalid_token"


def test_owner_tokens_are_refused(store: Writer) -> None:
    with pytest.raises(Forbidden, match="Owner tokens are refused") as caught:
        find(Registry(store), "rung_owner_abc")
    assert caught.value.code == "permission_error"


def test_a_revoked_grant_ends_at_once(store: Writer) -> None:
    grant_id, token = create(Registry(store), entry(), label="old")
    assert revoke(Registry(store), "old") == [grant_id]
    with pytest.raises(Unauthenticated) as caught:
        find(Registry(store), token)
    assert caught.value.code == "grant_revoked"
    with pytest.raises(NotFound, match="rung grant list"):
        revoke(Registry(store), "old")


def test_a_grant_can_be_revoked_by_its_id(store: Writer) -> None:
    grant_id, _ = create(Registry(store), entry())
    create(Registry(store), entry())
    assert revoke(Registry(store), grant_id) == [grant_id]
    assert [item.state(None) for item in Registry(store).grants()] == ["revoked", "active"]


def test_a_grant_expires_on_its_hour(store: Writer) -> None:
    _, token = create(Registry(store), entry(), expires_at="2030-01-01T00:00:00Z")
    assert find(Registry(store), token, now=datetime(2029, 12, 31, 23, 59, 59, tzinfo=UTC))
    with pytest.raises(Unauthenticated) as caught:
        find(Registry(store), token, now=datetime(2030, 1, 1, tzinfo=UTC))
    assert caught.value.code == "grant_expired"


@pytest.mark.parametrize(
    ("document", "advice"),
    [
        (None, "must be a list"),
        ({"streams": []}, "may be empty only if"),
        ({"streams": [5]}, "needs a connection_id"),
        ({"streams": [{"connection_id": "d"}]}, "not in the store"),
        (entry(stream="note"), "'c' has no stream 'note'; try 'notes'.$"),
        (entry(stream=["notes"]), r"'c' has no stream \['notes'\]; try 'notes'.$"),
        (entry(stream="letters"), "'c' has no stream 'letters'; known: notes, tags.$"),
        (entry(steam="notes"), "'steam' is not a valid key"),
        (entry(stream="notes", fields=[]), "leave it out for all"),
        (entry(stream="notes", fields=["body"]), "is not a field of"),
        (entry(stream="notes", fields=[["id"]]), "is not a field of"),
        (entry(stream="tags", time_constraint={"since": "2026-01-01"}), "no time field"),
        (entry(stream="notes", time_constraint={}), "since, until"),
        (entry(stream="notes", time_constraint={"since": "soon"}), "ISO 8601"),
        (entry(stream="notes", time_constraint={"from": "2026-01-01"}), "since, until"),
        (entry(stream="notes", resources="a"), "list of record ids"),
        ({"streams": entry()["streams"] * 2}, "twice"),
    ],
)
def test_a_document_that_cannot_be_granted_says_why(
    store: Writer, document: Any, advice: str
) -> None:
    with pytest.raises(InvalidRequest, match=advice):
        create(Registry(store), document)


def test_no_more_than_500_streams_are_granted(store: Writer) -> None:
    many = [{"name": f"s{n}", "schema": STREAMS[1]["schema"]} for n in range(499)]
    declare(store, "d", parse({"streams": many}))
    assert create(Registry(store), {"streams": [{"connection_id": "d"}]})
    with pytest.raises(InvalidRequest, match="create two grants"):
        create(Registry(store), {"streams": [{"connection_id": "d"}, {"connection_id": "c"}]})
