"""A hit with other windows says what it would say if it were made with them."""

from dataclasses import replace

from hypothesis import given

from evidence.cached import cached_property
from evidence.hits import Hit, SearchPage
from tests.helpers.monsters import Held, held, monstrous, pages

COMPUTED = [name for name, value in vars(Hit).items() if isinstance(value, cached_property)]


def said(hit: Hit) -> dict[str, object]:
    return {name: getattr(hit, name) for name in COMPUTED}


@monstrous
@given(held(pages(most=3)))
def test_a_hit_that_shows_other_windows_is_one_made_with_them(drawn: Held[SearchPage]) -> None:
    for hit in drawn.reading.hits:
        said(hit)
        for count in range(len(hit.matches) + 1):
            shown = hit.showing(hit.matches[:count], uncut=hit.matches)
            made = replace(hit, matches=hit.matches[:count], uncut=hit.matches)
            assert said(shown) == said(made)
            fewer = shown.showing(hit.matches[: count - 1])
            assert said(fewer) == said(replace(made, matches=hit.matches[: count - 1]))
