"""Changes to a store while it is read: small imports by `rung import`, and short-lived grants.

Each change is checked over HTTP as soon as its command has ended. The next search must find what
was written and must not find what was deleted. A token must work from `rung grant create` until
`rung grant revoke`, and no longer.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.client import UNAUTHORIZED
from pathlib import Path

import orjson

from bench import corpus
from bench.calls import MODERN, call, ids_of
from bench.load import ask, drive

CONNECTION, STREAM = "source-0", "messages"
ROWS = 30  # new ones per import, which also changes the last import's and deletes those before
HITS = 10  # per search
PAUSE_SECONDS = 5.0
LABEL = "for a moment"

_INTO = ("--connection", CONNECTION, "--stream", STREAM)


@dataclass(slots=True)
class Changes:
    """The changes so far. `slowest` is the time of the slowest import in seconds.

    `wrong` describes each change that did not have its effect.
    """

    imports: int = 0
    rows: int = 0
    grants: int = 0
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)


@contextmanager
def changing(
    store: Path, port: int, token: str, *, pause: float = PAUSE_SECONDS
) -> Iterator[Changes]:
    """Changes the store repeatedly, with pauses, until the end of the block."""
    found, done = Changes(), threading.Event()

    def work() -> None:
        number = 0
        while not done.is_set():
            try:
                add_batch(store, port, token, number, found)
                grant_and_revoke(store, port, mark(number), found)
            except Exception as error:  # the load continues, and the soak fails
                found.wrong.append(f"{type(error).__name__}: {error}"[:300])
            number += 1
            done.wait(pause)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def add_batch(store: Path, port: int, token: str, number: int, found: Changes) -> None:
    """Imports a batch and searches for what it added, changed and deleted. `number` is from 0."""
    rows = batch(number)
    file = store.parent / "batch.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    begun = time.perf_counter()
    output = _rung(store, "import", f"{file}", *_INTO)
    found.slowest = max(found.slowest, time.perf_counter() - begun)
    found.imports += 1
    found.rows += len(rows)
    changed, deleted = (ROWS if number >= ago else 0 for ago in (1, 2))
    counts = f"{ROWS} new, {changed} changed, 0 unchanged, {deleted} deleted, 0 refused"
    if counts not in output:
        found.wrong.append(f"import {number} reported: {output.strip()}")
    for ago, expected in ((0, HITS), (1, HITS), (2, 0)):
        if number >= ago:
            ids = set(ids_of(ask(port, _search(token, mark(number - ago)))))
            there = {f"{CONNECTION}/{STREAM}:{id}" for id in _ids(number - ago)}
            if len(ids) != expected or not ids <= there:
                found.wrong.append(
                    f"after import {number}, {len(ids)} hits are from import {number - ago}"
                )


def grant_and_revoke(store: Path, port: int, word: str, found: Changes) -> None:
    """Creates a grant and revokes it, and searches with its token for `word` before and after."""
    created = orjson.loads(_rung(store, "grant", "create", *_INTO, "--label", LABEL, "--json"))
    request = _search(created["token"], word)
    if len(ids_of(ask(port, request))) != HITS:
        found.wrong.append("a new grant does not find what it covers")
    _rung(store, "grant", "revoke", created["grant_id"])
    refused = drive(port, [request], total=1, connections=1, tolerant=True).statuses
    if refused != {UNAUTHORIZED: 1}:
        found.wrong.append(f"a revoked grant is answered with {dict(refused)}")
    found.grants += 1


def mark(number: int) -> str:
    """The word in the records of this import, which no other record contains.

    It is two edits from those of other imports, so that it is not repaired to one of them.
    """
    return f"zwyrsoak{number}x{number}"


def batch(number: int) -> list[dict[str, object]]:
    """The rows of an import: new ones, changes to those of the last import, and deletions."""
    rows = [_row(number, id, "New") for id in _ids(number)]
    if number >= 1:
        rows += [_row(number - 1, id, "Changed") for id in _ids(number - 1)]
    if number >= 2:
        rows += [{"key": id, "op": "delete"} for id in _ids(number - 2)]
    return rows


def _ids(number: int) -> Iterator[str]:
    return (f"soak-{number}-{place}" for place in range(ROWS))


def _row(number: int, id: str, state: str) -> dict[str, object]:
    record = _texts()[int(id.rpartition("-")[2])]
    return {
        "key": id,
        "data": {
            "id": id,
            "title": f"{state}: {record.title}",
            "body": f"{mark(number)} {record.body}",
            "sent_at": record.sent_at,
            "kind": record.kind,
        },
    }


@cache
def _texts() -> Sequence[corpus.Record]:
    return tuple(corpus.records(ROWS))


def _search(token: str, word: str) -> bytes:
    return call(token, "search", {"query": word, "limit": HITS}, era=MODERN)


def _rung(store: Path, *arguments: str) -> str:
    """The output of a `rung` command. Raises `RuntimeError` if it fails."""
    command = [sys.executable, "-m", "service", *arguments, "--store", f"{store}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(arguments[:2])} failed: {(run.stderr or run.stdout)[-300:]}")
    return run.stdout + run.stderr
