"""Renders a search page as text: each hit's id, then its evidence and the call that opens the hit.

Every line is our own text; record text is in fences between them. `fit` returns a new page, cut to
the limits of both channels.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import orjson

from evidence.find import Span
from evidence.hits import Hit, Match, SearchPage
from evidence.hits_wire import READ_ANY_FIELD, structured
from evidence.limits import BUDGETS, CONTRACT, Budgets
from evidence.model import DELETED_AT, Continuation, Source, label_of
from evidence.text import clip, excerpt, mark
from evidence.work import Each, serial
from renderers import rendering
from renderers.search_notes import meaning, spellings
from renderers.search_sources import mix, only_sources_miss, recall, sources
from renderers.rendering import Context, Rendering, fenced, quoted, value_of, warnings, word_of
from renderers.rendering import header as head, listed, words_matched

#: A time without a time of day: a bare date is midnight UTC.
MIDNIGHT = re.compile(r"T00:00(:00(\.0+)?)?(Z|\+00:00)$")
ESCAPE = "\\u{"  # every escape begins with this
TEXT_BYTES_PER_HIT = 820
#: Reserve for text added later: the address before each path, and the note that a page ended early.
ADDRESS = "https://" + 56 * "x"
LATER_BYTES = 200
#: Cuts are made between words, and marks stay whole, so a share is an estimate.
ROUNDING = 0.95
#: Characters of a quote that stay free around its marks, so that it begins and ends at words.
EDGES = 16


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a fitted page."""
    first = dict[Source, Hit]()
    for hit in page.hits:
        first.setdefault(hit.source, hit)
    # The line of sources says which connection is which, but for those of a package.
    alike = len(first) < 2 or page.fan_in is None
    cards = [
        card(number, hit, context, single_source=alike, keyed=hit is first[hit.source])
        for number, hit in page.numbered()
    ]
    calls = page.continuations()
    body = "\n".join([*cards, *footer(page, calls, context)])
    lines = [header(page, _escapes(page, body)), body]
    return context.rendering(lines, structured(page, calls, base_url=context.base_url))


def _escapes(page: SearchPage, body: str) -> int:
    """The number of escapes in the windows of a page; `body` holds all their shown text."""
    if ESCAPE[0] not in body:  # searching for one character is cheap
        return 0
    return sum(match.shown.count(ESCAPE) for hit in page.hits for match in hit.matches)


def header(page: SearchPage, escapes: int) -> str:
    """The counts, and the first handle."""
    return head(
        "search",
        query=clip(str(page.args.get("query", "")), BUDGETS.query_echo_chars),
        hits=len(page.proven),
        related=len(page.hits) - len(page.proven) or None,
        **_counts(page),
        complete=page.recall.get("complete", True) is not False,
        has_more=page.has_more,
        first_id=page.hits[0].id if page.hits else None,
        escaped=escapes or None,
        ranking=page.ranking,
        model=page.model,
        vectors=page.recall.get("vectors"),
    )


def _counts(page: SearchPage) -> dict[str, int | None]:
    """`all` and `some`, with `>` after names of lower bounds."""
    if page.counts is None:
        return {}
    bound = "" if page.counts.exact else ">"
    return {f"all{bound}": page.counts.all, f"some{bound}": page.counts.some}


def is_full(number: int) -> bool:
    """True if a hit shows its windows in full; later hits show a line of quoted text."""
    return number <= CONTRACT.full_hits


def card(
    number: int,
    hit: Hit,
    context: Context = Context(),
    *,
    single_source: bool = False,
    keyed: bool = True,
) -> str:
    """The lines of a hit: its line, then its evidence with the calls that open it."""
    first = line(number, hit, single_source=single_source, keyed=keyed)
    return "\n".join([first, *windows(number, hit, context)])


def windows(number: int, hit: Hit, context: Context = Context()) -> list[str]:
    """The lines below that of a hit: its evidence with the calls that open it."""
    if hit.related is not None:
        return [f"  begins {quoted(hit.related.begins)} {context.spell(hit.related.read)}"]
    lines = list[str]()
    hidden = {read.key: (words, read) for words, read in hit.hidden}
    calls = set[str]()
    for match in hit.matches:
        key = match.read.key
        words, _ = hidden.pop(key, ([], None))
        quoting, calling = not is_full(number), bool(words) or key not in calls
        lines.append(evidence_line(match, context, quoting=quoting, calling=calling, hidden=words))
        calls.add(key)
        if is_full(number):
            lines.append(fenced(match.shown))
    lines += [f"  {_hidden_words(words)}{context.spell(read)}" for words, read in hidden.values()]
    if not hit.matches:
        lines.append(f"  no proven excerpt; {context.step(hit.fetch)}")
    return lines


def line(number: int, hit: Hit, *, single_source: bool = False, keyed: bool = True) -> str:
    """A hit: number, id, title, time, source, and the query words it does not contain as typed.

    A record that its source has deleted has the time of that.

    After the third hit it has a short title if that holds a word of the query, or if there is no
    time or no quote, and no source: the line of sources says which connection is which. On a page
    of `single_source` only the first three name it. With `keyed` the source has its connector key.
    """
    full, heading = is_full(number), hit.heading
    at = (
        f" {value_of(MIDNIGHT.sub('', time))}"
        if (hit.title or not full) and (time := hit.at)
        else ""
    )
    source = _source_text(hit.source, keyed) if full or not single_source else ""
    title = ""
    if full:
        title = f" {quoted(heading)}"
    elif not (hit.matches and at) or hit.names_words:
        title = f" {quoted(clip(heading, BUDGETS.later_title_chars))}"
    deleted = f" {DELETED_AT}={value_of(hit.deleted_at_source)}" if hit.deleted_at_source else ""
    words = _words(hit, full=full) if hit.related is None else " related"
    return f"{number} {hit.id}{title}{at}{source}{deleted}{words}"


@lru_cache(maxsize=512)
def _source_text(source: Source, keyed: bool) -> str:
    """The source of a hit, with its connector key if `keyed`."""
    text = f" source={value_of(label_of(source) or 'unknown')}"
    key = clip(source.connector_key or "", BUDGETS.label_chars)
    return f"{text} connector_key={value_of(key)}" if key and keyed else text


def _words(hit: Hit, *, full: bool) -> str:
    """How the words of the query match, unless each occurs as typed.

    `full` adds the coverage, which for first hits shows how likely they are evidence.
    """
    if not full and not hit.forms:
        missing = listed(list(map(word_of, hit.missing_words)))
        return f" missing: {missing}" if missing else ""
    has_coverage = full and hit.coverage is not None
    return words_matched(hit, f" coverage={hit.coverage:.2f}" if has_coverage else "", listed)


def _hidden_words(words: Sequence[str]) -> str:
    return f"not shown: {listed(list(map(word_of, words)))} " if words else ""


def evidence_line(
    match: Match,
    context: Context,
    *,
    quoting: bool = False,
    calling: bool = True,
    hidden: Sequence[str] = (),
) -> str:
    """The position of a window, its text if quoted, the call that continues and shows `hidden`.

    Without `calling` the window before has the same call.
    """
    if match.start is None:
        where = f"complete={value_of(match.complete)}"
    else:
        where = f"{match.start}..{match.end} of {match.total}"
    if quoting:
        where = f"{where} {orjson.dumps(match.shown).decode()}"
    elif match.match_start is not None:
        where = f"{where} match={match.match_start}..{match.match_end}"
    call = (
        ""
        if match.complete or not calling
        else f" {_hidden_words(hidden)}{context.spell(match.read)}"
    )
    return f"  {value_of(match.field_path)} {where}{call}"


def footer(
    page: SearchPage, calls: Sequence[Continuation], context: Context = Context()
) -> list[str]:
    """Sources, warnings, the next page, or what to do if nothing was found."""
    lines = []
    if page.shows_whole_fields:
        lines.append(f"to read any field: {context.spell(READ_ANY_FIELD)}")
    lines += sources(page.fan_in) if page.fan_in else mix(page)
    if page.recall.get("complete") is False and not only_sources_miss(page):
        lines += recall(page)
    lines += warnings(page)
    if page.tail_cut:
        lines.append("Later hits score far lower; next_page shows them.")
    if page.left_out:
        lines.append(
            f"sort=newest returns only one page. Matching records left out: {page.left_out:,}. "
            "To reach them, narrow the search with since, until or filter."
        )
    if page.ended_early:
        rest = "; use next_page for the rest" if page.next_cursor else ""
        lines.append(f"The page ended early to stay within its size limit{rest}.")
    lines += meaning(page)
    if not page.hits and not page.next_cursor and not only_sources_miss(page):
        lines.append(
            "No results. Try synonyms, words in the records' language or a prefix "
            "(invoi*), or remove a filter."
        )
    lines += spellings(page)
    return lines + [context.step(call) for call in calls]


class Room:
    """The bytes available for the hits of a page in both channels."""

    def __init__(self, page: SearchPage, budgets: Budgets) -> None:
        most = max(budgets.search_text_bytes, TEXT_BYTES_PER_HIT * len(page.hits))
        calls = page.continuations()
        around = "\n".join([header(page, 99), *footer(page, calls)])
        self.text = min(budgets.text_bytes, most) - len(around.encode()) - LATER_BYTES
        empty = orjson.dumps(structured(replace(page, hits=page.hits[:1]), calls))
        self.data = budgets.structured_bytes - len(empty) - LATER_BYTES

    def holds(self, costs: Sequence[tuple[int, int]]) -> bool:
        """True if hits of these bytes fit."""
        return (
            sum([text for text, _ in costs]) <= self.text
            and sum([data for _, data in costs]) <= self.data
        )

    def share(self, costs: Sequence[tuple[int, int]], least: Sequence[tuple[int, int]]) -> float:
        """The share of their text that windows can keep, between all and the minimum."""
        share = 1.0
        for channel, most in enumerate((self.text, self.data)):
            smallest = sum([cost[channel] for cost in least])
            whole = sum([cost[channel] for cost in costs])
            if whole > most:
                share = min(share, (most - smallest) / (whole - smallest))
        return share * ROUNDING


def fit(page: SearchPage, budgets: Budgets, apply: Each = serial) -> SearchPage:
    """The page cut to fit, with fewer hits if not all fit.

    `apply` cuts the windows of a heavy page, such as the whole fields that other servers may send.

    The first three hits keep up to three windows, later ones a quoted excerpt. Second and third
    windows are dropped first, then windows shrink; each hit keeps its line, first window and call.
    """
    numbered = page.numbered()
    numbers = [number for number, _ in numbered]
    page, hits = _with_cut_windows(page, numbered, budgets, apply)
    lines = [len(line(number, hit).encode()) for number, hit in zip(numbers, hits)]
    room, costs = Room(replace(page, hits=hits), budgets), list(map(_cost, numbers, hits, lines))
    while not room.holds(costs) and (index := _most_windows(hits)) is not None:
        hits[index] = hits[index].showing(hits[index].matches[:-1])
        costs[index] = _cost(numbers[index], hits[index], lines[index])
    if room.holds(costs):
        return replace(page, hits=hits)
    least = [_shrunk(hit, 0.0, budgets) for hit in hits]
    smallest = [
        cost if small is hit else _cost(number, small, line_bytes)
        for number, hit, small, cost, line_bytes in zip(numbers, hits, least, costs, lines)
    ]
    if not room.holds(smallest):
        room = Room(replace(page, hits=hits, ended_early=True), budgets)
        count = next(n for n in range(len(hits), -1, -1) if room.holds(smallest[:n]))
        return replace(page, hits=least[: max(1, count)])
    share = room.share(costs, smallest)
    shrunk = [_shrunk(hit, share, budgets) for hit in hits]
    fits = room.holds(list(map(_cost, numbers, shrunk, lines)))
    return replace(page, hits=shrunk if fits else least)


def _with_cut_windows(
    page: SearchPage, numbered: Sequence[tuple[int, Hit]], budgets: Budgets, apply: Each
) -> tuple[SearchPage, list[Hit]]:
    """(the page, its hits with the detail for their ranks); a late hit loses its windows."""

    first = [hit for number, hit in numbered if is_full(number)]
    proven = len(first) == CONTRACT.full_hits and all(hit.has_every_word for hit in first)
    quote_chars = budgets.proven_quote_chars if proven else budgets.cut_quote_chars

    def reduced(entry: tuple[int, Hit]) -> Hit:
        return _reduced(entry[1], entry[0], budgets, quote_chars)

    chars = sum([len(match.shown) for hit in page.hits for match in hit.matches])
    if chars <= rendering.HEAVY_PAGE_CHARS:
        return page, list(map(reduced, numbered))
    hits, missed = rendering.rendered_each(
        reduced, numbered, apply, late=lambda entry: entry[1].showing([])
    )
    if missed:
        page = replace(page, warnings=[*page.warnings, rendering.late_warning(len(missed))])
    return page, hits


def _most_windows(hits: Sequence[Hit]) -> int | None:
    """The last of the hits with the most windows; None if no hit has several."""
    most = max(len(hit.matches) for hit in hits)
    if most < 2:
        return None
    return max(index for index, hit in enumerate(hits) if len(hit.matches) == most)


def _reduced(hit: Hit, number: int, budgets: Budgets, quote_chars: int) -> Hit:
    """The hit with the detail for its rank; other servers may send longer windows than ours."""
    if is_full(number):
        matches = hit.matches[: CONTRACT.windows_per_hit]
        matches = [_cut(match, budgets.excerpt_chars) for match in matches]
        return hit.showing(matches, uncut=hit.matches)
    first = hit.matches[:1]
    # A short field is quoted whole.
    if not all(match.complete and len(match.plain[0]) <= CONTRACT.quote_chars for match in first):
        first = [_cut(match, quote_chars) for match in first]
    return hit.showing(first, uncut=hit.matches)


def _shrunk(hit: Hit, share: float, budgets: Budgets) -> Hit:
    """The hit with only a share of its first window; itself if it has no more than that."""
    matches = [
        _cut(match, max(budgets.excerpt_chars_min, int(len(match.shown) * share)))
        for match in hit.matches[:1]
    ]
    return hit if matches == hit.matches else hit.showing(matches)


def _cut(match: Match, size: int) -> Match:
    """The same window around the same match, of at most `size` code points."""
    if len(match.shown) <= size:  # tags and escapes can only make it longer
        return match
    text, marks = match.plain
    if len(text) <= size:
        return match
    start, end = excerpt(text, _densest(text, marks, size), size=size)
    base = match.start
    return replace(
        match,
        shown=mark(text, start=start, end=end, marks=marks)[0],
        start=None if base is None else base + start,
        end=None if base is None else base + end,
        complete=False,
    )


def _densest(text: str, marks: Sequence[tuple[int, int]], size: int) -> Span:
    """The marks with the most different words within `size` code points of each other."""
    best = Span(0, 0, ((0, 0),))
    most = 0
    for first, (start, _) in enumerate(marks):
        near = [span for span in marks[first:] if span[1] - start <= size - EDGES] or [marks[first]]
        words = {word for span in near for word in text[span[0] : span[1]].lower().split()}
        if len(words) > most:
            most, best = len(words), Span(start, near[-1][1], tuple(near))
    return best


def _cost(number: int, hit: Hit, line_bytes: int) -> tuple[int, int]:
    """Bytes of a hit in the text and in structured content, separators included."""
    lines = "\n".join(windows(number, hit))
    data = orjson.dumps([hit.addressed(ADDRESS), hit.rung])
    return line_bytes + len(lines.encode()) + 2, len(data)
