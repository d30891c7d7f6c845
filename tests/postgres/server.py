"""A PostgreSQL server for tests: the one that is named, one on this machine, or one of our own."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

VARIABLE = "TEST_DATABASE_URL"
USERS = ("root", "postgres")
PROGRAMS = Path("/usr/lib/postgresql")
OWNER = "postgres"
REACH_SECONDS = 3


def reached(url: str) -> bool:
    """Whether a server answers at a URL and lets its user make databases."""
    try:
        with psycopg.connect(url, connect_timeout=REACH_SECONDS) as db:
            row = db.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            return bool(row and row[0])
    except psycopg.Error:
        return False


@contextmanager
def found() -> Iterator[str]:
    """The URL of a server; ends the program with a message if there is none to be had."""
    named = os.environ.get(VARIABLE)
    if named:
        if not reached(named):
            sys.exit(f"{VARIABLE}: no server answers there that lets its user make databases.")
        yield named
        return
    here = (f"postgresql://{user}@127.0.0.1/postgres" for user in USERS)
    url = next((url for url in here if reached(url)), None)
    if url is not None:
        yield url
        return
    with TemporaryDirectory(prefix="rung-postgres-") as folder, Cluster(Path(folder)) as own:
        yield own.url


class Cluster:
    """A server of our own, over a folder that it may write to. Can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgresql://{OWNER}@127.0.0.1:{self.port}/postgres"
        self._programs = _programs()
        if os.geteuid() == 0:  # it refuses to run as root
            owner = pwd.getpwnam(OWNER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)

    def __enter__(self) -> "Cluster":
        self._run("initdb", "-D", self.folder, "-U", OWNER, "--auth=trust", "-E", "UTF8", "-N")
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the server; returns once it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder, "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        """Stops the server at once, whoever is connected."""
        self._run("pg_ctl", "-D", self.folder, "-m", "immediate", "-w", "stop")

    def follow(self, folder: Path) -> "Cluster":
        """A replica of this server, which runs."""
        replica = Cluster(folder)
        source = ("-h", "127.0.0.1", "-p", self.port, "-U", OWNER)
        self._run("pg_basebackup", "-D", replica.folder, *source, "-R", "-c", "fast")
        replica.start()
        return replica

    def _run(self, program: str, *words: object) -> None:
        user = OWNER if os.geteuid() == 0 else None
        command = [str(self._programs / program), *map(str, words)]
        done = subprocess.run(
            command, user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if done.returncode:
            sys.exit(f"{program} failed: {done.stderr.decode()}")


def _programs() -> Path:
    """The folder with the programs of the server, which are installed if there are none."""
    if not list(PROGRAMS.glob("*/bin/initdb")) and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "postgresql"], check=False)
    versions = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not versions:
        sys.exit(
            "These tests need a PostgreSQL server. Name one in TEST_DATABASE_URL, start one on "
            "this machine, or install Debian's package postgresql."
        )
    return versions[-1].parent
