"""Imports: time beside the bare insert of the same index, and memory at a million records."""

import shutil
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
from bench.findings import Finding, Line, Note
from bench.plan import Plan
from bench.servers import memory_of, pinned, two_cores
from service.upstreams.store.writer import open_writer

CONNECTION, STREAM = "made-up", "messages"
SAMPLE_SECONDS = 0.05
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Imported:
    """A store of one connection with one stream, and a token for it."""

    store: Path
    token: str


@dataclass(frozen=True, slots=True)
class Run:
    """What a process took: seconds, and the most anonymous and resident memory it had, in bytes."""

    seconds: float
    anonymous: int
    resident: int
    said: str


def measure(plan: Plan) -> Iterator[Line]:
    rows = stores.open_rows(plan.middle)
    core, _ = two_cores()
    rounds = []
    for _ in range(plan.imports):
        with _folder() as folder, pinned(core):
            ours = run(import_command(rows, folder / "store.db", folder))
            bare = float(run([*PYTHON, "-m", "bench.bare", f"{rows}", f"{folder}/bare.db"]).said)
            rounds.append((ours.seconds, bare))
    yield Finding("import", figures.ratios(*zip(*rounds)))
    for name, seconds in zip(("Rung", "bare insert"), zip(*rounds)):
        yield Note(f"{name}: records a second", f"{plan.middle / min(seconds):,.0f}")
    large = stores.open_rows(plan.large)
    with _folder() as folder, pinned(core):
        whole = run(import_command(large, folder / "store.db", folder))
        keep(folder / "store.db", plan.large)
    yield Finding("import-memory", (whole.anonymous / MB,))
    yield Note("resident with mapped files", f"{whole.resident / MB:.0f} MB")
    yield Note(f"import of {plan.large:,}", f"{plan.large / whole.seconds:,.0f} records/s")


PYTHON = (sys.executable,)


def import_command(rows: Path, store: Path, folder: Path) -> list[str]:
    """`rung import` of the rows, with the manifest of the corpus."""
    manifest = folder / "manifest.json"
    manifest.write_bytes(orjson.dumps({"streams": [stores.stream_document(STREAM)]}))
    command = [*PYTHON, "-m", "service", "import", f"{rows}", "--store", f"{store}"]
    return [*command, "--connection", CONNECTION, "--stream", STREAM, "--manifest", f"{manifest}"]


def run(command: Sequence[str]) -> Run:
    """Runs a process to its end, looking at its memory; raises `RuntimeError` where it fails."""
    begun = time.perf_counter()
    anonymous = resident = 0
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdout=said, stderr=told)
        while process.poll() is None:
            try:
                anonymous = max(anonymous, memory_of(process.pid, "RssAnon"))
                resident = max(resident, memory_of(process.pid, "VmRSS"))
            except (OSError, LookupError):  # it has just ended
                pass
            time.sleep(SAMPLE_SECONDS)
        seconds = time.perf_counter() - begun
        said.seek(0), told.seek(0)
        if process.returncode:
            raise RuntimeError(f"{command} failed: {told.read().decode()[-2000:]}")
        return Run(seconds, anonymous, resident, said.read().decode())


def open_imported(count: int) -> Imported:
    """The store of the last import of so many records, or of one now."""

    def build(folder: Path) -> None:
        run(import_command(stores.open_rows(count), folder / "store.db", folder))
        with open_writer(folder / "store.db") as writer:
            (folder / "token").write_text(stores.grant(writer, [CONNECTION]))

    folder = stores.kept(f"imported-{count}", stores.layout(), build)
    return Imported(folder / "store.db", (folder / "token").read_text())


def keep(store: Path, count: int) -> None:
    """Makes a store just imported the one that `open_imported` finds."""

    def build(folder: Path) -> None:
        shutil.move(store, folder / "store.db")
        with open_writer(folder / "store.db") as writer:
            (folder / "token").write_text(stores.grant(writer, [CONNECTION]))

    stores.kept(f"imported-{count}", stores.layout(), build)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder beside what is kept, on the same disk."""
    with tempfile.TemporaryDirectory(dir=stores.HOME) as name:
        yield Path(name)
