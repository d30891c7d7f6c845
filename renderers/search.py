"""A search page as text: handles first, one line per hit at least, evidence with its call.

Every line is ours alone; record text is in fences between them.
"""

import re
from collections import Counter
from collections.abc import Sequence

import orjson

from evidence.hits import READ_ANY_FIELD, FanIn, Hit, Match, SearchPage, SourceReport, structured
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Source, label_of
from evidence.text import clip
from renderers.rendering import (
    FENCE_SLOT,
    Context,
    Rendering,
    fenced,
    header as head,
    joined,
    name_source,
    quoted,
    value_of,
    warning,
)

#: Words that a line lists; structured content has all.
WORDS_LISTED = 8
#: A time without a time of day: a bare date is midnight UTC.
MIDNIGHT = re.compile(r"T00:00(:00(\.0+)?)?(Z|\+00:00)$")
ESCAPE = "\\u{"  # every escape begins so


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that went through `search_size.fit`."""
    alike, first = has_one_source(page), dict[Source, Hit]()
    for hit in page.hits:
        first.setdefault(hit.source, hit)
    cards = [
        card(number, hit, context, one_source=alike, keyed=hit is first[hit.source])
        for number, hit in page.numbered()
    ]
    body = joined([*cards, *footer(page, context)])
    text = joined([header(page, _escapes(page, body)), body])
    data = structured(page, base_url=context.base_url)
    return Rendering((context.close(text),), data)


def _escapes(page: SearchPage, body: str) -> int:
    """The number of escapes in the windows of a page; `body` holds all their shown text."""
    if ESCAPE[0] not in body:  # looking for one character is cheap
        return 0
    return sum(match.shown.count(ESCAPE) for hit in page.hits for match in hit.matches)


def header(page: SearchPage, escapes: int) -> str:
    """The counts, and the first handle."""
    return head(
        "search",
        query=clip(str(page.args.get("query", "")), BUDGETS.query_echo_chars),
        hits=len(page.hits),
        **_counts(page),
        complete=page.recall.get("complete", True) is not False,
        has_more=page.has_more,
        first_id=page.hits[0].id if page.hits else None,
        escaped=escapes or None,
    )


def _counts(page: SearchPage) -> dict[str, int | None]:
    """`all` and `some`, with `>` after names of lower bounds."""
    if page.counts is None:
        return {}
    bound = "" if page.counts.exact else ">"
    return {f"all{bound}": page.counts.all, f"some{bound}": page.counts.some}


def is_full(number: int) -> bool:
    """True if a hit shows its windows in full; later ones show a line of quoted text."""
    return number <= CONTRACT.full_hits


def has_one_source(page: SearchPage) -> bool:
    """True if all hits of a page are from one source, so that later ones need not name it."""
    return len({hit.source for hit in page.hits}) < 2


def card(
    number: int,
    hit: Hit,
    context: Context = Context(),
    *,
    one_source: bool = False,
    keyed: bool = True,
) -> str:
    """The lines of a hit: its line, then its evidence with the calls that open it."""
    lines = [line(number, hit, one_source=one_source, keyed=keyed)]
    for match in hit.matches:
        if is_full(number):
            lines.append(evidence_line(match, context))
            lines.append(fenced(FENCE_SLOT, match.shown))
        else:
            lines.append(evidence_line(match, context, quoting=True))
    if not hit.matches:
        lines.append(f"  no proven window; {context.step(hit.fetch)}")
    return joined(lines)


def line(number: int, hit: Hit, *, one_source: bool = False, keyed: bool = True) -> str:
    """A hit: number, id, title, time, source, and the query words it does not hold as typed.

    After the third hit the title is shorter. On a page of `one_source` only the first three name
    it. With `keyed` the source has its connector key.
    """
    full = is_full(number)
    most = BUDGETS.title_chars if full else BUDGETS.later_title_chars
    at = f" {value_of(MIDNIGHT.sub('', time))}" if hit.title and (time := hit.at) else ""
    named = ""
    if full or not one_source:
        named = f" source={value_of(label_of(hit.source) or 'unknown')}"
        key = clip(hit.source.connector_key or "", BUDGETS.label_chars)
        if key and keyed:
            named += f" connector_key={value_of(key)}"
    title = quoted(clip(hit.heading, most))
    return f"{number} {hit.id} {title}{at}{named}{_words(hit, full=full)}"


def _words(hit: Hit, *, full: bool) -> str:
    """How the words of the query match, unless each occurs as typed.

    `full` adds the coverage, which for first hits shows how likely they are evidence.
    """
    if not hit.missing_words and not hit.forms:
        return ""
    count = len(hit.matched_words)
    text = f" matched {count} of {count + len(hit.missing_words)}"
    if full and hit.coverage is not None:
        text += f" coverage={hit.coverage:.2f}"
    if hit.forms:
        text += f" ({listed([f'{quoted(form)} for {quoted(w)}' for w, form in hit.forms.items()])})"
    if hit.missing_words:
        text += f", missing: {listed(list(map(value_of, hit.missing_words)))}"
    return text


def listed(words: Sequence[str]) -> str:
    """Words with commas; of many, the first ones and the number of the others."""
    more = len(words) - WORDS_LISTED
    return ", ".join([*words[:WORDS_LISTED], *([f"{more} more"] if more > 0 else [])])


def evidence_line(match: Match, context: Context, *, quoting: bool = False) -> str:
    """The position of a window, its text if quoted, and the call that reads on."""
    if match.start is None:
        where = f"complete={value_of(match.complete)}"
    else:
        where = f"{match.start}..{match.end} of {match.total}"
    if quoting:
        where = f"{where} {orjson.dumps(match.shown).decode()}"
    elif match.match_start is not None:
        where = f"{where} match={match.match_start}..{match.match_end}"
    call = "" if match.complete else f" {context.spell(match.read)}"
    return f"  {value_of(match.field_path)} {where}{call}"


def footer(page: SearchPage, context: Context = Context()) -> list[str]:
    """Sources, warnings, the next page, or what to do if nothing was found."""
    lines = []
    if page.shows_whole_fields:
        lines.append(f"to read any field: {context.spell(READ_ANY_FIELD)}")
    lines += _sources(page.fan_in) if page.fan_in else _mix(page)
    if page.recall.get("complete") is False and not _only_sources_miss(page):
        lines += _recall(page)
    lines += [warning(notice) for notice in page.warnings]
    if page.tail_cut:
        lines.append("Later hits score far lower; next_page shows them.")
    if page.left_out:
        lines.append(
            f"sort=newest shows one page: {page.left_out} more matching records are left out. "
            "Narrow with since, until or filter to reach them."
        )
    if page.ended_early:
        lines.append("The page ended early to stay within its size; next_page goes on.")
    if not page.hits and not page.next_cursor and not _only_sources_miss(page):
        lines.append("Nothing matched. Try other words, prefix*, or a wider scope.")
    lines += _spellings(page)
    return lines + [context.step(continuation) for continuation in page.continuations()]


def _spellings(page: SearchPage) -> list[str]:
    """The words that no record has, and the closest spellings."""
    lines = []
    if page.absent_words:
        lines.append(f"No record has: {listed(list(map(value_of, page.absent_words)))}.")
    if page.nearest_words:
        near = [
            f"{value_of(word)}: {listed(list(map(value_of, words)))}"
            for word, words in page.nearest_words.items()
        ]
        lines.append(f"Nearest words: {'; '.join(near[:WORDS_LISTED])}.")
    return lines


def _mix(page: SearchPage) -> list[str]:
    """The connections of a grant and their hits, if there are several."""
    mix = Counter([hit.source for hit in page.hits])
    if len(mix) < 2:
        return []
    return ["sources: " + ", ".join(f"{name_source(one)} {count}" for one, count in mix.items())]


def _only_sources_miss(page: SearchPage) -> bool:
    """True if only sources that failed or were not asked yet may have missing hits."""
    fan_in = page.fan_in
    return fan_in is not None and fan_in.incomplete and not page.recall.get("truncated")


def _sources(found: FanIn) -> list[str]:
    """The sources of a package that answered; a line for each that did not, twelve at most."""
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
    message = f" {quoted(source.message)}" if source.message else ""
    state = source.state.replace("_", " ")
    code = f" {value_of(source.code)}" if source.code else ""
    return f"  {value_of(source.name)} {state}{code}:{message} {source.next_step or ''}".rstrip()


def _recall(page: SearchPage) -> list[str]:
    """The matches that were ranked, unless all were; warnings name the rest."""
    if page.recall.get("ranking_scope") == "all_matches":
        return []
    limit = page.recall.get("candidate_window_limit")
    ranked = f"the best {limit} candidates" if limit else "the best candidates"
    return [
        f"recall: {ranked} were ranked, other matches were not; narrow with words=all, since, "
        "until, streams, connection_id or filter to reach them."
    ]
