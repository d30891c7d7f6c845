"""Promises: read once, several with one wait, and never read for nothing."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from random import Random

import pytest

from service.records.engine.later import Later, all_of, gather, iterate, ready, run
from service.records.engine.scopes import StreamHandle
from service.records.intake import Row
from service.records.sqlite.snapshot import SqliteSnapshot
from service.records.sqlite.writer import Writer
from tests.helpers.filling import put


class Far:
    """Answers every waiting question when the first answer is read, as a far engine does."""

    def __init__(self) -> None:
        self.waits = 0
        self._questions, self._answers = list[int](), dict[int, int]()

    def double(self, number: int) -> Later[int]:
        self._questions.append(number)
        return Later(partial(self._answer, number), lambda: number not in self._answers)

    def _answer(self, number: int) -> int:
        if number not in self._answers:
            self.waits += 1
            self._answers |= {question: 2 * question for question in self._questions}
            self._questions.clear()
        return self._answers[number]


async def doubled(far: Far, number: int, times: int) -> int:
    for _ in range(times):
        number = await far.double(number)
    return number


@pytest.mark.parametrize("seed", range(20))
def test_coroutines_that_are_gathered_wait_as_often_as_the_longest(seed: int) -> None:
    random, far = Random(seed), Far()
    steps = [random.randrange(6) for _ in range(random.randint(1, 8))]
    # No two of them ask the same question.
    numbers = [3**position for position in range(1, len(steps) + 1)]
    inner = gather(map(partial(doubled, far), numbers[1:], steps[1:]))

    async def first() -> list[int]:
        return [await doubled(far, numbers[0], steps[0])]

    parts = run(gather((first(), inner)))
    assert [*parts[0], *parts[1]] == [n * 2**times for n, times in zip(numbers, steps)]
    assert far.waits == max(steps)


def test_promises_of_several_values_wait_once() -> None:
    far = Far()
    doubles = all_of(map(far.double, range(5))).then(sum)
    assert doubles.waits() and far.waits == 0
    assert (doubles.get(), doubles.get(), far.waits) == (20, 20, 1)
    assert run(doubles) == 20 and not doubles.waits()


def test_the_values_of_an_asynchronous_iterator_are_read_as_they_are_asked_for() -> None:
    far = Far()

    async def doubles() -> AsyncIterator[int]:
        for number in (1, 5, 9):
            yield await far.double(number)

    numbers: Iterator[int] = iterate(doubles())
    assert (next(numbers), far.waits) == (2, 1)
    assert list(numbers) == [10, 18]


def test_an_error_ends_the_coroutines_that_wait_beside_it() -> None:
    far, ended = Far(), list[int]()

    async def fail() -> int:
        await far.double(1)
        raise ValueError("of one of them")

    async def wait() -> int:
        try:
            return await doubled(far, 5, 3)
        finally:
            ended.append(5)

    with pytest.raises(ValueError, match="of one of them"):
        run(gather((wait(), fail(), doubled(far, 7, 2))))
    assert ended == [5]


def test_a_file_reads_nothing_for_a_promise_that_is_not_read(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "text": "a lantern"})])
    snapshot, statements = SqliteSnapshot(writer.db, (0, 0)), list[str]()
    writer.db.set_trace_callback(statements.append)
    promise = snapshot.load([1])
    loaded = promise.then(lambda records: [record.record_key for record in records.values()])
    assert statements == []
    assert (loaded.get(), loaded.get(), len(statements)) == (["a"], ["a"], 1)
    assert list(promise.get()) == [1] and len(statements) == 1
    assert ready(3).get() == 3
