"""The longest beginning of a text that fits, whatever its characters take."""

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from renderers.rendering import fit_both, fit_json
from evidence.text import escape
from tests.helpers.monsters import ALPHABETS

TEXT = st.text(max_size=60) | st.text("".join(ALPHABETS) + "\U000e0041\u0001u{", max_size=60)


def json(text: str) -> int:
    return len(orjson.dumps(text)) - 2


def shown(text: str) -> int:
    return len(escape(text)[0].encode())


@given(TEXT, st.integers(-2, 400))
@example("", 0)
@example("\U000e0041" * 3, 27)
def test_nothing_longer_fits_json(text: str, room: int) -> None:
    fitting = [text[:size] for size in range(len(text) + 1) if json(text[:size]) <= room]
    assert fit_json(text, room) == max(fitting, key=len, default="")


@given(TEXT, st.integers(-2, 400), st.integers(-2, 400))
def test_nothing_longer_fits_both_channels(text: str, room: int, other: int) -> None:
    fitting = [
        text[:size]
        for size in range(len(text) + 1)
        if shown(text[:size]) <= room and json(text[:size]) <= other
    ]
    assert fit_both(text, shown=room, json=other) == max(fitting, key=len, default="")
