"""A changes feed under a limit of times: who follows it has what the grant shows, and no more."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from service.records.intake import Row
from service.records.opening import open_writer
from service.records.writing.streams import open_stream
from tests.helpers import worlds
from tests.helpers.filling import put
from tests.helpers.scale import FULL
from tests.helpers.worlds import Api, Connection, House, World

RECORDS = "/v1/streams/notes/records"
KEYS = [f"n{number}" for number in range(6)]
FIELDS = ["id", "title", "at"]
LIMITS: tuple[dict[str, Any], ...] = (
    {"since": "2026-01-03", "until": "2026-01-06"},
    {"since": "2026-01-04"},
    {"until": "2026-01-05"},
    {"since": "2026-01-02", "until": "2026-01-08"},
)
#: A grant without times, and one of a few records too.
GRANTS = [{"time_constraint": limit} for limit in LIMITS] + [
    {},
    {"time_constraint": LIMITS[1], "resources": KEYS[:3]},
]
EDITS = 60
SEEDS = range(10 if FULL else 3)

Notes = dict[str, dict[str, Any]]


def world() -> World:
    fields = {"title": worlds.text("primary-title"), "at": worlds.moment(), "hidden": worlds.text()}
    return World((Connection("diary", "diary", None, (worlds.stream("notes", fields, "at"),)),))


def edited(random: Random, notes: Notes, key: str, number: int) -> Row:
    """The next edit of a note: another time, title or hidden text, or its deletion."""
    emitted_at = f"2026-06-01T{number // 60:02}:{number % 60:02}:00Z"
    if key in notes and random.random() < 0.2:
        return Row({}, key, emitted_at, "notes", deleted=True)
    note = {**notes.get(key, {"id": key, "title": "first", "hidden": "first"})}
    changed = random.choice(["at", "at", "title", "hidden"])
    if changed == "at" or "at" not in note:
        note["at"] = random.choice([f"2026-01-0{day}T12:00:00Z" for day in range(1, 10)] + [None])
    if changed != "at":
        note[changed] = f"{changed} {number}"
    return Row(note, key, emitted_at, "notes")


def shown(notes: Notes, grant: dict[str, Any]) -> Notes:
    """What a grant shows of notes."""
    limit = grant.get("time_constraint", {})
    since, until = limit.get("since", ""), limit.get("until", "~")
    return {
        key: {name: note[name] for name in FIELDS}
        for key, note in notes.items()
        if key in grant.get("resources", KEYS)
        and (not limit or (note["at"] is not None and since <= note["at"] < until))
    }


@dataclass
class Follower:
    """Follows a feed in pages, and applies each entry to what it has."""

    api: Api
    grant: dict[str, Any]
    notes: Notes = field(default_factory=dict)
    bookmark: str = "beginning"
    cursor: str | None = None
    #: The keys of notes that the grant showed at some time since the bookmark, and before it.
    ever: set[str] = field(default_factory=set)
    feed: list[dict[str, Any]] = field(default_factory=list)

    def read(self, limit: int) -> bool:
        """Reads a page; returns whether there are more."""
        asked = {"cursor": self.cursor} if self.cursor else {"changes_since": self.bookmark}
        answer = self.api.rest(RECORDS, **asked, limit=limit)
        assert answer.status == 200, answer
        for entry in answer.body["data"]:
            assert entry["id"] in self.ever, "it was never inside"
            if entry.get("deleted"):
                assert "data" not in entry
                self.notes.pop(entry["id"], None)
            else:
                self.notes[entry["id"]] = entry["data"]
            self.feed.append(entry)
        self.bookmark = answer.body["next_changes_since"]
        self.cursor = answer.body.get("next_cursor")
        return bool(answer.body["has_more"])


def follower(house: House, grant: dict[str, Any]) -> Follower:
    entry = {"connection_id": "diary", "stream": "notes", "fields": FIELDS, **grant}
    return Follower(house.api(entry), grant)


@pytest.mark.parametrize("seed", SEEDS)
def test_who_follows_a_feed_has_what_the_grant_shows(tmp_path: Path, seed: int) -> None:
    random, notes = Random(seed), Notes()
    house = worlds.build(world(), tmp_path)
    followers = [follower(house, grant) for grant in GRANTS]
    for number in range(EDITS):
        row = edited(random, notes, random.choice(KEYS), number)
        house.add("diary", row)
        notes.pop(row.key or "", None)
        notes |= {} if row.deleted else {row.key: row.data}
        for each in followers:
            each.ever |= shown(notes, each.grant).keys()
            if random.random() < 0.3:
                each.read(random.randint(1, 3))
            if random.random() < 0.2:
                while each.read(random.randint(1, 3)):
                    pass
                assert each.notes == shown(notes, each.grant), each.grant
    for each in followers:
        while each.read(100):
            pass
        assert each.notes == shown(notes, each.grant), each.grant
        assert not each.read(100) and each.feed, "nothing changed since"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_page_names_what_changed_for_the_grant_and_nothing_else(
    tmp_path: Path, seed: int
) -> None:
    random, notes = Random(seed), Notes()
    house = worlds.build(world(), tmp_path)
    followers = [follower(house, grant) for grant in GRANTS]
    for round in range(6):
        visible = {id(each): dict[str, None]() for each in followers}
        for number in range(round * 10, round * 10 + random.randint(1, 9)):
            row = edited(random, notes, random.choice(KEYS), number)
            before = {id(each): shown(notes, each.grant) for each in followers}
            house.add("diary", row)
            notes.pop(row.key or "", None)
            notes |= {} if row.deleted else {row.key: row.data}
            for each in followers:
                now, key = shown(notes, each.grant), row.key or ""
                if now.get(key) != before[id(each)].get(key):  # its newest change, last
                    visible[id(each)].pop(key, None)
                    visible[id(each)][key] = None
                each.ever |= now.keys()
        for each in followers:
            each.feed.clear()
            assert not each.read(100)
            assert [entry["id"] for entry in each.feed] == list(visible[id(each)]), each.grant
            now = shown(notes, each.grant)
            assert all(("data" in entry) == (entry["id"] in now) for entry in each.feed)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_happens_outside_the_range_changes_nothing_in_a_feed(
    tmp_path: Path, seed: int
) -> None:
    """Another store has only the edits that the grant shows, and the same feed."""
    random, notes, visible = Random(seed), Notes(), Notes()
    grant = GRANTS[0]
    houses = [worlds.build(world(), tmp_path / name) for name in ("every", "visible")]
    pair = [follower(house, grant) for house in houses]
    for number in range(EDITS):
        row = edited(random, notes, random.choice(KEYS), number)
        key, before = row.key or "", shown(notes, grant)
        houses[0].add("diary", row)
        notes.pop(key, None)
        notes |= {} if row.deleted else {key: row.data}
        now = shown(notes, grant)
        if now.get(key) != before.get(key):
            hidden = visible.get(key, {}).get("hidden", "first")
            same = row if row.deleted else row._replace(data={**row.data, "hidden": hidden})
            houses[1].add("diary", same)
            visible.pop(key, None)
            visible |= {} if row.deleted else {key: same.data}
        for each in pair:
            each.ever |= now.keys()
        if random.random() < 0.3:
            limit = random.randint(1, 3)
            assert len({each.read(limit) for each in pair}) == 1
            assert pair[0].feed == pair[1].feed
    for each in pair:
        while each.read(2):
            pass
    assert pair[0].feed == pair[1].feed and pair[0].notes == shown(notes, grant)


def test_notes_that_a_replaced_stream_moves_leave_and_enter(tmp_path: Path) -> None:
    house = worlds.build(world(), tmp_path)

    def note(key: str, day: int) -> Row:
        data = {"id": key, "title": key, "at": f"2026-01-0{day}T12:00:00Z"}
        return Row(data, key, worlds.EMITTED_AT, "notes")

    house.add("diary", note("stays", 3), note("leaves", 4), note("enters", 8), note("never", 9))
    house.add("diary", note("deleted", 4), note("deleted outside", 9))
    each = follower(house, GRANTS[0])
    each.ever |= {"stays", "leaves", "enters", "deleted"}
    assert not each.read(100) and set(each.notes) == {"stays", "leaves", "deleted"}
    each.feed.clear()
    rows = [note("stays", 3), note("leaves", 9), note("enters", 5), note("never", 1)]
    with open_writer(house.path) as writer, writer.staging([("diary", "notes")]) as stage:
        stage.keep_manifests()
        stage.publish(put(writer, open_stream(writer, "diary", "notes"), rows))
    assert not each.read(100) and set(each.notes) == {"stays", "enters"}
    named = {entry["id"]: entry.get("deleted", False) for entry in each.feed}
    assert named == {"leaves": True, "enters": False, "deleted": True}
    assert "" not in [entry.get("deleted_at") for entry in each.feed]
