"""A search page as text: handles first, one line per hit at least, evidence with its call."""

from collections import Counter
from dataclasses import replace

from evidence import wire
from evidence.find import Span
from evidence.limits import Budgets
from evidence.model import Hit, Match, SearchPage
from evidence.text import escape, excerpt
from renderers.lines import fenced, header, joined, name_source, quoted, step, value_of, warning
from renderers.rendering import Context, Rendering

FENCE_SLOT = "\x00fence\x00"
# Names and punctuation of one hit in structuredContent, its ids and windows aside.
STRUCTURED_HIT_BYTES = 420
STRUCTURED_WINDOW_BYTES = 230
PAGE_BYTES = 1_500
FENCE_LINES_BYTES = 60


def fits(page: SearchPage, budgets: Budgets) -> int:
    """How many of the page's hits can be shown, each with its first window; also shrinks the page.

    Second and third windows give way first, then windows shrink; each hit's line, first window
    and call never do.
    """
    lines = [len(_line(1, hit).encode()) for hit in page.hits]
    calls = [[len(_evidence_line(hit, m).encode()) for m in hit.matches] for hit in page.hits]
    room = text_budget(page, budgets) - PAGE_BYTES
    smallest = budgets.excerpt_chars_min
    least = [
        line + (found[0] + FENCE_LINES_BYTES + _cost(hit.matches[0], smallest) if found else 60)
        for line, found, hit in zip(lines, calls, page.hits)
    ]
    structured = [_structured_cost(hit, smallest) for hit in page.hits]
    kept = _how_many(least, room, structured, budgets.structured_bytes - PAGE_BYTES)
    if kept < len(page.hits):
        return max(1, kept)
    _shrink(page, budgets, room, lines, calls)
    return kept


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    structured = wire.search(page, base_url=context.base_url)
    body: list[str] = []
    escapes = 0
    for number, (hit, rung) in enumerate(
        zip(page.hits, structured["content_ladder"]["records"]), start=1
    ):
        body.append(_line(number, hit))
        for match, evidence in zip(hit.matches, rung.get("evidence", ())):
            body.append(_evidence_line(hit, match))
            body.append(fenced(FENCE_SLOT, evidence["preview_text"]))
            escapes += wire.preview_escapes(match)
        if not hit.matches:
            body.append(f"  no proven window; {step(hit.fetch)}")
    first = page.hits[0].id if page.hits else None
    head = [_header(page, first, escapes)]
    text = joined([*head, *body, *_footer(page)])
    return Rendering((text.replace(FENCE_SLOT, context.fence(text)),), structured)


def text_budget(page: SearchPage, budgets: Budgets) -> int:
    """8 KB for a page of ten hits, in proportion beyond, up to what a tool result may hold."""
    return min(budgets.text_bytes, max(budgets.search_text_bytes, 820 * len(page.hits)))


def _header(page: SearchPage, first: str | None, escapes: int) -> str:
    return header(
        "search",
        query=str(page.args.get("query", "")),
        hits=len(page.hits),
        of=_count(page),
        complete=page.recall.get("complete", True) is not False,
        has_more=page.has_more,
        first_id=first,
        escaped=escapes or None,
    )


def _count(page: SearchPage) -> str | None:
    """The number of hits on all pages, where the upstream counted them."""
    return str(page.count) if page.count is not None and page.count_accuracy == "exact" else None


def _line(number: int, hit: Hit) -> str:
    at = f" {value_of(hit.at)}" if hit.at else ""
    title = quoted(wire.title(hit), 80)
    return f"{number} {hit.id} {title}{at} source={name_source(hit.source)}"


def _evidence_line(hit: Hit, match: Match) -> str:
    where = ""
    if match.start is not None:
        where = f" {match.start}..{match.end} of {match.total}"
    if match.match_start is not None:
        where += f" match={match.match_start}..{match.match_end}"
    if match.start is None:
        where += f" complete={value_of(match.complete)}"
    return f"  {value_of(match.field_path)}{where} {wire.spelled(hit.read(match))}"


def _footer(page: SearchPage) -> list[str]:
    mix = Counter(hit.source for hit in page.hits)
    lines = []
    if len(mix) > 1:
        shown = ", ".join(f"{name_source(source)} {count}" for source, count in mix.items())
        lines.append(f"sources: {shown}")
    if page.recall.get("complete") is False:
        lines.append(_recall(page))
    lines += [warning(found) for found in page.warnings]
    if page.ended_early:
        lines.append("The page ended early to stay within its size; next_page goes on.")
    lines += [step(continuation) for continuation in page.continuations()]
    if not page.hits:
        lines.append("Nothing matched. Try fewer or other words, prefix* or a wider scope; ")
        lines[-1] += "schema {} lists the streams that can be searched."
    return lines


def _recall(page: SearchPage) -> str:
    limit = page.recall.get("candidate_window_limit")
    window = f"the newest {limit}" if limit else "a bounded window of"
    return (
        f"recall: {window} matches were ranked, older ones were not; "
        "narrow with streams, connection_id or filter to reach them."
    )


def _cost(match: Match, size: int) -> int:
    """Bytes of a window of about `size` code points as text; marks and escapes included."""
    length = len(match.text)
    shown = len(escape(match.text)[0].encode()) + 13 * len(match.marks)
    return shown if length <= size else shown * size // length + 1


def _structured_cost(hit: Hit, size: int) -> int:
    named = 4 * len(hit.id.encode()) + 2 * len((hit.title or "").encode())
    windows = [3 * _cost(match, size) + STRUCTURED_WINDOW_BYTES for match in hit.matches[:1]]
    return STRUCTURED_HIT_BYTES + named + sum(windows)


def _how_many(least: list[int], room: int, structured: list[int], other: int) -> int:
    for number, (text, data) in enumerate(zip(least, structured)):
        room, other = room - text, other - data
        if room < 0 or other < 0:
            return number
    return len(least)


def _shrink(
    page: SearchPage, budgets: Budgets, room: int, lines: list[int], calls: list[list[int]]
) -> None:
    """Gives every hit its first window, as large as there is room for, then further ones."""
    shown = [(hit, found) for hit, found in zip(page.hits, calls) if found]
    room -= sum(lines) + sum(found[0] + FENCE_LINES_BYTES for _, found in shown)
    full = [_cost(hit.matches[0], budgets.excerpt_chars) for hit, _ in shown]
    if sum(full) > room and shown:
        share = max(0.0, room / sum(full))
        for hit, _ in shown:
            hit.matches = [_cut(hit.matches[0], share, budgets.excerpt_chars_min)]
        return
    room -= sum(full)
    for hit, found in shown:
        kept = [hit.matches[0]]
        for match, cost in zip(hit.matches[1:], found[1:]):
            price = cost + FENCE_LINES_BYTES + _cost(match, budgets.excerpt_chars)
            if price > room:
                break
            room -= price
            kept.append(match)
        hit.matches = kept


def _cut(match: Match, share: float, smallest: int) -> Match:
    """The same window around the same match, smaller."""
    size = max(smallest, int(len(match.text) * share))
    if len(match.text) <= size or not match.marks:
        return match
    span = Span(match.marks[0][0], match.marks[-1][1], match.marks)
    start, end = excerpt(match.text, span, size=size)
    inside = [(max(a, start) - start, min(b, end) - start) for a, b in match.marks]
    base = match.start
    return replace(
        match,
        text=match.text[start:end],
        marks=tuple((a, b) for a, b in inside if a < b),
        start=None if base is None else base + start,
        end=None if base is None else base + end,
        complete=False,
    )
