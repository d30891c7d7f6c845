"""JSON is looked over as a parser would read it, wherever its pieces end."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.limits import BUDGETS
from evidence.work import TooDeeplyNested, TooManyValues, parse_json

ROOM = BUDGETS.piece_bytes
odd = st.text(st.sampled_from('\\"[]{},:/ uné\n'))
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | odd,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd, inner, max_size=4),
    max_leaves=20,
)


def structure(value: Any) -> int:
    """Brackets, commas and colons that a value is written with."""
    if isinstance(value, list):
        return 2 + max(0, len(value) - 1) + sum(map(structure, value))
    if isinstance(value, dict):
        return 2 + max(0, len(value) - 1) + len(value) + sum(map(structure, value.values()))
    return 0


def levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(levels, inner), default=0) if isinstance(value, (dict, list)) else 0


@given(value=values, before=st.integers(ROOM - 40, ROOM + 5), padding=st.sampled_from(["\\", "x"]))
def test_exactly_as_much_structure_and_as_many_levels_as_are_allowed_pass(
    value: Any, before: int, padding: str
) -> None:
    """The value lies across the end of a piece; what fills up the bounds stands before it."""
    text = padding * (before // len(orjson.dumps(padding)[1:-1]))
    for more, refused in ((0, False), (1, True)):
        filling = BUDGETS.json_structure - structure([text, value, []]) + more
        raw = orjson.dumps([text, value, []])[:-2] + b"," * filling + b"]]"
        assert is_refused(raw, TooManyValues) == refused
    for more, refused in ((0, False), (1, True)):
        around = BUDGETS.json_levels - levels([text, value]) + more
        raw = b"[" * around + orjson.dumps([text, value]) + b"]" * around
        assert is_refused(raw, TooDeeplyNested) == refused


def is_refused(raw: bytes, kind: type[ValueError]) -> bool:
    """Whether a text is refused so; it may be no JSON for all that."""
    try:
        parse_json(raw)
    except orjson.JSONDecodeError:
        return False
    except kind:
        return True
    return False


@pytest.mark.parametrize("size", range(ROOM - 8, ROOM + 8))
def test_escapes_at_the_end_of_a_piece_are_read_as_such(size: int) -> None:
    for end in ("\\", '"', '\\"', '"\\', "\\\\"):
        told = ["x" * size + end, "[" * (BUDGETS.json_levels + 1)]
        assert parse_json(orjson.dumps(told)) == told


def test_what_is_nested_again_and_again_is_not_deep() -> None:
    side_by_side = [[[[]]] for _ in range(BUDGETS.json_structure // 8)]
    assert parse_json(orjson.dumps(side_by_side)) == side_by_side
