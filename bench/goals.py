"""Every row of the benchmark: what is promised, its bound, and how it is measured.

`group` is the module under `bench/rows` that measures the row. Sizes are those of `make bench`; the
quick run has smaller ones, and its page names them.
"""

from bench.goal import Goal, row
from evidence.limits import BUDGETS

_TURNS = "The figure is the ratio of requests per second, in alternating rounds."
_SEARCH = (
    "8 clients ask questions over MCP 2026-07-28; each server is one worker on one core. " + _TURNS
)
_CARRIED = (
    "The peer's server calls Rung's search and rendering in its own process, with the same token, "
    "and sends both channels. " + _TURNS
)
_P95 = (
    "One client asks every question once in each round. The figure is the ratio of the 95th "
    "percentiles of a round."
)
_ADDED = (
    "One client asks each question over MCP, first by words alone and then also by meaning. The "
    "model embeds the question; the vectors of the records are made up."
)
_LARGEST = "Pages of ten and of 100 hits, and a list of 100 records."
_COMMON = "One client searches over MCP for words in 5 to 20% of the records; "

GOALS: tuple[Goal, ...] = (
    row(
        *("search", "natural-sdk"),
        "natural questions, 100,000 records: rate, relative to the official SDK with a ranked OR",
        *("least", 4.5, "×", _SEARCH),
    ),
    row(
        *("search", "natural-fastmcp"),
        "natural questions, 100,000 records: rate, relative to fastmcp with a ranked OR",
        *("least", 4.5, "×", _SEARCH),
    ),
    row(
        *("search", "rare-sdk"),
        "rare words only: rate, relative to the official SDK with a ranked OR",
        *("least", 0.85, "×", _SEARCH),
    ),
    row(
        *("search", "rare-fastmcp"),
        "rare words only: rate, relative to fastmcp with a ranked OR",
        *("least", 1.0, "×", _SEARCH),
    ),
    row(
        *("search", "carried-sdk"),
        "rare words only: rate, relative to the official SDK carrying Rung's search",
        *("least", 1.15, "×", _CARRIED),
    ),
    row(
        *("search", "carried-fastmcp"),
        "rare words only: rate, relative to fastmcp carrying Rung's search",
        *("least", 1.4, "×", _CARRIED),
    ),
    row(
        *("search", "natural-plain"),
        "natural questions without the compiled scorer: rate, relative to the official SDK",
        *("least", 2.8, "×", _SEARCH),
    ),
    row(
        *("search", "rare-plain"),
        "rare words only, without the compiled scorer: rate, relative to the official SDK",
        *("least", 0.4, "×", _SEARCH),
    ),
    row(
        *("search", "repeat"),
        "an identical call, repeated while the store does not change: rate, relative to fastmcp",
        *("least", 6.0, "×"),
        "8 clients repeat one question of rare words. Never quote the figure as the speed of "
        "search.",
    ),
    row(
        *("million", "natural-million"),
        "natural questions, 1 million records: rate, relative to the official SDK with a ranked OR",
        *("least", 10.0, "×", _SEARCH),
    ),
    row(
        *("million", "natural-p95"),
        "natural questions, 1 million records: p95 of one client, relative to the official SDK",
        *("most", 0.1, "×", _P95),
    ),
    row(
        *("million", "rare-million"),
        "rare words only, 1 million records: rate, relative to the official SDK",
        *("least", 4.0, "×", _SEARCH),
    ),
    row(
        *("million", "rare-p95"),
        "rare words only, 1 million records: p95 of one client, relative to the official SDK",
        *("most", 0.2, "×", _P95),
    ),
    row(
        *("million", "grant"),
        "grant of 1 of 64 connections, common word, 1 million records: p95, relative to a "
        "plain join filter",
        *("most", 0.05, "×"),
        _COMMON
        + "the plain filter is `JOIN … WHERE source IN (…)` with snippets, in the benchmark's "
        "process and without a server.",
    ),
    row(
        *("million", "growth"),
        "whole store, common word: p95 at 1 million records, relative to 10,000",
        *("most", 10.0, "×"),
        _COMMON + "each size has its own store.",
    ),
    row(
        *("million", "fan-in-8"),
        "8 connections of one grant, common word, 1 million records: p50, relative to one "
        "connection",
        *("most", 4.0, "×"),
        _COMMON + "three grants are used in turn.",
    ),
    row(
        *("million", "fan-in-64"),
        "64 connections of one grant, common word, 1 million records: p50, relative to one "
        "connection",
        *("most", 8.0, "×"),
        _COMMON + "three grants are used in turn.",
    ),
    row(
        *("million", "scorer-memory"),
        "private memory that the scorer adds to a worker, 1 million records",
        *("most", 4.0, "MB"),
        "RssAnon after all questions, minus that of a worker without the scorer.",
    ),
    row(
        *("million", "start"),
        "start to first answer, store of 1 million records",
        *("most", 1.0, "s"),
        "From the start of gunicorn to the answer to the first search.",
    ),
    row(
        *("postgres", "postgres-first"),
        "over PostgreSQL, 64 connections, 100,000 records: a natural question after a commit",
        *("most", 60.0, "ms"),
        "The p50 of one client; a record is added before each question.",
    ),
    row(
        *("postgres", "postgres-later", "the same questions over PostgreSQL, asked again", "most"),
        *(25.0, "ms", "The same questions again, without a commit in between."),
    ),
    row(
        *("fields", "window-0"),
        "8,192-character window at 0% of a 100 MB field: p50, relative to one in an 8 KB field",
        *("most", 1.1, "×"),
        "8 clients call read_record_field over MCP; the windows are read in turn.",
    ),
    row(
        *("fields", "window-50", "the same window at 50% of the field", "most", 1.1, "×"),
        "Measured like `window-0`.",
    ),
    row(
        *("fields", "window-99", "the same window at 99% of the field", "most", 1.1, "×"),
        "Measured like `window-0`.",
    ),
    row(
        *("fields", "window-memory"),
        "growth of the worker's memory over all three windows",
        *("most", 2.0, "MB"),
        "RssAnon after these reads, minus RssAnon after the first 200 reads of the small field.",
    ),
    row(
        *("fields", "find-index"),
        "finding a word at the end of a 100 MB field, by the index",
        *("most", 5.0, "ms"),
        "One client looks for a whole word that occurs only at the end; p50 over HTTP.",
    ),
    row(
        *("fields", "find-scan", "finding letters at the end of this field, by a scan", "most"),
        *(2.0, "s"),
        "The client looks for letters inside the same word, which no index contains. The offsets "
        "must be correct.",
    ),
    row(
        *("fields", "find-memory", "growth of the worker's memory during these scans", "most"),
        *(16.0, "MB", "The largest RssAnon during the scans, minus RssAnon before them."),
    ),
    row(
        *("streams", "streams-cpu"),
        "search of a grant of 500 streams, 20 records each: CPU time, relative to 25 such streams",
        *("most", 20.0, "×"),
        "A phrase, a prefix, `title:` and plain words, each with and without `since`, with a grant "
        "of whole streams and a time-limited grant, in one process. The worst of these 16 searches "
        "counts.",
    ),
    row(
        *("lists", "paging"),
        "query_records: p50 of page 400 by cursor, relative to page 1",
        *("most", 1.1, "×"),
        "Pages of 25 records of a stream of 1 million; the two pages are requested in turn.",
    ),
    row(
        *("lists", "aggregate"),
        "aggregate: count by month over 1 million records, relative to the bare GROUP BY",
        *("most", 1.2, "×"),
        "The p50 over MCP, compared with `GROUP BY substr(sent_at, 1, 7)` on a covering index "
        "with the same grant condition, in the benchmark's process.",
    ),
    row(
        *("imports", "import"),
        "import of 100,000 records: time, relative to a bare bulk insert into the same index",
        *("most", 2.5, "×"),
        "`rung import` of NDJSON from start to end, compared with inserting rows that are "
        "already parsed, folded and sorted into a table and the same index, and merging the "
        "index.",
    ),
    row(
        *("imports", "import-again"),
        "import of the same file again: time, relative to the first import",
        *("most", 0.33, "×"),
        "The same command runs again, as after an interrupted import: all rows are already there.",
    ),
    row(
        *("imports", "import-memory"),
        "memory of an import of 1 million records",
        *("most", 200.0, "MB"),
        "The largest RssAnon of the main process, sampled; the parsing process is not included.",
    ),
    row(
        *("sync", "sync-idle"),
        "`rung sync` with nothing to do, mailbox of 100,000 messages: CPU time",
        *("most", 1.0, "s"),
        "The time of the whole process and its children, without that of the Dovecot server.",
    ),
    row(
        *("sync", "sync-bytes", "files of the store that this command changes", "most"),
        *(0.0, "", "Hashes of the store and its log are compared before and after the command."),
    ),
    row(
        *("sync", "sync-arrival"),
        "new message in that mailbox: time until a search finds the message",
        *("most", 5.0, "s"),
        "The time includes the benchmark's sign-in for APPEND; `rung sync --every` uses IDLE.",
    ),
    row(
        *("formats", "import-mails"),
        "import of 20,000 messages: messages a second",
        *("least", 600.0, "/s"),
        "`rung import` of a mailbox, from start to end, on all cores.",
    ),
    row(
        *("formats", "import-grown"),
        "the same import after one message was added: time, relative to the first import",
        *("most", 0.25, "×"),
        "The same command runs again.",
    ),
    row(
        *("formats", "import-rows"),
        "import of 30,000 rows of CSV: rows a second",
        *("least", 4_000.0, "/s"),
        "Measured like `import-mails`; the rows contain numbers, dates, amounts and texts.",
    ),
    row(
        *("formats", "import-streams"),
        "import of 2,000 small tables, one stream each: time, relative to 200 tables",
        *("most", 12.0, "×"),
        "A folder of CSV files with one row each.",
    ),
    row(
        *("footprint", "rss"),
        "RssAnon of a worker after mixed load, 1 million records: relative to fastmcp",
        *("most", 0.75, "×"),
        "Rung is measured after a short run of the load of `make soak`, and fastmcp after as many "
        "searches for rare and common words, 2,000 at most.",
    ),
    row(
        *("budgets", "search-text"),
        "largest text of a page of ten hits",
        "most",
        BUDGETS.search_text_bytes,
        "bytes",
        "The largest answer to any of the questions, both natural ones and those of rare words.",
    ),
    row(
        *("budgets", "text", "largest text of a page", "most"),
        *(BUDGETS.text_bytes, "bytes", _LARGEST),
    ),
    row(
        *("budgets", "structured", "largest structured result", "most"),
        *(BUDGETS.structured_bytes, "bytes", _LARGEST),
    ),
    row(
        *("budgets", "tools", "size of the answer to tools/list", "most"),
        *(BUDGETS.tools_list_bytes, "bytes", "The size of one answer."),
    ),
    row(
        *("stages", "rendering"),
        "conversion to JSON (wire), fitting to limits and rendering: share of the time of a search",
        *("most", 0.2, "×"),
        "Stages run in the benchmark's process. A stage's time excludes the stages inside it.",
    ),
    row(
        *("stages", "answering"),
        "conversion to JSON (wire), fitting to limits and rendering: CPU time in a search",
        *("most", 1.8, "ms"),
        "Measured like `rendering`.",
    ),
    row(
        *("pages", "pages"),
        "page of a search in a browser, 100,000 records: time, relative to a bare Flask page",
        *("most", 3.0, "×"),
        "Rung's page and the bare Flask page query the same store in turn, in the benchmark's own "
        "process; the bare page prints titles and passages.",
    ),
    row(
        *("upstreams", "adapter"),
        "time that Rung, as an adapter in front of an upstream, adds to a search",
        *("most", 2.0, "ms"),
        "The p50 of the same searches, sent in turn to an upstream and to Rung in front of it.",
    ),
    row(
        *("upstreams", "adapter-rate"),
        "adapter: searches per second of CPU, relative to the upstream",
        *("least", 0.6, "×"),
        "The CPU time of the worker for each search, with 8 clients.",
    ),
    row(
        *("upstreams", "package"),
        "search of a package of 8 slow sources: p50, relative to one source",
        *("most", 1.6, "×"),
        "Each source takes 50 ms to answer.",
    ),
    row(
        *("upstreams", "package-memory"),
        "RssAnon of a worker that serves a package of 64 sources",
        *("most", 90.0, "MB"),
        "Measured after searches of a package of 64 sources.",
    ),
    row(
        *("upstreams", "hung-read"),
        "p99 of a local read during 50 calls to a hung upstream",
        *("most", 200.0, "ms"),
        "An upstream never answers while as many callers as allowed wait for it.",
    ),
    row(
        *("upstreams", "hung-health", "p99 of /healthz during 50 calls to a hung upstream", "most"),
        *(200.0, "ms", "Measured like `hung-read`."),
    ),
    *(
        row(
            "meaning",
            f"meaning{size}{kind}-p{part}",
            f"{records}{what}, p{part}",
            "most",
            limit,
            "ms",
            _ADDED,
        )
        for size, records, limits in (
            ("", "time that meaning adds to a question, 100,000 records", (25.0, 45.0)),
            ("-million", "time that meaning adds to a question, 1 million records", (90.0, 150.0)),
        )
        for kind, what in (("", ""), ("-long", " (500 characters)"))
        for part, limit in zip((50, 95), limits)
    ),
    row(
        *("meaning", "meaning-memory"),
        "private memory that the model adds to a worker",
        *("most", 100.0, "MB"),
        "RssAnon after all questions, minus that of a worker that searches by words.",
    ),
    row(
        *("papers", "papers"),
        "searches of papers: rate, relative to the SQL statement usually used for such searches",
        *("least", 8.0, "×"),
        "Rung's searches with snippets, compared with an SQL statement that ranks the papers and "
        "calls `snippet()`; both run in the benchmark's process.",
    ),
    row(
        *("papers", "papers-page"),
        "page at the end of a 50 MB source: p50, relative to one at its start",
        *("most", 2.0, "×"),
        "The pages are read with get_paper_source over MCP.",
    ),
    row(
        *("papers", "papers-memory", "RssAnon of a worker that serves papers", "most"),
        *(90.0, "MB", "Measured after searches, and after reads of the large source."),
    ),
    row(
        *("papers", "papers-swap", "errors while the snapshot is replaced under load", "most"),
        *(0.0, "", "Each replacement must be served before the next one."),
    ),
)


def goal(key: str) -> Goal:
    """The row with this key."""
    return next(one for one in GOALS if one.key == key)


def groups() -> tuple[str, ...]:
    """The modules that measure, in the order of the rows."""
    return tuple(dict.fromkeys(one.group for one in GOALS))
