"""A store moves between engines, whole or not at all, and every token and bookmark stays good."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from evidence.errors import EvidenceError
from service.access import packages
from service.access.registry import Member, Registry
from service.cli.upkeep import stores as store
from service.keys import Sealer
from service.place import Place, spelled
from service.records import copying
from service.records.copying import PARTS, Walk
from service.records.writing.ingest import Batch
from service.records.intake import Row
from service.records.opening import engine_of, open_reader, open_writer
from service.records.writing.streams import open_stream
from tests.helpers import worlds
from tests.helpers.places import empty_database, new_database
from tests.helpers.server import ROOT
from tests.helpers.stdio import environment
from tests.helpers.worlds import Api, House

#: `rung store copy`, killed after some records are indexed, before anything is compared.
KILLED = """
import os, signal, sys
from service.__main__ import rung
from service.records.copying import Walk
rows = Walk.rows
def step(walk, part):
    if part == "connection" and any(walk._connections for walk in walks):
        os.kill(os.getpid(), signal.SIGKILL)
    walks.append(walk)
    return rows(walk, part)
walks, Walk.rows = [], step
rung(["store", "copy", *sys.argv[1:]])
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A store in a file, with changes, deletions, blobs, long values, grants and a package."""
    place = tmp_path / "rung.db"
    worlds.fill(place, worlds.two_mailboxes())
    house = House(place)
    house.add("mail-home", worlds.row("messages", "m1", subject="Another lantern", size=7))
    house.add("mail-home", Row({}, "m2", "2026-06-01T00:00:00Z", "messages", deleted=True))
    house.revoke(house.grant({"connection_id": "bank"})[0])
    with open_writer(place) as writer:
        members = [Member(name, f"grt_{name}", ()) for name in ("one", "other")]
        packages.create(Registry(writer), members, Sealer(b"a secret of tests only"))
    return house


def copied(source: Place, target: Place) -> str:
    done = CliRunner().invoke(store, ["copy", spelled(source), spelled(target)])
    assert done.exit_code == 0, done.output
    return done.output


def content(place: Place) -> tuple[dict[str, int], bytes, object]:
    """(rows of each part, their digest, secret) of a store."""
    with open_reader(place).snapshot() as snapshot:
        walk = Walk(snapshot.content(), lambda: None)
        for part in PARTS:
            for _ in walk.rows(part):
                pass
        return dict(walk.counts), walk.hash.digest(), snapshot.meta("secret")


def test_a_store_goes_into_a_database_and_back_with_every_row(house: House, tmp_path: Path) -> None:
    there, back = empty_database(), tmp_path / "back.db"
    said = [copied(house.path, there), copied(there, back)]
    expected = content(house.path)
    assert content(there) == expected == content(back)
    assert set(expected[0]) == set(PARTS)
    assert all(expected[1].hex() in each for each in said)


def test_tokens_cursors_and_bookmarks_are_good_at_the_target(house: House, tmp_path: Path) -> None:
    _, token = house.grant()
    ended, over = house.grant()
    house.revoke(ended)
    asked = "/v1/streams/messages/records"
    api, mail = Api(house.app, token), {"connection_id": "mail-home"}
    page = api.rest(asked, limit=2, **mail).body
    marked = api.rest(asked, changes_since="beginning", **mail).body["next_changes_since"]
    place = empty_database()
    copied(house.path, place)
    copied(place, tmp_path / "back.db")
    for target in (House(place), House(tmp_path / "back.db")):
        there = Api(target.app, token)
        assert Api(target.app, over).rest(asked, **mail).status == 401
        for params in (
            {"cursor": page["next_cursor"], "limit": 2},
            {"changes_since": "beginning"},
            {"changes_since": marked},
        ):
            assert (
                there.rest(asked, **params, **mail).body == api.rest(asked, **params, **mail).body
            )
        for query in ("lantern", '"quorum met" elm', "statement"):
            answers = [one.rest("/v1/search", q=query).body["data"] for one in (api, there)]
            assert worlds.keys_of(answers[0]) == worlds.keys_of(answers[1]) != []
        target.add("mail-home", worlds.row("messages", "m1", subject="Changed after the move"))
        (change,) = there.rest(asked, changes_since=marked, **mail).body["data"]
        assert worlds.keys_of([change]) == ["m1"]


def test_hits_are_the_same_at_the_target_where_fields_answer_alike(tmp_path: Path) -> None:
    fields = {"title": worlds.text("primary-title"), "body": worlds.text("primary-text")}
    found = {"query": {"search": {"lexical_fields": ["title", "body"]}}}
    notes = worlds.stream("notes", fields, **found)
    rows = (worlds.row("notes", "n1", title="a lantern", body=f"a lantern {'of tin ' * 200}"),)
    place, there = tmp_path / "rung.db", empty_database()
    worlds.fill(place, worlds.World((worlds.Connection("mine", "notes", None, (notes,), rows),)))
    token = House(place).grant()[1]
    copied(place, there)
    hits = [Api(House(at).app, token).rest("/v1/search", q="lantern").body for at in (place, there)]
    assert hits[0] == hits[1]
    assert hits[0]["data"]


def test_a_target_with_something_in_it_is_refused_and_stays(house: House, tmp_path: Path) -> None:
    place, file = new_database(), tmp_path / "other.db"
    for target in (place, file):
        worlds.fill(target, worlds.odd_ids())
        before = content(target)
        done = CliRunner().invoke(store, ["copy", spelled(house.path), spelled(target)])
        assert done.exit_code == 1
        assert "not empty" in done.output or "Choose a new file" in done.output
        assert content(target) == before


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_a_copy_that_is_killed_leaves_nothing_that_serves(
    house: House, tmp_path: Path, engine: str
) -> None:
    source, target = house.path, tmp_path / "target.db"
    if engine == "postgres":
        target = new_database()  # type: ignore[assignment]
    words = [spelled(source), spelled(target)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *words], cwd=ROOT, env=environment(), capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    if engine == "postgres":
        assert content(target)[0] == {}
    else:
        assert not target.exists()
    copied(source, target)
    assert content(target) == content(source)


def test_a_copy_that_differs_is_not_kept(house: House) -> None:
    target = new_database()
    with engine_of(target).new_store() as writer, pytest.raises(EvidenceError, match="differs"):
        with writer.transaction(), open_reader(house.path).snapshot() as snapshot:
            given = copying.fill(snapshot, writer, lambda done: None)
            writer.write(  # type: ignore[attr-defined]
                "UPDATE document SET data = replace(data, 'Lantern 3', 'Lantern 4')"
            )
            copying.complete(writer, given, lambda done: None)
    assert content(target)[0] == {}


def test_a_transaction_holds_no_more_locks_for_more_rows() -> None:
    place, held = new_database(), list[int]()
    worlds.fill(place, worlds.two_mailboxes())
    with open_writer(place) as writer, writer.transaction():
        batch = Batch(writer)
        for number in range(9):
            stream = open_stream(writer, "mail-home", "messages")
            batch.add(stream, worlds.row("messages", f"new-{number}", subject="One more"))
            batch.flush()
            locks = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"
            held += [count for (count,) in writer.run(locks)]
    assert held[1] == held[-1]
