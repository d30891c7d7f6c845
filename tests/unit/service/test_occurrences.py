"""Equal rows are numbered, however many rows a file has."""

import random

from service.importing.occurrences import IN_MEMORY, Occurrences
from tests.helpers.memory import peak_growth


def test_keys_are_counted_beyond_what_memory_has() -> None:
    draw = random.Random(7)
    keys = [draw.randrange(1 << 63) for _ in range(IN_MEMORY)]
    seen = Occurrences()
    for number in (1, 2, 3):
        assert {seen.add(key) for key in keys} == {number}
    assert [seen.add(keys[0]), seen.add(5), seen.add(5)] == [4, 1, 2]
    seen.clear()
    assert seen.add(keys[0]) == 1


def test_the_keys_of_many_rows_take_no_more_memory_than_those_of_some() -> None:
    draw, seen = random.Random(7), Occurrences()

    def add(rows: int) -> None:
        for _ in range(rows):
            seen.add(draw.randrange(1 << 63))

    some = peak_growth(lambda: add(IN_MEMORY))
    assert peak_growth(lambda: add(4 * IN_MEMORY)) < 2 * some
    seen.clear()
