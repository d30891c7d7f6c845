"""A mailbox on a real Dovecot server: rounds without news, and the time to find a new message."""

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import corpus, stores
from bench.findings import Finding, Line, Note
from bench.plan import Plan
from service import ports
from service.place import file_of
from service.records.store import Store
from tests.helpers.synced import Synced
from tests.sources.daemon import PASSWORD
from tests.sources.dovecot import INBOX, Dovecot, dovecot

#: A mail that does not arrive within so many seconds fails the run.
ARRIVAL_SECONDS, LOOK_SECONDS = 120, 0.02
MAIL = (
    "From: ada@example.com\r\nMessage-ID: <{id}@example.com>\r\nSubject: {title}\r\n\r\n{body}\r\n"
)


def measure(plan: Plan) -> Iterator[Line]:
    with TemporaryDirectory(dir=stores.HOME) as name, dovecot() as server:
        _fill(server, plan.middle)
        synced = Synced.make(Path(name).absolute())
        _add(synced, server)
        begun = time.perf_counter()
        cpu = _round(synced, f"mail: {plan.middle} new.")
        seconds = time.perf_counter() - begun
        yield Note("first round: messages a second", f"{plan.middle / seconds:,.0f}")
        yield Note("… and CPU for each, without the server's", f"{cpu / plan.middle * 1e3:.2f} ms")
        before = _hashes(synced)
        rounds = [_round(synced, "mail: nothing new.") for _ in range(plan.rounds)]
        changed = {path for path, _ in before ^ _hashes(synced)}
        yield Finding("sync-idle", tuple(rounds))
        yield Finding("sync-bytes", (len(changed),))
        yield Finding("sync-arrival", tuple(_arrivals(synced, server, plan.rounds)))


def _fill(server: Dovecot, count: int) -> None:
    """Puts mails into the inbox."""
    server.fill(
        INBOX,
        (
            (
                f"cur/{number}.mail:2,S",
                MAIL.format(id=number, title=record.title, body=record.body).encode(),
            )
            for number, record in enumerate(corpus.records(count))
        ),
    )


def _add(synced: Synced, server: Dovecot) -> None:
    password = synced.folder / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    words = ("mail", server.address, "--kind", "imap", "--password-command", f"cat {password}")
    synced.ok("source", "add", *words)


def _round(synced: Synced, report: str) -> float:
    """Does a round in a process of its own; returns its CPU seconds, with those of its children."""
    process = synced.start("sync")
    assert process.stderr is not None
    with process.stderr as errors:
        lines = errors.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or report not in lines:
        raise RuntimeError(f"the round did not report {report!r}: {lines[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def _hashes(synced: Synced) -> set[tuple[str, str]]:
    """The names and hashes of the files of the store, without the sidecar beside it."""
    store = file_of(synced.store)
    assert store is not None
    hashes = set[tuple[str, str]]()
    for path in (store, store.with_name(f"{store.name}-wal")):
        if path.exists():
            with path.open("rb") as file:
                hashes.add((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
    return hashes


def _arrivals(synced: Synced, server: Dovecot, count: int) -> Iterator[float]:
    """The seconds from the arrival of a mail at the server until a search finds it."""
    with _going_on(synced):
        for number in range(count + 1):
            word = f"zwyrkon{number}falt"
            mail = MAIL.format(id=word, title="Arrival", body=word).encode()
            begun = time.perf_counter()
            server.add(INBOX, mail)
            seconds = _found_after(synced, word, begun)
            if number:  # the first one also waits for the command to start
                yield seconds


@contextmanager
def _going_on(synced: Synced) -> Iterator[None]:
    process = synced.start("sync", "--every")
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _found_after(synced: Synced, word: str, begun: float) -> float:
    """The seconds from a moment until a search finds a word, which is quoted: not a similar one."""
    owner = Store(synced.store).open_owner()
    while not owner.search(ports.SearchQuery(query=f'"{word}"')).value.hits:
        if time.perf_counter() - begun > ARRIVAL_SECONDS:
            raise RuntimeError("a new mail did not arrive")
        time.sleep(LOOK_SECONDS)
    return time.perf_counter() - begun
