"""A disk that gets full during an import: what is said is what is there."""

import random
import shutil
from pathlib import Path

import pytest

from service.records.opening import open_writer
from tests.helpers import worlds
from tests.helpers.full_disk import FullDisk
from tests.helpers.two_owners import letters

ROWS, WORDS = 5_000, 25
#: Bytes that each file of the store can have: for nothing, some rows, all but the merge, and all.
ROOMS = (230_000, 1_500_000, 6_000_000, 7_000_000, 8_000_000, 50_000_000)


@pytest.mark.slow
def test_an_import_reports_what_is_in_the_store(tmp_path: Path) -> None:
    draw = random.Random(7)
    with (tmp_path / "many.ndjson").open("w") as file:
        for n in range(ROWS):
            text = " ".join(f"w{draw.randrange(30_000)}" for _ in range(WORDS))
            file.write(f'{{"id": "n{n}", "text": "{text}"}}\n')
    disk, kinds = FullDisk(tmp_path), set()
    first = worlds.build(letters("home", 3), tmp_path)
    for room in ROOMS:
        place = tmp_path / str(room) / "rung.db"
        place.parent.mkdir()
        shutil.copy(str(first.path), place)
        command = ("import", str(tmp_path / "many.ndjson"), "--connection", "late")
        result = disk.run(*command, "--store", str(place), room=room)
        with open_writer(place) as writer:
            counted = {count.connection_id: count.records for count in writer.counts()}
        assert counted["home"] == 3
        if result.returncode == 0:
            assert counted["late"] == ROWS
            warned = "the rows were imported, but the indexes were not merged" in result.stderr
            kinds.add("merge" if warned else "all")

        else:
            assert "full" in result.stderr and "All complete batches of rows are in the store" in (
                result.stderr
            )
            assert 0 < counted.get("late", 1) < ROWS, "an empty stream, or an error after all"
            kinds.add("some" if "late" in counted else "nothing")
    assert kinds == {"nothing", "some", "merge", "all"}
