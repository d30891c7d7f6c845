"""What is kept of answers: never more than may be, never for a session that read something else."""

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from service.mcp.answer_cache import ENTRY_BYTES, Call, AnswerCache


class Caller(NamedTuple):
    """A session: all that matters of one here is its version."""

    version: Any


def call_of(cache: AnswerCache, version: Any, number: int) -> Call:
    found = cache.call(Caller(version), "2025-11-25", "search", {"query": str(number)})
    assert found is not None
    return found


SIZES = st.integers(0, 3_000)
STEPS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), SIZES), max_size=60)


@given(STEPS, st.integers(1, 8_000))
def test_the_answers_used_last_are_kept_and_never_more_than_fit(
    steps: list[tuple[int, int, int]], most: int
) -> None:
    cache = AnswerCache(most)
    model: dict[Call, bytes] = {}  # the answers used last stand last

    def weight(call: Call, result: bytes) -> int:
        return len(result) + len(call.arguments) + len(call.name) + ENTRY_BYTES

    for version, number, size in steps:
        call = call_of(cache, version, number)
        found = cache.find(call)
        assert found == model.get(call)
        if found is not None:
            model[call] = model.pop(call)
            continue
        result = bytes([number]) * size
        cache.keep(call, Caller(version), result)
        if weight(call, result) <= most:
            model[call] = result
        while sum(weight(*each) for each in model.items()) > most:
            del model[next(iter(model))]


def test_what_was_read_while_something_was_committed_is_not_kept() -> None:
    cache = AnswerCache(10_000)
    call = call_of(cache, "before", 1)
    for later in ("after", None):
        cache.keep(call, Caller(later), b"{}")
        assert cache.find(call) is None
    cache.keep(call, Caller("before"), b"{}")
    assert cache.find(call) == b"{}"


def test_a_session_without_a_version_has_nothing_kept() -> None:
    cache = AnswerCache(10_000)
    for session in (Caller(None), object(), None):
        assert cache.call(session, "2025-11-25", "schema", {}) is None
