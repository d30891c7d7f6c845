"""Imports of files that each become a stream of their own."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from service.importing.process.guard import FileHeader
from service.importing.importer import Import
from service.importing.plan import Plan
from service.records.intake import Row
from service.records.sqlite.writer import open_writer
from service.records.writing.streams import connect

_STEPS = 100


def names(count: int) -> list[str]:
    """Names that are no dates or copies of each other."""
    letters = str.maketrans("0123456789", "abcdefghij")
    return [f"sheet {str(number).translate(letters)}" for number in range(count)]


def work(path: Path, count: int) -> tuple[int, int]:
    """(Python calls, steps of SQLite) of an import of as many files as there are streams."""
    calls, steps = Counter[str](), Counter[str]()

    def on_call(frame: FrameType, event: str, argument: object) -> None:
        calls[event] += 1

    with open_writer(path) as writer:
        connect(writer, "c")
        task = Import(writer, Plan("c"))
        writer.db.set_progress_handler(lambda: steps.update(("n",)), _STEPS)
        sys.setprofile(on_call)
        try:
            for number, name in enumerate(names(count)):
                row = Row({"id": str(number), f"column {number % 7}": "words of a sheet"})
                task.read(FileHeader(name, name, False, False, None), [(1, 1, row)])
            task.finish()
        finally:
            sys.setprofile(None)
        assert task.counts.new == count
    return calls["call"], steps["n"] * _STEPS


def test_the_work_of_an_import_does_not_grow_with_the_square_of_its_streams(tmp_path: Path) -> None:
    work(tmp_path / "warm.db", 8)
    calls, steps = work(tmp_path / "few.db", 60)
    more_calls, more_steps = work(tmp_path / "many.db", 180)
    assert more_calls < 3.3 * calls, (calls, more_calls)
    assert more_steps < 6 * steps, (steps, more_steps)
