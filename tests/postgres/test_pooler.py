"""Through pgbouncer in transaction mode, a request sees the records of its grant and no others."""

import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from evidence.work import Deadline
from service.place import Database
from tests.helpers import worlds
from tests.helpers.places import new_database
from tests.helpers.two_owners import letters
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import Api, House, World
from tests.postgres.server import OWNER
from tests.postgres.test_wall import ROLE, web_role

OWNERS, ROUNDS, SESSIONS = 4, 25, 2
CONFIGURATION = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
"""


def program() -> str:
    """The program, which is installed if it is not there and can be."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if not found and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "pgbouncer"], stdout=subprocess.DEVNULL)
        found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if not found:
        pytest.skip("pgbouncer is not installed, and cannot be: install Debian's package pgbouncer")
    return found


@contextmanager
def pooled(place: Database) -> Iterator[Database]:
    """The same database through a pooler of few sessions."""
    parts = urlsplit(place.url)
    with TemporaryDirectory(prefix="rung-pooler-") as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = probe.getsockname()[1]
        probe.close()
        texts = {
            "users": f'"{ROLE}" "tests"\n',
            "ini": CONFIGURATION.format(
                host=parts.hostname,
                port=parts.port or 5432,
                listen=listen,
                folder=folder,
                sessions=SESSIONS,
            ),
        }
        for name, text in texts.items():
            Path(folder, name).write_text(text)
        user = None
        if os.geteuid() == 0:  # it refuses to run as root
            user = OWNER
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        command = [program(), "-q", f"{folder}/ini"]
        pooler = subprocess.Popen(command, user=user, stderr=subprocess.DEVNULL)
        through = parts._replace(netloc=f"{ROLE}:tests@127.0.0.1:{listen}")
        try:
            deadline = Deadline.after(WAIT_SECONDS)
            while not answers(urlunsplit(through)):
                assert pooler.poll() is None and not deadline.expired()
            yield Database(urlunsplit(through))
        finally:
            pooler.terminate()
            pooler.wait()


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, prepare_threshold=None).close()
    except psycopg.Error:
        return False
    return True


def test_many_owners_over_few_sessions_see_their_own_records_only() -> None:
    place = new_database()
    names = [f"owner{number}" for number in range(OWNERS)]
    worlds.fill(place, World(tuple(letters(name, 3).connections[0] for name in names)))
    house, seen = House(place), list[tuple[str, ...]]()
    tokens = {name: house.grant({"connection_id": name})[1] for name in names}
    with web_role(place), pooled(place) as through:
        app = replace(house, path=through).application()

        def ask(name: str) -> None:
            api = Api(app, tokens[name])
            for _ in range(ROUNDS):
                for path in ("/v1/search?q=lantern", "/v1/streams/letters/records"):
                    found = api.get(path).body["data"]
                    seen.append((name, *(one["connection_id"] for one in found)))

        threads = [threading.Thread(target=ask, args=(name,)) for name in names * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == len(threads) * ROUNDS * 2
    assert set(seen) == {(name,) * 4 for name in names}
