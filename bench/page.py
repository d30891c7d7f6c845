"""`docs/benchmarks.md`: the results of a run, how they were measured, and how to repeat them."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bench.findings import BUSIEST, Finding, Line, Note
from bench.goal import Goal
from bench.goals import GOALS
from tests.helpers import commits

CALM = 0.7  # load average, above which other programs are at work
BUSY_PERCENT = 50  # of the client's core, above which the generator may have been the limit
COLUMNS = ("row", "work", "goal", "median", "lowest - highest", "verdict")

TITLES = {
    "search": "Search compared with the peers",
    "million": "A million records",
    "postgres": "PostgreSQL",
    "fields": "Fields",
    "streams": "Many streams",
    "lists": "Lists and counts",
    "imports": "Imports",
    "sync": "A mailbox that is kept up to date",
    "formats": "Imports of messages, tables and streams",
    "footprint": "Memory",
    "budgets": "Sizes",
    "stages": "Where the time of a search goes",
    "pages": "Pages for people",
    "upstreams": "Other servers",
    "meaning": "Search by meaning",
    "papers": "Papers",
}

_HEAD = """\
# Benchmarks

This page shows how fast Rung is and how much memory it uses, compared with other servers on the
same machine: the official MCP SDKs, fastmcp, Datasette, and a minimal Flask endpoint (the *limit
endpoint*). Ratios compare servers in one run; absolute figures hold only for the machine named
below. `make bench` writes this page; do not edit it.
"""

_REPEAT = """\
## Repeat the benchmark

```sh
make bench         # every row, half an hour or more if nothing is built; rewrites this page
make bench-quick   # every row at small sizes, in two minutes; checks that the benchmark works
make soak          # an hour of mixed load while the store is written to; adds its figures here
```

`.venv/bin/python -m bench --only search million` measures these groups of rows again and replaces
their results in the saved run and on the page; `--without million` skips this group and writes the
page, which lists its rows as not measured; with `--gate`, the command exits with 1 if a goal is
missed. The benchmark needs Linux with two cores, 16 GB of memory and 25 GB of disk. `wrk` generates
some of the loads if it is installed; if not, a loop in Python generates all of them. npm installs
the TypeScript peers; without npm, they are left out. The group `sync` needs root and the packages
that `.ci/run sources` installs. Built files stay under `var/bench` and are built again when the
code that writes them changes; `make clean` removes them.
"""

_METHOD = """\
## How it is measured

- The corpus is generated from a seed. English function words and made-up words follow Zipf's law.
  The lengths of records follow a log-normal distribution that starts at 200 characters; some
  records have 200,000 characters. One record in ten contains accents, and one in forty contains
  Chinese or Japanese text. There are 64 connections with 4 streams each. A field of 100 MB is in a
  separate store.
- Natural questions resemble the questions of public English collections in the number and the
  frequency of their words: 3 to 13 content words, each in 0.03 to 46% of the records, and 2 to 10
  function words. Questions of rare words contain only words that are in at most 1% of the records.
  Common words are single words in 5 to 20% of the records. There are 100 natural questions, 100
  questions of rare words, and 40 common words. *Mixed* means that the first two kinds alternate.
- Each server is one process on one core (in `papers-swap`, two processes); the load is generated
  on the other core. Everything runs on one machine, over loopback, without TLS.
- Servers that are compared run at the same time. They get the load in turn, in reverse order in
  every second round. A row shows the median of the ratios of its rounds, then the lowest and the
  highest ratio. A row without these two was measured once.
- Rung runs with its defaults, except that its limits refuse no request, and that search by meaning
  (outside its own rows) and the answer cache are off. It checks the token and the grant, proves its
  windows, fills both channels of a result (text and structured content), and logs every request.
  Without the cache, Rung has to compute every answer. The cache is on only in the rows for an
  identical call, for memory after mixed load and for the start, and in the soak (`make soak`).
- Peers serve `SELECT … snippet() … ORDER BY rank LIMIT 10` over the same records in one SQLite file
  with a `porter` index. They search for any word of the question except Rung's stop words, and rank
  the matches (a *ranked OR*). They keep their connection to the file open, check no token, log
  nothing, and answer in stateless JSON. Before anything is measured, one question in five is
  checked: every peer must find the same records for it as the limit endpoint, except for ties.
- In some rows, the official SDK and fastmcp also carry Rung's own search: their servers call this
  search in their own process, with the same token, and send both channels. They must find the same
  records as Rung.
- Memory is measured as `RssAnon`, the private memory that Linux reports for a process.
- The limit endpoint is the fastest search that we can write with the same components: Flask under
  gunicorn with as many threads as Rung, bm25 in two steps, plain windows and both channels, but no
  token, no grant, no cursor and no proof.
- Goals that are missed are not lowered; the reasons for missing them are given above.
"""

_LIMITS = """\
## What is not measured

- A cold disk: files are in the page cache of the system, as on a server in use.
- TLS, proxies and the network between client and server.
- Searches by more than one worker or core, and other machines. Workers share nothing but files.
- Stores of more than a million records or more than 64 connections.
- Whether the ten hits are the ones that a reader wants, because the words are made up.
  `make quality` measures this and writes [Search quality](search-quality.md).
- Searches during a large import; the soak runs only small imports.
- Peers with engines other than SQLite, or tuned beyond what their documentation suggests. The rate
  of the official SDK when it also searches for stop words is among the other figures of search.
"""

#: (title, home page, names of its versions, how it is served, its code under bench/peers)
_PEERS = (
    (
        "official SDK for Python",
        "https://github.com/modelcontextprotocol/python-sdk",
        ("mcp",),
        "uvicorn with uvloop and httptools",
        "official.py",
    ),
    (
        "fastmcp",
        "https://gofastmcp.com",
        ("fastmcp",),
        "uvicorn with uvloop and httptools",
        "fast.py",
    ),
    (
        "Datasette",
        "https://datasette.io",
        ("datasette",),
        "uvicorn with uvloop and httptools; a canned query, as JSON",
        "canned.py",
    ),
    (
        "official SDK for TypeScript, 1.x",
        "https://github.com/modelcontextprotocol/typescript-sdk",
        ("@modelcontextprotocol/sdk", "better-sqlite3", "node"),
        "`node:http`, a server and a transport per request",
        "typescript/first.mjs",
    ),
    (
        "official SDK for TypeScript, 2.x",
        "https://github.com/modelcontextprotocol/typescript-sdk",
        ("@modelcontextprotocol/server",),
        "`node:http`, with the SDK's own handler",
        "typescript/second.mjs",
    ),
    (
        "limit endpoint",
        "https://flask.palletsprojects.com",
        ("Flask", "gunicorn"),
        "gunicorn, gthread",
        "limit.py",
    ),
)


def page(found: dict[str, Any], soak: dict[str, Any] | None) -> str:
    """The whole page. `found` is a run as `report.results` tells it, with its lines read."""
    places: list[tuple[str, list[Line]]] = found["places"]
    findings = [line for _, lines in places for line in lines if isinstance(line, Finding)]
    findings.sort(key=lambda line: GOALS.index(line.goal))
    parts = [_HEAD, _about(found)]
    parts += ["## Rows\n", _counted(findings), table(findings)]
    parts += [
        *(_missed(findings) if found["plan"] == "full" else ()),
        _REPEAT,
        _METHOD,
        _generator(found),
        *_peers(found),
        _LIMITS,
    ]
    for place, lines in places:
        parts += [f"## {TITLES[place]}\n", *_details(lines)]
    if soak is not None:
        parts += _soaked(soak)
    return "\n".join(parts).rstrip() + "\n"


def _about(found: dict[str, Any]) -> str:
    sizes = found["sizes"]
    listed = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    took = f" The run took {found['minutes']:.0f} minutes." if found.get("minutes") else ""
    if again := found.get("again"):
        took += f" Some groups were measured again later, with newer code: {', '.join(again)}."
    stamp = commits.stamp(found["when"], found.get("commit", ""))
    text = f"{stamp} {found['machine']}.{took}\n\n{_paragraph(f'Versions: {listed}.')}"
    if found["load_before"] > CALM:
        text += (
            f"\n**The machine was busy**: its load average was {found['load_before']:.1f} "
            "before the run began. Do not rely on these figures.\n"
        )
    if found["plan"] != "full":
        text += (
            f"\n**A {found['plan']} run**: {sizes['small']:,}, {sizes['middle']:,} and "
            f"{sizes['large']:,} records replace the sizes in the rows.\n"
        )
    return text


def _counted(findings: Sequence[Finding]) -> str:
    held = sum(line.verdict == "held" for line in findings)
    measured = {line.key for line in findings}
    left = [f"`{row.key}`" for row in GOALS if row.key not in measured]
    text = f"{held} of {len(findings)} goals are met."
    return _paragraph(f"{text} Not measured in this run: {', '.join(left)}." if left else text)


def _missed(findings: Iterable[Finding]) -> Iterator[str]:
    missed = [line for line in findings if line.verdict == "missed"]
    if missed:
        yield "## Missed, and why\n"
        for line in missed:
            yield f"- `{line.key}`: {line.goal.missed or 'not investigated yet.'}"
        yield ""


def _generator(found: dict[str, Any]) -> str:
    """What shows that the load generator was fast enough."""
    maker = found["versions"].get("load generator", "")
    shares = [
        int(line.measured.rstrip("%"))
        for _, lines in found["places"]
        for line in lines
        if isinstance(line, Note) and line.what == BUSIEST
    ]
    text = (
        f"The load of windows, rare words and repeated calls is generated by {maker}. Each client "
        "waits for an answer before it sends the next request. "
    )
    if shares:
        text += f"The generator's core was busy for at most {max(shares)}% of the time"
        if max(shares) < BUSY_PERCENT:
            text += ": the generator waited for the servers, and was not the limit. "
        else:
            text += ", so **the generator may have been the limit**. "
    return _paragraph(
        text + "All other loads are generated by a loop in Python. The loop's own time is part of "
        "their figures and brings ratios closer to 1. For common words in a million records, the "
        "ratios of the store alone are also given."
    )


def _paragraph(text: str) -> str:
    """Wraps a text like the rest of the page."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _peers(found: dict[str, Any]) -> Iterator[str]:
    yield "## The peers\n"
    rows = []
    for title, link, names, how, code in _PEERS:
        there = [f"{name} {found['versions'][name]}" for name in names if name in found["versions"]]
        shown = ", ".join(there) if len(there) == len(names) else "not run"
        rows.append((f"[{title}]({link})", shown, how, f"`bench/peers/{code}`"))
    yield markdown(("peer", "version", "served by", "code"), rows)


def _details(lines: Sequence[Line]) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for line in lines:
        if isinstance(line, Finding):
            alike.setdefault(line.goal.how, []).append(f"`{line.key}`")
    for how, keys in alike.items():
        yield f"- {', '.join(keys)}: {how}"
    notes = [(line.what, line.measured) for line in lines if isinstance(line, Note)]
    yield ""
    if notes:
        yield markdown(("other figures", "measured"), notes)


def _soaked(soak: dict[str, Any]) -> Iterator[str]:
    yield "## Soak\n"
    yield (
        f"From `make soak` on {soak['when']}, {soak['machine']}: calls of every tool for records "
        "over MCP, with an old and a new protocol revision, and searches and reads over REST, "
        "including calls that fail, while small imports and new grants change the store. Growth is "
        "the slope of the peaks after the first quarter of the time.\n"
    )
    yield markdown(("what", "measured", ""), soak["lines"])


def table(findings: Iterable[Finding]) -> str:
    """Each row with its goal, its figure and its verdict."""
    rows = []
    for line in findings:
        least, most = line.spread
        spread = f"{shown(least, '')} - {shown(most, '')}" if len(line.rounds) > 1 else ""
        figure = shown(line.figure, line.goal.unit)
        name = f"`{line.key}`"
        rows.append((name, line.goal.work, wanted(line.goal), figure, spread, line.verdict))
    return markdown(COLUMNS, rows)


def wanted(goal: Goal) -> str:
    """A goal as the table and the terminal show it."""
    return f"{goal.sign} {goal.goal:,g} {goal.unit}".rstrip()


def shown(value: float, unit: str) -> str:
    """A figure, rounded to a sensible number of digits."""
    digits = 0 if value >= 1_000 else 1 if value >= 100 else 2 if value >= 0.1 or value == 0 else 4
    return f"{value:,.{digits}f} {unit}".rstrip()


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"
