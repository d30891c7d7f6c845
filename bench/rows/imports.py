"""Imports: time compared with a bare insert, repetition, searches during an import, and memory."""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench import figures, stores
from bench.calls import MODERN, call
from bench.findings import Finding, Line, Note
from bench.load import drive
from bench.peers.environments import HITS
from bench.plan import Plan
from bench.servers import memory_of, pinned, rung, two_cores
from service.records.sqlite.writer import open_writer

CONNECTION, STREAM = "made-up", "messages"
SECOND = "made-up-later"
SAMPLE_SECONDS = 0.05
MB = 1_000_000
MS = 1_000


@dataclass(frozen=True, slots=True)
class Imported:
    """A store of one connection with one stream, and a token for it."""

    store: Path
    token: str


@dataclass(frozen=True, slots=True)
class Run:
    """A finished process: seconds, peak anonymous and resident memory in bytes, and its output."""

    seconds: float
    anonymous: int
    resident: int
    output: str


def measure(plan: Plan) -> Iterator[Line]:
    rows = stores.open_rows(plan.middle)
    core, _ = two_cores()
    rounds = []
    for _ in range(plan.imports):
        with _folder() as folder, pinned(core):
            command = import_command(rows, folder / "store.db", folder)
            ours, again = run(command), run(command)
            bare = float(run([*PYTHON, "-m", "bench.bare", f"{rows}", f"{folder}/bare.db"]).output)
            rounds.append((ours.seconds, bare, again.seconds))
    first, plainly, later = zip(*rounds)
    yield Finding("import", figures.ratios(first, plainly))
    yield Finding("import-again", figures.ratios(later, first))
    for name, seconds in (("Rung", first), ("Rung again", later), ("bare insert", plainly)):
        yield Note(f"{name}: records a second", f"{plan.middle / min(seconds):,.0f}")
    yield from _searches_meanwhile(plan, rows)
    large = stores.open_rows(plan.large)
    with _folder() as folder, pinned(core):
        whole = run(import_command(large, folder / "store.db", folder))
        keep(folder / "store.db", plan.large)
    yield Finding("import-memory", (whole.anonymous / MB,))
    yield Note("resident with mapped files", f"{whole.resident / MB:.0f} MB")
    yield Note(f"import of {plan.large:,}", f"{plan.large / whole.seconds:,.0f} records/s")


PYTHON = (sys.executable,)


def _searches_meanwhile(plan: Plan, rows: Path) -> Iterator[Line]:
    """Searches of a store at rest, and while as many records again are imported into it."""
    found = open_imported(plan.middle)
    queries = stores.open_queries(plan.middle).mix
    requests = [
        call(found.token, "search", {"query": query, "limit": HITS}, era=MODERN)
        for query in queries
    ]
    core, client = two_cores()
    with _folder() as folder:
        store = Path(shutil.copy(found.store, folder))
        command = import_command(rows, store, folder, connection=SECOND)
        with rung(store, core) as server, pinned(client):

            def p95() -> float:
                return drive(server.port, requests, total=plan.asks, connections=1).p95 * MS

            alone, during = p95(), list[float]()
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    during.append(p95())
    if process.returncode:
        raise RuntimeError(f"{command} failed")
    yield Note("p95 of mixed searches, one client, no import", f"{alone:.1f} ms")
    yield Note(
        "… during an import: median and highest p95",
        f"{statistics.median(during):.1f} and {max(during):.1f} ms",
    )


def import_command(
    rows: Path, store: Path | str, folder: Path, *, connection: str = CONNECTION
) -> list[str]:
    """`rung import` of the rows, with the manifest of the corpus."""
    manifest = folder / "manifest.json"
    manifest.write_bytes(orjson.dumps({"streams": [stores.stream_document(STREAM)]}))
    command = [*PYTHON, "-m", "service", "import", f"{rows}", "--store", f"{store}"]
    return [*command, "--connection", connection, "--stream", STREAM, "--manifest", f"{manifest}"]


def run(command: Sequence[str]) -> Run:
    """Runs a process to its end and samples its memory. Raises `RuntimeError` if it fails."""
    begun = time.perf_counter()
    anonymous = resident = 0
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        while process.poll() is None:
            try:
                anonymous = max(anonymous, memory_of(process.pid, "RssAnon"))
                resident = max(resident, memory_of(process.pid, "VmRSS"))
            except (OSError, LookupError):  # it has just ended
                pass
            time.sleep(SAMPLE_SECONDS)
        seconds = time.perf_counter() - begun
        output.seek(0), errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"{command} failed: {errors.read().decode()[-2000:]}")
        return Run(seconds, anonymous, resident, output.read().decode())


def open_imported(count: int) -> Imported:
    """The store of the last import of `count` records, imported now if there is none."""

    def build(folder: Path) -> None:
        run(import_command(stores.open_rows(count), folder / "store.db", folder))
        with open_writer(folder / "store.db") as writer:
            (folder / "token").write_text(stores.grant(writer, [CONNECTION]))

    folder = stores.kept(f"imported-{count}", stores.layout(), build)
    return Imported(folder / "store.db", (folder / "token").read_text())


def keep(store: Path, count: int) -> None:
    """Makes a store that was just imported the one that `open_imported` returns."""

    def build(folder: Path) -> None:
        shutil.move(store, folder / "store.db")
        with open_writer(folder / "store.db") as writer:
            (folder / "token").write_text(stores.grant(writer, [CONNECTION]))

    stores.kept(f"imported-{count}", stores.layout(), build)


@contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder on the same disk as the kept files."""
    with tempfile.TemporaryDirectory(dir=stores.HOME) as name:
        yield Path(name)
