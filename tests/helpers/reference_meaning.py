"""How near records are to a question, computed from the vectors of all texts that a grant shows.

Vectors are lists of signed bytes, and everything about them is given as plain data. See also
`tests/helpers/reference.py`.
"""

import hashlib
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from evidence.windows import windows

SAMPLED, FEWEST, COMMON = 200, 20, 0.25
RESCORED, NEAREST = 2_000, 50
NEIGHBOURS = {1: 0.3, 2: 0.15}
DIGITS = 9


class Vector(NamedTuple):
    """The vector of a window that starts at `start`; `lot` decides whether it is sampled."""

    lot: int
    start: int
    numbers: tuple[int, ...]


def vectors_of(
    place: Sequence[str], texts: Mapping[str, str], title: str, embed: Callable[[str], bytes]
) -> Iterator[Vector]:
    """The vectors of the fields of a record at (connection, stream, id), each after its title."""
    for name, text in texts.items():
        before = f"{texts[title][:160]}\n" if title in texts and name != title else ""
        digest = hashlib.sha256("\0".join([*place, name]).encode()).digest()
        lot = int.from_bytes(digest[:8], "big") % (1 << 62)
        for start, end in windows(text, lambda window: len(window.split())):
            yield Vector(lot, start, tuple(array("b", embed(before + text[start:end]))))


class Meaning:
    """One question against the vectors of all records that a grant shows, by their ids."""

    def __init__(
        self,
        vectors: Mapping[str, Sequence[Vector]],
        question: bytes,
        calibration: tuple[float, float],
    ) -> None:
        self.vectors, self.question = vectors, tuple(array("b", question))
        self._calibration = calibration

    @cached_property
    def sample(self) -> list[Vector]:
        """The sampled first windows."""
        every = [one for each in self.vectors.values() for one in each if one.start == 0]
        return sorted(every, key=lambda one: one.lot)[:SAMPLED]

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Mean and deviation of the cosines of the sample."""
        if len(self.sample) < FEWEST:
            return self._calibration
        cosines = list(map(self._cosine, self.sample))
        mean = math.fsum(cosines) / len(cosines)
        squares = math.fsum((cosine - mean) ** 2 for cosine in cosines)
        return mean, max(1e-6, math.sqrt(squares / len(cosines)))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The question without part of what the sample has in common."""
        if len(self.sample) < FEWEST:
            return self.question
        lengths = [_length(one.numbers) or 1.0 for one in self.sample]
        share = COMMON * (_length(self.question) or 1.0) / len(self.sample)
        common = (
            math.fsum(number / length for number, length in zip(column, lengths))
            for column in zip(*(one.numbers for one in self.sample))
        )
        return tuple(number - round(share * mean) for number, mean in zip(self.question, common))

    def _cosine(self, vector: Vector) -> float:
        product = sum(map(int.__mul__, vector.numbers, self.numbers))
        return product / ((_length(vector.numbers) or 1.0) * (_length(self.question) or 1.0))

    def _nearness(self, vectors: Iterable[Vector]) -> float:
        mean, deviation = self.scale
        return (max(map(self._cosine, vectors)) - mean) / deviation

    @cached_property
    def nearness(self) -> dict[str, float]:
        """That of every record with a vector; all codes are among the nearest."""
        assert sum(map(len, self.vectors.values())) <= RESCORED
        return {id: self._nearness(each) for id, each in self.vectors.items() if each}


def lifted(nearness: Mapping[str, float], id: str, neighbours: Mapping[str, int]) -> float:
    """The nearness of a record with what its neighbours add."""
    added = (NEIGHBOURS[away] * max(0.0, nearness.get(n, 0.0)) for n, away in neighbours.items())
    return max(0.0, nearness[id]) + sum(added)


def _length(numbers: Sequence[int]) -> float:
    return math.sqrt(sum(number * number for number in numbers))
