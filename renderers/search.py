"""A search page as text: handles first, one line per hit at least, evidence with its call."""

from collections import Counter

from evidence import wire
from evidence.limits import BUDGETS
from evidence.model import Hit, Match, SearchPage
from renderers.lines import fenced, header, joined, name_source, quoted, step, value_of, warning
from renderers.rendering import Context, Rendering
from renderers.search_size import fits

__all__ = ["fits", "render"]

FENCE_SLOT = "\x00fence\x00"
ESCAPE = "\\u{"


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    lines: list[str] = []
    escapes = 0
    for number, hit in enumerate(page.hits, start=1):
        lines.append(_line(number, hit))
        for match in hit.matches:
            lines.append(_evidence_line(hit, match))
            lines.append(fenced(FENCE_SLOT, match.shown))
            escapes += match.shown.count(ESCAPE)
        if not hit.matches:
            lines.append(f"  no proven window; {step(hit.fetch)}")
    text = joined([_header(page, escapes), *lines, *_footer(page)])
    structured = wire.search(page, base_url=context.base_url)
    return Rendering((text.replace(FENCE_SLOT, context.fence(text)),), structured)


def _header(page: SearchPage, escapes: int) -> str:
    return header(
        "search",
        query=str(page.args.get("query", "")),
        hits=len(page.hits),
        of=_count(page),
        complete=page.recall.get("complete", True) is not False,
        has_more=page.has_more,
        first_id=page.hits[0].id if page.hits else None,
        escaped=escapes or None,
    )


def _count(page: SearchPage) -> str | None:
    """The number of hits on all pages, where the upstream counted them."""
    return str(page.count) if page.count is not None and page.count_accuracy == "exact" else None


def _line(number: int, hit: Hit) -> str:
    at = f" {value_of(hit.at)}" if hit.at else ""
    title = quoted(wire.title(hit), BUDGETS.title_chars)
    return f"{number} {hit.id} {title}{at} source={name_source(hit.source)}"


def _evidence_line(hit: Hit, match: Match) -> str:
    if match.start is None:
        where = f" complete={value_of(match.complete)}"
    else:
        where = f" {match.start}..{match.end} of {match.total}"
    if match.match_start is not None:
        where += f" match={match.match_start}..{match.match_end}"
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
    if not page.hits:
        lines.append("Nothing matched. Try fewer or other words, prefix* or a wider scope.")
    return lines + [step(continuation) for continuation in page.continuations()]


def _recall(page: SearchPage) -> str:
    limit = page.recall.get("candidate_window_limit")
    window = f"the newest {limit}" if limit else "a bounded window of"
    return (
        f"recall: {window} matches were ranked, others were not; "
        "narrow with streams, connection_id or filter to reach them."
    )
