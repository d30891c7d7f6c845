"""What fits a search page, by a definition that measures every text by itself."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from evidence import wire
from evidence.limits import BUDGETS
from evidence.model import Hit, SearchPage
from renderers import search_lines as lines
from renderers import search_size as sizes
from tests.helpers.monsters import Held, held, monstrous, ordinary_pages, pages


def size(text: str) -> int:
    return len(orjson.dumps(text)) - 2


class Measured:
    """One hit: its line, a window around its text, its first text whole and least, its JSON."""

    def __init__(self, hit: Hit, asked: str) -> None:
        title = wire.title(hit)
        named = size(title) if title.isprintable() else 8 * len(title)
        handle, label = size(hit.id), size(hit.source.label)
        source = label + size(hit.source.connection_id or "")
        self.line = sizes.HIT_BYTES + handle + named + source + size(hit.at or "")
        self.json = sizes.STRUCTURED_HIT_BYTES + 5 * handle + named + 2 * size(hit.url) + 2 * label
        self.json += sum(size(name) + 3 for name in hit.matched_fields)
        self.window = self.first = self.least = 0
        if not hit.matches:
            self.line += handle
            return
        queries = [asked, *(str(one.read.args.get("query", "")) for one in hit.matches)]
        longest = max(map(size, queries))
        shown = hit.matches[0].shown
        self.window = sizes.WINDOW_BYTES + handle + longest + 2 * size(hit.matches[0].field_path)
        self.first = self.least = size(shown)
        if len(shown) > BUDGETS.excerpt_chars_min:
            self.least = self.first * BUDGETS.excerpt_chars_min // len(shown) + sizes.MARKS_BYTES
        self.json += sizes.STRUCTURED_WINDOW_BYTES + longest + 3 * self.least


def by_definition(page: SearchPage) -> tuple[int, list[int] | None]:
    """(hits that fit, windows of each): None where windows shrink or not all hits fit."""
    asked = str(page.args.get("query", ""))
    around = size("\n".join([lines.header(page, 0), *lines.footer(page)]))
    most = max(BUDGETS.search_text_bytes, sizes.TEXT_BYTES_PER_HIT * len(page.hits))
    text = min(BUDGETS.text_bytes, most) - around
    data = BUDGETS.structured_bytes - sizes.STRUCTURED_PAGE_BYTES - 3 * around
    found = [Measured(hit, asked) for hit in page.hits]
    used = [one.line + one.window + one.least for one in found]
    for number in range(1, len(found) + 1):
        left = data - sum(one.json for one in found[:number])
        if sum(used[:number]) > text or left < 0:
            return max(1, number - 1), None
    room = min(text, sum(used) + left // 3)
    room -= sum(one.line + one.window + one.first for one in found)
    if room < 0:
        return len(found), None
    windows = []
    for hit, one in zip(page.hits, found):
        kept = min(1, len(hit.matches))
        for match in hit.matches[1:]:
            room -= one.window + size(match.shown)
            if room < 0:
                break
            kept += 1
        windows.append(kept)
    return len(found), windows


@monstrous
@given(held(st.one_of(ordinary_pages(), *(pages(most=most) for most in (1, 3, 6, 12, 100)))))
def test_as_many_hits_and_windows_are_kept_as_the_sizes_of_their_texts_say(
    monster: Held[SearchPage],
) -> None:
    page = monster.reading
    before = [list(hit.matches) for hit in page.hits]
    kept, windows = by_definition(page)
    assert sizes.fits(page, BUDGETS) == kept
    if windows is not None:
        assert [hit.matches for hit in page.hits] == [
            matches[:count] for matches, count in zip(before, windows)
        ]
