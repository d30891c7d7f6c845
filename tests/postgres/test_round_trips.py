"""How often a request waits for the database: what is known to follow is asked for together."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import psycopg

from service.place import Database
from tests.helpers import worlds
from tests.helpers.places import new_database
from tests.helpers.worlds import Connection, House, World

#: Passages of a long value are read together; one by one they took twice as many.
MOST = 20
PIECE_BYTES = 65_536
PARAGRAPH = "a lantern by the harbour " + "lorem ipsum dolor sit amet " * 90


class Turns:
    """A relay before a server that counts how often it answered."""

    def __init__(self, host: str, port: int) -> None:
        self._server, self._sockets = (host, port), list[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.count = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._accept, daemon=True)]
        threads[0].start()
        try:
            yield
        finally:
            for one in (self._listener, *self._sockets):
                one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._sockets += [client, server]
            asked = threading.Event()
            for source, target, answers in ((client, server, False), (server, client, True)):
                way = source, target, answers, asked
                threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, answers: bool, asked: threading.Event
    ) -> None:
        """Hands on bytes; an answer is the first of the server's bytes after the client's."""
        try:
            while piece := source.recv(PIECE_BYTES):
                if answers and asked.is_set():
                    asked.clear()
                    self.count += 1
                elif not answers:
                    asked.set()
                target.sendall(piece)
        except OSError:
            return


def test_a_search_asks_for_what_will_follow_together() -> None:
    place = new_database()
    fields = {"body": worlds.text("primary-text")}
    letters = worlds.stream("letters", fields, query={"search": {"lexical_fields": ["body"]}})
    texts = {f"short{n}": f"lantern {n}" for n in range(9)} | {"long": PARAGRAPH * 40}
    rows = tuple(worlds.row("letters", key, body=text) for key, text in texts.items())
    worlds.fill(place, World((Connection("mine", "post", None, (letters,), rows),)))
    parts = urlsplit(place.url)
    with psycopg.connect(place.url) as db:
        turns = Turns(db.info.host, db.info.port)
    user = f"{parts.username}@" if parts.username else ""
    near = parts._replace(netloc=f"{user}127.0.0.1:{turns.port}")
    house = replace(House(place), path=Database(urlunsplit(near)))
    with turns.running():
        api = worlds.Api(house.application(), House(place).grant()[1])
        assert len(api.rest("/v1/search", q="lantern 5").body["data"]) == 10
        before = turns.count
        found = api.rest("/v1/search", q="harbour ipsum").body["data"]
        assert [hit["record_key"] for hit in found] == ["long"]
        assert turns.count - before <= MOST
