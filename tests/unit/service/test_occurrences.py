"""Equal rows are numbered, however many rows a file has."""

import random

from service.importing.occurrences import Occurrences
from tests.helpers.memory import peak_growth

ROWS = 100_000


def test_keys_are_counted_beyond_what_memory_has() -> None:
    draw = random.Random(7)
    keys = [draw.randrange(1 << 63) for _ in range(ROWS)]
    seen = Occurrences()
    for number in (1, 2, 3):
        assert {seen.add(key) for key in keys} == {number}
    assert [seen.add(keys[0]), seen.add(5), seen.add(5)] == [4, 1, 2]
    seen.clear()
    assert seen.add(keys[0]) == 1


def test_the_keys_of_many_rows_take_no_memory() -> None:
    draw, seen = random.Random(7), Occurrences()

    def add() -> None:
        for _ in range(ROWS):
            seen.add(draw.randrange(1 << 63))

    assert peak_growth(add) < ROWS
