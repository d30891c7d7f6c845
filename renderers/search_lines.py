"""The lines of a search page, each ours alone; record text stands in fences between them."""

from collections import Counter

from evidence import wire
from evidence.limits import CONTRACT
from evidence.model import FanIn, Hit, Match, SearchPage, SourceReport
from renderers.lines import header as head
from renderers.lines import name_source, quoted, value_of, warning
from renderers.rendering import Context


def header(page: SearchPage, escapes: int) -> str:
    """What was found, and the first handle."""
    return head(
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
    """The number of hits on all pages, with a plus where it is a lower bound."""
    if page.count is None:
        return None
    return f"{page.count}{'' if page.count_accuracy == 'exact' else '+'}"


def line(number: int, hit: Hit) -> str:
    """A hit: number, id, title, time, source."""
    at = f" {value_of(hit.at)}" if hit.at else ""
    title = quoted(wire.title(hit))
    return f"{number} {hit.id} {title}{at} source={name_source(hit.source)}"


def evidence_line(match: Match, context: Context) -> str:
    """Where a window lies, and the call that opens it."""
    if match.start is None:
        where = f"complete={value_of(match.complete)}"
    else:
        where = f"{match.start}..{match.end} of {match.total}"
    if match.match_start is not None:
        where = f"{where} match={match.match_start}..{match.match_end}"
    return f"  {value_of(match.field_path)} {where} {context.spell(match.read)}"


def footer(page: SearchPage, context: Context = Context()) -> list[str]:
    """Sources, warnings, the next page, or what to do where nothing was found."""
    lines = _sources(page.fan_in) if page.fan_in else _mix(page)
    if page.recall.get("complete") is False and not _only_sources_miss(page):
        lines += _recall(page)
    lines += [warning(found) for found in page.warnings]
    if page.ended_early:
        lines.append("The page ended early to stay within its size; next_page goes on.")
    if not page.hits and not _only_sources_miss(page):
        lines += _nothing(page)
    return lines + [context.step(continuation) for continuation in page.continuations()]


def _nothing(page: SearchPage) -> list[str]:
    """How words are looked for, and which of these occur alone where the upstream looked."""
    lines = [
        "Nothing matched. All words must occur in one field; OR and AND are words like any other. "
        "Try fewer or other words, prefix* or a wider scope."
    ]
    if page.words:
        told = {"occur alone": page.words.found, "occur nowhere": page.words.missing}
        parts = [
            f"{says}: {', '.join(map(value_of, words))}" for says, words in told.items() if words
        ]
        lines += [f"words that {'; '.join(parts)}"] if parts else []
    return lines


def _mix(page: SearchPage) -> list[str]:
    """The connections of a grant and their hits, where there are several."""
    mix = Counter([hit.source for hit in page.hits])
    if len(mix) < 2:
        return []
    return ["sources: " + ", ".join(f"{name_source(one)} {count}" for one, count in mix.items())]


def _only_sources_miss(page: SearchPage) -> bool:
    """Whether what may be missing is in sources that did not answer or were not asked yet."""
    found = page.fan_in
    return found is not None and found.incomplete and not page.recall.get("truncated")


def _sources(found: FanIn) -> list[str]:
    """Who of a package answered; a line for each source that did not, twelve at most."""
    answered, silent = found.of("answered"), found.silent
    named = [f"{value_of(one.name)} {one.hits}" for one in answered if one.hits]
    if len(named) > CONTRACT.candidates:
        named[CONTRACT.candidates :] = [f"and {len(named) - CONTRACT.candidates} more"]
    others = {
        "failed": len(found.of("failed")),
        "timed out": len(found.of("timed_out")),
        "not asked yet": found.waiting,
    }
    line = f"sources: {len(answered)} answered" + (f" ({', '.join(named)})" if named else "")
    line += "".join(f", {count} {state}" for state, count in others.items() if count)
    lines = [line, *map(_silence, silent[: CONTRACT.candidates])]
    if len(silent) > CONTRACT.candidates:
        lines.append(f"  and {len(silent) - CONTRACT.candidates} more did not answer.")
    return lines


def _silence(source: SourceReport) -> str:
    """Why a source did not answer, and what to do."""
    said = f" {quoted(source.message)}" if source.message else ""
    state = source.state.replace("_", " ")
    code = f" {value_of(source.code)}" if source.code else ""
    return f"  {value_of(source.name)} {state}{code}:{said} {source.next_step or ''}".rstrip()


def _recall(page: SearchPage) -> list[str]:
    """Which matches were ranked, unless all that were found; warnings name the rest."""
    if page.recall.get("ranking_scope") == "all_matches":
        return []
    limit = page.recall.get("candidate_window_limit")
    window = f"the newest {limit}" if limit else "a bounded window of"
    return [
        f"recall: {window} matches were ranked, others were not; "
        "narrow with streams, connection_id or filter to reach them."
    ]
