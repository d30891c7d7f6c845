"""Records that an older version stored keep their ids when the same export is imported again."""

import json

import pytest

from tests.formats.owner import Owner, counts, write
from tests.formats.test_same_ids import calendar, telegram
from tests.formats.written import WRITERS

#: What version 59d23057 stored of two texts, as `stream:id`.
FORMER = {
    "mbox": ["attachments:0@x#1", "attachments:1@x#1", "messages:0@x", "messages:1@x"],
    "maildir": ["attachments:0@x#1", "attachments:1@x#1", "messages:0@x", "messages:1@x"],
    "eml": ["attachments:0@x#1", "attachments:1@x#1", "messages:0@x", "messages:1@x"],
    "ics": ["events:0", "events:1"],
    "vcard": ["contacts:0", "contacts:1"],
    "notes": ["notes:day/n 0.md", "notes:day/n 1.md"],
    "bookmarks": [
        "bookmarks:2bbc3d23778a90ebff44f39222b80be2",
        "bookmarks:ea5043bbfa589b873da53eddb6b0c839",
    ],
    "whatsapp": [
        "chat_messages:8b866df734a229d082abe45dad7afade",
        "chat_messages:8f2d0fb3a3a1b36ae728d7c678b2a96d",
        "conversations:Lotsen",
    ],
    "slack": [
        "chat_messages:C1-1772528400.000100",
        "chat_messages:C1-1772528401.000100",
        "contacts:U1",
        "conversations:C1",
    ],
    "chatgpt": ["chat_messages:m0", "chat_messages:m1", "conversations:c"],
    "claude": ["chat_messages:m0", "chat_messages:m1", "conversations:c"],
    "sqlite": ["entry:1", "entry:2"],
    "xlsx": [
        "log:dbf46fad01b14867d2e5551cd0cce329532b13ba2aaf04e49a872567a18b5ac8",
        "log:eb0001886607c4c3f8655fcd2870d60ba656971a650c37bcbff706feb3d7ad06",
    ],
}


@pytest.mark.parametrize("name", FORMER)
def test_the_samples_of_a_format_have_the_ids_of_older_versions(owner: Owner, name: str) -> None:
    owner.bring(WRITERS[name](owner.home, ["kelp one", "gull two"]))
    streams = {one.partition(":")[0] for one in FORMER[name]}
    found = {f"{stream}:{row['id']}" for stream in streams for row in owner.rows(stream)}
    assert found == set(FORMER[name])


def test_events_with_the_id_alone_keep_it_and_others_get_the_calendar(owner: Owner) -> None:
    name = "X-WR-CALNAME:{}\n"
    write(owner.home, {f"{n}.ics": calendar(name.format(n), n) for n in ("Work", "Home", "Else")})
    owner.bring(owner.home / "Else.ics")
    event = {"id": "1", "series_id": "1", "kind": "event", "calendar": "Work", "summary": "Work"}
    event |= {"start": "2026-07-03T09:00:00Z"}
    write(owner.home, {"old.ndjson": json.dumps(event) + "\n"})
    owner.bring(owner.home / "old.ndjson", "--stream", "events")
    owner.again(owner.home / "Work.ics")
    assert counts(owner.bring(owner.home / "Home.ics"))["new"] == 1
    assert {row["id"] for row in owner.rows("events")} == {"Else/1", "1", "Home/1"}


def test_messages_of_telegram_that_were_rows_are_not_imported_again(owner: Owner) -> None:
    chat = telegram(9, "barnacle", "kelp")
    write(owner.home, {"old.json": json.dumps(chat["messages"]), "result.json": json.dumps(chat)})
    owner.bring(owner.home / "old.json", "--stream", "result")
    owner.again(owner.home / "result.json")
    other = telegram(44, "paint", "varnish")
    write(owner.home, {"b/result.json": json.dumps(other)})
    assert counts(owner.bring(owner.home / "b/result.json"))["new"] == 3
