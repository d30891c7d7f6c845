"""How often a request waits for the database: what is known to follow is asked for together."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from evidence.errors import TimedOut, Unauthenticated
from service.place import Database
from service.ports import SchemaQuery, SearchQuery
from service.records.opening import open_reader
from service.records.store import Store
from tests.helpers import worlds
from tests.helpers.places import new_database
from tests.helpers.two_owners import letters
from tests.helpers.worlds import Api, Connection, House, World

#: The token; the words, the candidates and the records of a question.
LEAST = 1 + 3
#: One more, for those of many candidates that are shown.
MANY = LEAST + 1
#: Two more, to count the matches in a long value that is shown, if a passage may hold all words.
MOST = LEAST + 2
#: The words that share a key with two that do not occur, their counts, and those of their forms.
REPAIRED = LEAST + 3
#: The record, and the first chunk with those of the window.
WINDOW = 1 + 2
PIECE_BYTES = 65_536
#: The kind of a message and its length.
HEAD_BYTES = 5
PARAGRAPH = "a lantern by the harbour " + "lorem ipsum dolor sit amet " * 90


class Turns:
    """A relay before a server that counts how often an answer was awaited."""

    def __init__(self, host: str, port: int) -> None:
        self._server, self._sockets = (host, port), list[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.count = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._accept)
        thread.start()
        try:
            yield
        finally:
            for one in (self._listener, *self._sockets):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._sockets += [client, server]
            for source, target, count in ((client, server, self._asked), (server, client, None)):
                way = source, target, count
                threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, count: Callable[[bytes], bytes] | None
    ) -> None:
        """Hands on bytes, and counts messages in them; what has not come whole is kept."""
        left = b""
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                if count is not None:
                    left = count(left + piece)
                target.sendall(piece)

    def _asked(self, sent: bytes) -> bytes:
        """Counts what a client waits for: a pipeline, or a query but for the end of all."""
        start = 0 if sent[:1].isalpha() else int.from_bytes(sent[:4])  # its first has no type
        while start + HEAD_BYTES <= len(sent):
            end = start + 1 + int.from_bytes(sent[start + 1 : start + HEAD_BYTES])
            if end > len(sent):
                break
            kind, text = sent[start : start + 1], sent[start + HEAD_BYTES : end]
            self.count += kind == b"S" or (kind == b"Q" and text != b"ROLLBACK\0")
            start = end
        return sent[start:]


@contextmanager
def relayed(world: World) -> Iterator[tuple[Turns, Api]]:
    """A client of a new database with this world, and the relay between the two."""
    place = new_database()
    worlds.fill(place, world)
    parts = urlsplit(place.url)
    with psycopg.connect(place.url) as db:
        turns = Turns(db.info.host, db.info.port)
    user = f"{parts.username}@" if parts.username else ""
    near = parts._replace(netloc=f"{user}127.0.0.1:{turns.port}")
    house = replace(House(place), path=Database(urlunsplit(near)))
    with turns.running():
        yield turns, Api(house.application(), House(place).grant()[1])


def test_a_search_asks_for_what_will_follow_together() -> None:
    fields = {"body": worlds.text("primary-text")}
    letters = worlds.stream("letters", fields, query={"search": {"lexical_fields": ["body"]}})
    texts = {f"short{n}": f"lantern {n}" for n in range(9)} | {"long": PARAGRAPH * 40}
    texts["apart"] = f"a quay {'amber birch cedar ' * 6_000} a gull"
    texts |= {f"many{n}": f"a bell ring{n} {'and a stone ' * n}" for n in range(40)}
    rows = tuple(worlds.row("letters", key, body=text) for key, text in texts.items())
    with relayed(World((Connection("mine", "post", None, (letters,), rows),))) as (turns, api):
        for words, expected, most in (
            ("lantern 5", 10, None),
            ("lantern 6", 10, LEAST),
            ("harbour ipsum", 1, MOST),
            ("quay gull", 1, LEAST),
            ("lantrn harbor", 10, REPAIRED),
            ("bell ring30", 25, MANY),
        ):
            before = turns.count
            found = api.rest("/v1/search", q=words).body["data"]
            assert len(found) == expected
            assert most is None or turns.count - before == most, words
        before = turns.count
        path = "/v1/streams/letters/records/long/field-window"
        asked = {"field": "body", "offset_chars": 50_000, "limit_chars": 100}
        assert len(api.rest(path, **asked).body["window"]["text"]) == 100
        assert turns.count - before == WINDOW


def test_an_aggregate_waits_no_more_often_for_more_connections() -> None:
    fields = {"at": worlds.moment(), "size": {"type": "integer"}, "kind": worlds.text()}
    named = {"group_by": ["kind"], "group_by_time": ["at"], "sum": ["size"], "min": ["size"]}
    notes = worlds.stream("notes", fields, "at", query={"aggregations": named})
    row = worlds.row("notes", "one", at="2026-03-04T05:06:07Z", size=3, kind="plain")
    asked = (
        {"metric": "count", "group_by": "kind"},
        {"metric": "count", "group_by_time": "at", "granularity": "month"},
        {"metric": "sum", "field": "size"},
        {"metric": "min", "field": "size"},
    )
    waits = dict[int, list[int]]()
    for count in (1, 9):
        connections = [Connection(f"c{n}", "post", None, (notes,), (row,)) for n in range(count)]
        with relayed(World(tuple(connections))) as (turns, api):
            waits[count] = []
            for one in asked * 2:  # the streams are known the second time
                before = turns.count
                found = api.rest("/v1/streams/notes/aggregate", **one).body
                assert found["filtered_record_count"] == count
                waits[count].append(turns.count - before)
    assert waits[9][len(asked) :] == waits[1][len(asked) :]


def test_statements_that_are_sent_together_stay_within_the_deadline() -> None:
    place = new_database()
    worlds.fill(place, letters("home", 1))
    with open_reader(place).snapshot(1) as snapshot:
        slow = [snapshot.later("SELECT pg_sleep(0.1), ?", n) for n in range(60)]
        with pytest.raises(TimedOut):
            slow[-1].get()


def test_a_session_sees_what_was_committed_after_its_token_was_checked(tmp_path: Path) -> None:
    house = worlds.build(letters("home", 2), tmp_path)
    grant_id, token = house.grant()
    session = Store(house.path).open(token)
    question = SearchQuery("lantern")
    assert len(session.search(question).value.hits) == 2
    house.add("home", worlds.row("letters", "new", body="one more lantern"))
    assert session.schema(SchemaQuery())
    assert len(session.search(question).value.hits) == 3
    house.revoke(grant_id)
    with pytest.raises(Unauthenticated):
        session.schema(SchemaQuery())


def test_statements_that_are_sent_together_share_the_deadline() -> None:
    reader, pause = open_reader(new_database()), "SELECT pg_sleep(0.2), ?::int"
    sleeping = "SELECT pid FROM pg_stat_activity WHERE starts_with(query, ?) AND state = 'active'"
    with closing(reader):
        with pytest.raises(TimedOut), reader.snapshot(0.5) as snapshot:
            [snapshot.later(pause, number) for number in range(10)][0].get()
        with reader.snapshot() as snapshot:  # the pool has another connection
            assert snapshot.run(pause, 1)[0][1] == 1
            assert snapshot.run(sleeping, "SELECT pg_sleep") == []
