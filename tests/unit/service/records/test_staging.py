"""Streams that are prepared out of sight and put in place of others in one commit."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evidence.errors import InvalidRequest, NotFound, Unavailable
from service.records.writing.ingest import Batch
from tests.helpers.filling import put
from service.records.intake import Row
from evidence.manifest import parse
from service.records.sqlite.staging import Stage, staging
from service.records.writing.streams import declare, open_stream
from service.records.sqlite.writer import open_writer
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.notes import check, one, tally
from tests.helpers.places import faults
from tests.helpers.worlds import House, blob, row

MESSAGES = ("mail-home", "messages")
ATTACHMENTS = ("mail-home", "attachments")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path)


def replace(
    house: House, target: tuple[str, str], rows: Sequence[Row], *, keep: bool = True
) -> tuple[int, int, int, int]:
    """Replaces a stream; returns what that changed."""
    with open_writer(house.path) as writer:
        with staging(writer, [target]) as stage:
            if keep:
                stage.keep_manifests()
                put(writer, open_stream(writer, *target), rows)
            counts = stage.publish()
        check(writer)
        assert one(writer, "SELECT count(*) FROM stream WHERE name < char(1)") == (0,)
    assert faults(house.path) == []
    return tally(counts)


def rows_of(house: House, target: tuple[str, str]) -> list[Row]:
    """The live records of a stream, as rows."""
    with open_writer(house.path) as writer:
        found = writer.db.execute(
            "SELECT record_key, data FROM document JOIN record USING (seq)"
            " WHERE stream = ? AND big IS NULL",
            (open_stream(writer, *target).id,),
        ).fetchall()
    return [Row(json.loads(data), key, stream=target[1]) for key, data in found]


def follow(api: Api, bookmark: str = "beginning", stream: str = "messages") -> tuple[Any, str]:
    """What a reader of the feed learns, as (id, deleted, text), and the next bookmark."""
    found, asked = [], {"changes_since": bookmark}
    while True:
        path = f"/v1/streams/{stream}/records"
        body = api.rest(path, connection_id="mail-home", limit=2, **asked).body
        found += [
            (one["id"], one.get("deleted", False), one.get("data", {}).get("subject"))
            for one in body["data"]
        ]
        if not body["has_more"]:
            return found, body["next_changes_since"]
        asked = {"cursor": body["next_cursor"]}


def test_a_replaced_stream_holds_what_came_in_and_its_feed_names_what_changed(
    house: House,
) -> None:
    api = house.api({"connection_id": "mail-home"})
    _, bookmark = follow(api)
    rows = [one for one in rows_of(house, MESSAGES) if one.key not in ("m2", "m3")]
    rows[0].data["subject"] = "A quince at home"
    assert replace(house, MESSAGES, [*rows, row("messages", "m9", subject="A medlar")]) == (
        *(1, 1, len(rows) - 1),
        3,  # m2, m3 and the long one
    )

    found, after = follow(api, bookmark)
    assert sorted(found) == [
        *(("long", True, None), ("m1", False, "A quince at home"), ("m2", True, None)),
        *(("m3", True, None), ("m9", False, "A medlar")),
    ]
    assert follow(api, after)[0] == []
    everything = {id: gone for id, gone, _ in follow(api)[0]}
    assert len(everything) == 8 and sum(everything.values()) == 3
    hits = api.mcp("search", query="quince medlar")["structuredContent"]["results"]
    assert {hit["id"].rpartition(":")[2] for hit in hits} == {"m1", "m9"}


def test_a_reader_in_the_middle_of_a_feed_goes_on(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    path = "/v1/streams/messages/records"
    asked = {"connection_id": "mail-home", "limit": 3}
    first = api.rest(path, **asked, changes_since="beginning").body
    seen = {one["id"] for one in first["data"]}
    rows = [one for one in rows_of(house, MESSAGES) if one.key != "m1"]
    assert replace(house, MESSAGES, rows) == (0, 0, 5, 2)

    rest: dict[str, bool] = {}
    body = first
    while body["has_more"]:
        body = api.rest(path, **asked, cursor=body["next_cursor"]).body
        rest |= {one["id"]: one.get("deleted", False) for one in body["data"]}
    assert seen == {"m1", "m2", "m3"}
    assert rest == {"m4": False, "m5": False, "m6": False, "m1": True, "long": True}


def test_times_and_deletions_from_before_are_kept(house: House) -> None:
    house.add("mail-home", Row({}, "m1", stream="messages", deleted=True))
    house.add("mail-home", row("messages", "m2", subject="Anew")._replace(emitted_at=None))
    api = house.api({"connection_id": "mail-home"})
    path = "/v1/streams/messages/records/m2"
    before, feed = api.rest(path).body["emitted_at"], follow(api)
    assert replace(house, MESSAGES, rows_of(house, MESSAGES)) == (0, 0, 5, 1)
    assert api.rest(path).body["emitted_at"] == before
    assert sorted(follow(api)[0]) == sorted(
        (id, deleted or id == "long", None if id == "long" else text)
        for id, deleted, text in feed[0]
    )


def test_a_removed_stream_that_is_covered_stays_with_its_deletions(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    _, bookmark = follow(api)
    assert replace(house, MESSAGES, []) == (0, 0, 0, 7)
    found, _ = follow(api, bookmark)
    assert len(found) == 7 and all(gone for _, gone, _ in found)
    assert api.mcp("search", query="lantern")["structuredContent"]["results"] == []


def test_a_removed_connection_leaves_nothing(house: House) -> None:
    names = ["messages", "threads", "attachments"]
    with open_writer(house.path) as writer:
        with staging(writer, [("mail-home", name) for name in names]) as stage:
            stage.publish()
        check(writer)
        assert writer.manifests("mail-home") == []
        assert {one.connection_id for one in writer.counts()} == {"bank", "mail-work"}
        assert one(writer, "SELECT count(*) FROM connection") == (2,)
        assert one(writer, "SELECT count(*) FROM blob_use WHERE blob_id LIKE '%home'") == (0,)
    house.api({"connection_id": "mail-work"}).mcp("search", query="lantern")


def test_what_is_staged_is_not_seen_and_goes_if_it_is_not_published(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    before = follow(api), api.mcp("schema")
    with open_writer(house.path) as writer:
        count = one(writer, "SELECT count(*) FROM record")
        with pytest.raises(RuntimeError), staging(writer, [MESSAGES]) as stage:
            stage.keep_manifests()
            put(writer, open_stream(writer, *MESSAGES), [row("messages", "m9", subject="Medlar")])
            assert api.mcp("search", query="medlar")["structuredContent"]["results"] == []
            assert (follow(api), api.mcp("schema")) == before
            raise RuntimeError
        check(writer)
        assert one(writer, "SELECT count(*) FROM record") == count
    assert (follow(api), api.mcp("schema")) == before


def test_changes_of_others_meanwhile_come_before_those_of_the_replacement(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    _, bookmark = follow(api, stream="threads")
    _, messages = follow(api)
    with open_writer(house.path) as writer:
        with staging(writer, [MESSAGES]) as stage:
            stage.keep_manifests()
            house.add("mail-home", row("threads", "t9", topic="Meanwhile"))
            stage.publish()
    found, bookmark = follow(api, bookmark, "threads")
    assert [id for id, _, _ in found] == ["t9"]
    assert len(follow(api, messages)[0]) == 7
    house.add("mail-home", row("threads", "t10", topic="Later"))
    assert [id for id, _, _ in follow(api, bookmark, "threads")[0]] == ["t10"]


def test_a_stream_that_somebody_else_writes_to_is_not_replaced(house: House) -> None:
    with open_writer(house.path) as writer:
        with pytest.raises(Unavailable, match="while the command was running"), staging(
            writer, [MESSAGES]
        ) as stage:
            stage.keep_manifests()
            publish = Stage._continue_log

            def late(self: Stage, old: int, new: int) -> None:
                publish(self, old, new)
                house.add("mail-home", row("messages", "m9", subject="Meanwhile"))

            Stage._continue_log = late  # type: ignore[method-assign]
            try:
                stage.publish()
            finally:
                Stage._continue_log = publish  # type: ignore[method-assign]
        check(writer)
    assert len(rows_of(house, MESSAGES)) == 7


def test_an_import_into_a_stream_that_is_replaced_meanwhile_is_told(house: House) -> None:
    with open_writer(house.path) as writer:
        batch = Batch(writer)
        batch.add(open_stream(writer, *MESSAGES), row("messages", "m9", subject="Late"))
        replace(house, MESSAGES, [])
        with pytest.raises(Unavailable, match="replaced or removed"):
            batch.flush()


def test_only_the_streams_that_are_staged_are_written(house: House) -> None:
    with open_writer(house.path) as writer:
        with pytest.raises(InvalidRequest, match="threads"), staging(writer, [MESSAGES]):
            open_stream(writer, "mail-home", "threads")
        with pytest.raises(InvalidRequest, match="bank"), staging(writer, [MESSAGES]):
            declare(writer, "mail-home", parse({"streams": [worlds.stream("bank", {})]}))
        with pytest.raises(NotFound, match="mail-home/nothing"):
            with staging(writer, [("mail-home", "nothing")]):
                pass


def test_bytes_of_a_blob_change_with_the_commit(house: House) -> None:
    api = house.api({"connection_id": "mail-home"})
    new = blob(b"Other bytes.", "text/plain", "text-home")
    with open_writer(house.path) as writer:
        with staging(writer, [ATTACHMENTS]) as stage:
            stage.keep_manifests()
            rows = [row("attachments", "a0", filename="file", file=new)]
            put(writer, open_stream(writer, *ATTACHMENTS), rows)
            assert api.get("/v1/blobs/text-home").body == b"A plain report from home."
            stage.publish()
        check(writer)
    assert api.get("/v1/blobs/text-home").body == b"Other bytes."
    assert api.get("/v1/blobs/pdf-home").status == 404


def test_a_stream_can_be_replaced_more_often_than_a_connection_has_blocks(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(house, MESSAGES)
    for _ in range(4):
        replace(house, MESSAGES, rows)
    with open_writer(house.path) as writer:
        last = one(writer, "SELECT max(ordinal) FROM scope")[0]
    replace(house, MESSAGES, rows)
    replace(house, MESSAGES, rows)
    with open_writer(house.path) as writer:
        assert one(writer, "SELECT max(ordinal) FROM scope")[0] == last


def test_large_values_are_compared_and_leave_with_their_chunks(house: House) -> None:
    long = row("messages", "long", subject="The long one", body=worlds.LONG_BODY, folder="inbox")
    assert replace(house, MESSAGES, [long]) == (0, 0, 1, 6)
    other = long._replace(data=long.data | {"body": worlds.LONG_BODY + "!"})
    assert replace(house, MESSAGES, [other]) == (0, 1, 0, 0)
    replace(house, MESSAGES, [])
    with open_writer(house.path) as writer:
        assert one(writer, "SELECT count(*) FROM chunk WHERE text LIKE '%quorum%'") == (1,)
