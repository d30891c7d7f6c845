"""Several processes that write to one database, and who reads meanwhile."""

import threading
from functools import partial
from collections.abc import Callable
from pathlib import Path

import pytest

from evidence.errors import EvidenceError, InvalidRequest
from service.importing.process.parsing import Parser
from service.importing.plan import Plan
from service.importing.run import import_files
from service.place import Database
from service.records.writing.ingest import Batch
from service.records.intake import Row
from evidence.manifest import parse
from service.records.opening import open_reader, open_writer
from service.records.postgres.ddl import MIGRATIONS
from service.records.writing.streams import connect, declare, open_stream
from tests.helpers import worlds
from tests.helpers.places import empty_database, new_database
from tests.helpers.worlds import House, row

WRITERS, ROUNDS = 4, 12
LETTERS = worlds.stream(
    "letters", {"body": worlds.text("primary-text")}, query={"search": {"lexical_fields": ["body"]}}
)


def at_once(*tasks: Callable[[], None]) -> None:
    """Runs tasks in threads that begin together; raises what one of them raised."""
    barrier, raised = threading.Barrier(len(tasks)), list[BaseException]()

    def run(task: Callable[[], None]) -> None:
        barrier.wait()
        try:
            task()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def declared(place: Database, *connections: str) -> None:
    with open_writer(place) as writer:
        for name in connections:
            connect(writer, name)
            declare(writer, name, parse({"streams": [LETTERS]}))


def put(place: Database, connection: str, name: str, rounds: int = ROUNDS) -> None:
    """Some imports, one after the other, of two records each."""
    with open_writer(place) as writer:
        for number in range(rounds):
            batch = Batch(writer)
            stream = open_stream(writer, connection, "letters")
            for part in ("a", "b"):
                key = f"{name}-{number}-{part}"
                batch.add(stream, row("letters", key, body=f"lantern {key} hangs"))
            batch.flush()


def test_processes_that_make_one_store_together_make_it_once() -> None:
    place = empty_database()
    at_once(*(lambda: open_writer(place).close() for _ in range(WRITERS)))
    with open_reader(place).snapshot() as snapshot:
        assert snapshot.meta("layout") == str(len(MIGRATIONS))


def test_a_reader_who_follows_the_changes_misses_none_of_concurrent_writers() -> None:
    place = new_database()
    declared(place, *(f"c{number}" for number in range(WRITERS)))
    reader, seen, done = open_reader(place), dict[int, list[int]](), threading.Event()

    def follow() -> None:
        """Takes the new entries of each stream's log, from the last one it knows on."""
        more = True
        while more:
            more = not done.is_set()
            with reader.snapshot() as snapshot:
                snapshot.confine(f"c{number}" for number in range(WRITERS))
                for number in range(WRITERS):
                    stream = snapshot.stream(f"c{number}", "letters")
                    assert stream is not None
                    known = seen.setdefault(number, [])
                    after = known[-1] if known else 0
                    known += [one.version for one in snapshot.changes(stream.id, after)]

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        at_once(*(partial(put, place, f"c{n}", f"w{n}") for n in range(WRITERS)))
    finally:
        done.set()
        follower.join()
        reader.close()
    versions = sorted(version for each in seen.values() for version in each)
    assert versions == list(range(1, WRITERS * ROUNDS * 2 + 1))


def test_two_imports_into_one_stream_lose_no_record_and_no_count() -> None:
    place = new_database()
    declared(place, "c")
    at_once(lambda: put(place, "c", "one"), lambda: put(place, "c", "two"))
    with open_writer(place) as writer:
        (count,) = writer.counts()
        writer.finish()
    with open_reader(place).snapshot() as snapshot:
        snapshot.confine(["c"])
        stream = snapshot.stream("c", "letters")
        assert stream is not None
        fields = list(stream.fields.values())
        assert count.records == ROUNDS * 4
        assert snapshot.word_counts(fields, ["lantern"]).get() == {"lantern": ROUNDS * 4}
        assert snapshot.statistics([stream.id], fields).get()[0] == ROUNDS * 4


def test_an_import_that_fails_leaves_nothing_half_done() -> None:
    place = new_database()
    declared(place, "c")
    with open_writer(place) as writer, pytest.raises(InvalidRequest):
        with writer.transaction():
            batch = Batch(writer)
            batch.add(open_stream(writer, "c", "letters"), row("letters", "x", body="lantern"))
            batch.flush()
            raise InvalidRequest("the end of the file is missing")
    with open_reader(place).snapshot() as snapshot, open_writer(place) as writer:
        snapshot.confine(["c"])
        stream = snapshot.stream("c", "letters")
        assert stream is not None
        assert list(snapshot.changes(stream.id, 0)) == []
        assert snapshot.word_counts(list(stream.fields.values()), ["lantern"]).get() == {}
        assert writer.counts()[0].records == 0


def test_indexes_of_words_come_with_the_first_load_and_change_no_answer(tmp_path: Path) -> None:
    place = new_database()
    declared(place, "c")
    put(place, "c", "w", rounds=3)
    api = House(place).api()
    before = api.rest("/v1/search", q="lantern").body["data"]
    with open_writer(place) as writer:
        writer.finish()
    assert len(before) == 6
    assert api.rest("/v1/search", q="lantern").body["data"] == before


def test_a_revoked_grant_ends_with_the_next_request() -> None:
    place = new_database()
    declared(place, "c")
    put(place, "c", "w", rounds=1)
    house = House(place)
    grant_id, token = house.grant()
    api = worlds.Api(house.app, token)
    assert api.rest("/v1/search", q="lantern").status == 200
    house.revoke(grant_id)
    assert api.rest("/v1/search", q="lantern").status == 401


def test_a_key_that_only_one_engine_could_hold_is_refused_by_both() -> None:
    place = new_database()
    declared(place, "c")
    with open_writer(place) as writer:
        batch = Batch(writer)
        stream = open_stream(writer, "c", "letters")
        batch.add(stream, Row({"id": "x", "body": "a\0b lantern"}, "x"))
        batch.add(stream, Row({"id": "y\0"}, "y\0"))
        batch.flush()
        assert batch.counts.new == 1 and batch.counts.refused == 1
    with open_reader(place).snapshot() as snapshot:
        snapshot.confine(["c"])
        found = snapshot.stream("c", "letters")
        assert found is not None
        assert snapshot.word_counts(list(found.fields.values()), ["lantern"]).get() == {
            "lantern": 1
        }


def test_a_database_without_a_store_says_how_to_fill_one() -> None:
    with pytest.raises(EvidenceError, match="rung import"):
        with open_reader(empty_database()).snapshot() as snapshot:
            snapshot.generation()


def test_an_unchanged_mail_is_known_by_its_bytes(tmp_path: Path) -> None:
    place, box = empty_database(), tmp_path / "m.mbox"
    mail = "From a@b Tue Mar  3 10:00:00 2026\nMessage-ID: <{}@x>\n\nlow tide\n\n"
    digests = list[list[int]]()
    for mails, counts in (("12", (2, 0, 0)), ("123", (1, 0, 2)), ("1", (0, 0, 1))):
        box.write_text("".join(map(mail.format, mails)))
        with Parser([str(box)]) as parser:
            parser.find()
            done = import_files(place, parser, Plan("c")).counts
            assert (done.new, done.changed, done.unchanged) == counts
        with open_writer(place) as writer:
            digests.append(list(writer.digests("c")))
    assert list(map(len, digests)) == [2, 3, 3] and set(digests[0]) < set(digests[1])
    with open_writer(place) as writer:
        batch, stream = Batch(writer), open_stream(writer, "c", "messages")
        batch.add(stream, Row({"id": "1@x", "body": "high tide"}))
        batch.flush()
        assert len(list(writer.digests("c"))) == 2
