"""What fits a search page: a new page, and what each rank keeps of its evidence."""

from copy import deepcopy
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.text import split, unmark
from renderers import search
from renderers.rendering import Context
from tests.helpers.monsters import Held, held, monstrous, ordinary_page, ordinary_pages, pages

PAGES = held(st.one_of(ordinary_pages(), *(pages(most=most) for most in (1, 3, 6, 12, 100))))


@monstrous
@given(PAGES)
def test_fitting_and_rendering_change_nothing(monster: Held[SearchPage]) -> None:
    page = monster.reading
    before = deepcopy(page)
    fitted = search.fit(page, BUDGETS)
    assert page == before
    again = deepcopy(fitted)
    first = search.render(fitted, Context())
    orjson.dumps(first.structured)
    assert fitted == again and page == before
    assert search.render(fitted, Context()) == first


@monstrous
@given(PAGES)
def test_later_hits_keep_one_short_window_of_the_same_text(monster: Held[SearchPage]) -> None:
    page = monster.reading
    for (number, hit), shown in zip(page.numbered(), search.fit(page, BUDGETS).hits):
        assert replace(shown, matches=hit.matches) == hit, "nothing but windows is cut"
        if number > CONTRACT.full_hits:
            assert len(shown.matches) == min(1, len(hit.matches))
            assert all(len(split(one.shown)[0]) <= CONTRACT.quote_chars for one in shown.matches)
        for match, one in zip(hit.matches, shown.matches):
            assert unmark(one.shown) in unmark(match.shown)
            assert one.complete == (match.complete and one.shown == match.shown)
            if match.start is not None and one.start is not None:
                offset = one.start - match.start
                assert unmark(match.shown)[offset:].startswith(unmark(one.shown))


@pytest.mark.parametrize(
    "letters, windows", [("lorem ipsum ", [3, 3, 3]), ("明日の会議は", [1, 1, 1])]
)
def test_further_windows_give_way_before_hits_do(letters: str, windows: list[int]) -> None:
    fitted = search.fit(ordinary_page(letters), BUDGETS)
    assert [len(hit.matches) for hit in fitted.hits] == windows + [1] * 7
