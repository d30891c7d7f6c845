"""Every row of the benchmark: what is promised, by how much, and how it is measured.

`place` is the module under `bench/rows` that measures it. Sizes are those of `make bench`; the
quick run has smaller ones and says so.
"""

from dataclasses import dataclass
from typing import Literal

from bench.reasons import MISSED
from evidence.limits import BUDGETS

Bound = Literal["least", "most"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One row. `missed` says what was tried and why it cannot be held, where it cannot."""

    key: str
    place: str
    work: str
    bound: Bound
    goal: float
    unit: str
    how: str
    missed: str = ""

    def holds(self, figure: float) -> bool:
        return figure >= self.goal if self.bound == "least" else figure <= self.goal

    @property
    def sign(self) -> str:
        return "≥" if self.bound == "least" else "≤"


def row(place: str, key: str, work: str, bound: Bound, limit: float, unit: str, how: str) -> Goal:
    return Goal(key, place, work, bound, limit, unit, how, MISSED.get(key, ""))


_TURNS = "the ratio of requests per second in rounds run in turns."
_SEARCH = "Questions over MCP 2026-07-28, 8 clients, each server one worker on one core: " + _TURNS
_CARRIED = (
    "The peer's server calls the search and the rendering of Rung in its own process, with the "
    "same token, and sends both channels. As above: " + _TURNS
)
_P95 = "The 95th percentile of every question asked once, one client; the ratio of each round."
_COMMON = "Words of 5-20 % of the records, one client, over MCP; "

GOALS: tuple[Goal, ...] = (
    row(
        "search",
        "natural-sdk",
        "natural questions, 100 thousand records: of the rate of the official SDK with a ranked OR",
        "least",
        4.0,
        "×",
        _SEARCH,
    ),
    row("search", "natural-fastmcp", "… of fastmcp's with it", "least", 5.0, "×", _SEARCH),
    row("search", "rare-sdk", "rare words only: of the SDK's with it", "least", 0.9, "×", _SEARCH),
    row("search", "rare-fastmcp", "… of fastmcp's with it", "least", 1.3, "×", _SEARCH),
    row("search", "carried-sdk", "… the SDK carrying our search", "least", 1.3, "×", _CARRIED),
    row("search", "carried-fastmcp", "… fastmcp with it", "least", 2.0, "×", _CARRIED),
    row(
        "search",
        "repeat",
        "an identical call repeated, nothing changed: of fastmcp's rate",
        "least",
        6.0,
        "×",
        "One question of rare words again and again, 8 clients. Never the speed of search.",
    ),
    row(
        "million",
        "natural-million",
        "natural questions, 1 million records: of the rate of the official SDK with a ranked OR",
        "least",
        4.0,
        "×",
        _SEARCH,
    ),
    row("million", "natural-p95", "… p95 of one client, of its", "most", 0.2, "×", _P95),
    row("million", "rare-million", "rare words only: of its rate", "least", 4.0, "×", _SEARCH),
    row("million", "rare-p95", "… p95 of one client, of its", "most", 0.2, "×", _P95),
    row(
        "million",
        "grant",
        "grant of 1 connection in 64, common word, 1 million records: p95, of the "
        "plain join filter's",
        "most",
        0.03,
        "×",
        _COMMON + "beside `JOIN … WHERE source IN (…)` "
        "with snippets in this process, without any server.",
    ),
    row(
        "million",
        "growth",
        "whole store, common word: p95 at 1 million, of that at 10 thousand",
        "most",
        10.0,
        "×",
        _COMMON + "recall must be told where it is not complete.",
    ),
    row(
        "million",
        "fan-in-8",
        "8 connections of one grant, common word, 1 million: p50, of one connection's",
        "most",
        4.0,
        "×",
        _COMMON + "three grants in turns.",
    ),
    row(
        "million",
        "fan-in-64",
        "64 connections of one grant: p50, of one connection's",
        "most",
        8.0,
        "×",
        _COMMON + "three grants in turns.",
    ),
    row(
        "million",
        "start",
        "start to first answer, store of a million",
        "most",
        1.0,
        "s",
        "From the start of gunicorn to the answer of a first search.",
    ),
    row(
        "fields",
        "window-0",
        "8,192-character window at 0 % of a 100 MB field: p50, of one in an " "8 KB field",
        "most",
        1.1,
        "×",
        "read_record_field over MCP, 8 clients, in turns.",
    ),
    row("fields", "window-50", "… at 50 %", "most", 1.1, "×", "As above."),
    row("fields", "window-99", "… at 99 %", "most", 1.1, "×", "As above."),
    row(
        "fields",
        "window-memory",
        "… growth of the worker's memory by all of it",
        "most",
        2.0,
        "MB",
        "RssAnon after the reads less that after as many reads of the small field.",
    ),
    row(
        "fields",
        "find-index",
        "find in field at the end of a 100 MB field, by the index",
        "most",
        5.0,
        "ms",
        "A whole word that stands there only, one client; p50 over HTTP.",
    ),
    row(
        "fields",
        "find-scan",
        "… by scan",
        "most",
        2.0,
        "s",
        "The inner part of that word, which no index knows; offsets must be true.",
    ),
    row(
        "fields",
        "find-memory",
        "… growth of the worker's memory while it scans",
        "most",
        16.0,
        "MB",
        "The largest RssAnon during the scans less that before them.",
    ),
    row(
        "lists",
        "paging",
        "query_records: page 400 by cursor, of page 1",
        "most",
        1.1,
        "×",
        "p50 of pages of 25, one stream of 1 million records, in turns.",
    ),
    row(
        "lists",
        "aggregate",
        "aggregate: count by month over 1 million records, of the bare " "GROUP BY",
        "most",
        1.2,
        "×",
        "p50 over MCP beside `GROUP BY substr(sent_at, 1, 7)` on a "
        "covering index with the same grant condition, in this process.",
    ),
    row(
        "imports",
        "import",
        "import, 100 thousand records: time, of the bare bulk insert with the " "same index",
        "most",
        2.5,
        "×",
        "`rung import` of NDJSON from start to end, beside inserting "
        "rows that are parsed, folded and sorted already into a table and the same index, and "
        "merging it.",
    ),
    row(
        "imports",
        "import-again",
        "… the same file once more: time, of the first time",
        "most",
        0.33,
        "×",
        "The same command again, as after an import that was stopped: all rows are there already.",
    ),
    row(
        "imports",
        "import-memory",
        "… its memory at a million",
        "most",
        200.0,
        "MB",
        "The largest RssAnon of `rung import`, sampled.",
    ),
    row(
        "footprint",
        "rss",
        "RssAnon of a worker after mixed load, a million records: of fastmcp's",
        "most",
        0.75,
        "×",
        "After the load of `make soak` for a while; fastmcp after as many "
        "searches of the same queries.",
    ),
    row(
        "budgets",
        "search-text",
        "largest text of ten hits",
        "most",
        BUDGETS.search_text_bytes,
        "bytes",
        "All questions, natural and of rare words.",
    ),
    row(
        "budgets",
        "text",
        "largest text of a result",
        "most",
        BUDGETS.text_bytes,
        "bytes",
        "Pages as large as they go.",
    ),
    row(
        "budgets",
        "structured",
        "largest structured result",
        "most",
        BUDGETS.structured_bytes,
        "bytes",
        "Pages as large as they go.",
    ),
    row("budgets", "tools", "tools/list", "most", BUDGETS.tools_list_bytes, "bytes", "One answer."),
    row(
        "stages",
        "rendering",
        "reading, wire and rendering, of the time of a search",
        "most",
        0.2,
        "×",
        "Each stage without the stages inside it, all in this process.",
    ),
    row(
        "pages",
        "pages",
        "page of a search in a browser, 100 thousand records: of a bare Flask page's time",
        "most",
        3.0,
        "×",
        "Both ask the same store, in this process and in turns; the bare page prints titles "
        "and passages.",
    ),
    row(
        "upstreams",
        "adapter",
        "added to a search by the adapter",
        "most",
        2.0,
        "ms",
        "p50 of the same searches at an upstream and through a Rung before it, in turns.",
    ),
    row(
        "upstreams",
        "adapter-rate",
        "adapter: searches a second of core, of the upstream's",
        "least",
        0.6,
        "×",
        "CPU of the worker for a search, 8 clients.",
    ),
    row(
        "upstreams",
        "package",
        "search of a package of 8 slow sources: p50, of one",
        "most",
        1.6,
        "×",
        "Each source takes 50 ms.",
    ),
    row(
        "upstreams",
        "package-memory",
        "RssAnon of a worker over 64 sources",
        "most",
        90.0,
        "MB",
        "After searches of a package of 64.",
    ),
    row(
        "upstreams",
        "hung-read",
        "p99 of a local read beside 50 hung calls",
        "most",
        200.0,
        "ms",
        "An upstream that says nothing, and as many callers as may wait.",
    ),
    row(
        "upstreams", "hung-health", "p99 of /healthz beside them", "most", 200.0, "ms", "As above."
    ),
    row(
        "papers",
        "papers",
        "paper searches, of the statement papers are usually searched by",
        "least",
        8.0,
        "×",
        "Searches with snippets beside `snippet()` in the ranking statement, "
        "both in this process.",
    ),
    row(
        "papers",
        "papers-page",
        "page at the end of a 50 MB source: p50, of one at its start",
        "most",
        2.0,
        "×",
        "get_paper_source over MCP.",
    ),
    row(
        "papers",
        "papers-memory",
        "RssAnon of a worker over papers",
        "most",
        90.0,
        "MB",
        "After searches and pages of the large source.",
    ),
    row(
        "papers",
        "papers-swap",
        "errors while the snapshot is replaced under load",
        "most",
        0.0,
        "",
        "Each replacement is seen served before the next.",
    ),
)


def goal(key: str) -> Goal:
    """The row of that name."""
    return next(one for one in GOALS if one.key == key)


def places() -> tuple[str, ...]:
    """The modules that measure, in the order of the rows."""
    return tuple(dict.fromkeys(one.place for one in GOALS))
