"""What stands on our own lines is spelled one way, however it is found out quickly."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import SearchPage
from evidence.text import escape, mark
from renderers.rendering import Context, quoted, value_of
from renderers.search import render
from tests.helpers.monsters import ALPHABETS, Held, held, monstrous, pages

TEXT = st.text() | st.text("".join(ALPHABETS))


@given(TEXT)
def test_quoted_text_is_the_json_of_its_escaped_form(text: str) -> None:
    assert quoted(text) == orjson.dumps(escape(text)[0]).decode()
    assert "\n" not in quoted(text) and orjson.loads(quoted(text)) == escape(text)[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "true"), (False, "false"), (0, "0"), (-7, "-7"), (1.5, "1.5"), ("a b", '"a b"')],
)
def test_numbers_and_single_words_stand_plain(value: object, shown: str) -> None:
    assert value_of(value) == shown


@monstrous
@given(held(pages(most=5)), st.lists(TEXT, max_size=4))
def test_the_header_of_a_search_counts_the_escapes_of_its_windows(
    monster: Held[SearchPage], texts: list[str]
) -> None:
    page = monster.reading
    for match, text in zip((match for hit in page.hits for match in hit.matches), texts):
        match.shown = mark(text, start=0, end=len(text), marks=())[0]
    shown = [match.shown for hit in page.hits for match in hit.matches]
    (text,) = render(page, Context()).blocks
    count = sum(one.count("\\u{") for one in shown)
    assert (f" escaped={count}" in text.split("\n")[0]) == (count > 0)
