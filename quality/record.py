"""`python -m quality.record [--page-only]`: runs the evidence benchmark and writes docs/record.md.

The page gathers the results of all measurements with their dates and commits. Results are marked as
out of date if the product has changed since.
"""

import argparse
import json
import platform
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from evidence.version import VERSION
from quality.evidence.__main__ import SEED, compared
from quality.page import markdown_table
from tests.figures.__main__ import RESULTS as FAULTS
from tests.helpers import commits
from tests.helpers.server import ROOT

PAGE, EVIDENCE = ROOT / "docs/record.md", ROOT / "quality/evidence/results.json"
HEAD = """# Public record

This page lists each measurement with its result, its date, its commit and the command that repeats
it. `make record` runs the evidence benchmark and writes this page. Results are out of date if the
product's code has changed since their commit; the column *state* was correct when this page was
written.

"""
SEARCH = """## Search quality

[Search quality](search-quality.md) compares Rung's search by words with two baselines of the same
run (except on papers and the demo), and quotes published figures for LoCoMo and XQuAD. The
published figures are for whole collections. Ours are for half of each of LoCoMo, Cranfield and
XQuAD, so the two cannot be compared directly. These three collections are not in this repository.
`COLLECTIONS=FOLDER make record` measures the collections in a folder of your own; they can be whole
collections.

"""
ABOUT = """## Evidence benchmark

The benchmark consists of 120 tasks over 2,000 made-up messages and notes in three accounts. A
scripted agent searches and reads until the text that it sees proves the answer. Most answers are
codes. A code is in the only sentence that contains all words of the question (sometimes in a text
of 200,000 characters), next to the second of two words that are 40 words apart, or at the end of a
record that the task names or that contains the words of the question. The other tasks ask for the
end of a text, for a count, or for words that no record contains together. The agent remembers
nothing from earlier tasks, and reads only `content[]`.

"""
COLUMNS = """
- **text read**: the UTF-8 bytes of all answers. **largest**: the UTF-8 bytes of the largest answer.
  Some hosts write long answers to a file or truncate them ([hosts and
  models](hosts-and-models.md)).
- **proof rate**: the share of hits on first pages that show a word of the question in an excerpt.
- **at once**: of the searches for a code in a sentence or next to a word, those whose first page
  proved the answer, without another call.
- **dead handles**: the ids, cursors and calls that an answer contained and the server then refused.

The plain server consists of a few lines of code that use the official MCP SDK for Python and SQLite
FTS5. Its tools are `search`, which requires all words and shows a snippet of each hit; `fetch`,
which returns a whole record; and `count`. It serves the same records, but has no grants and no size
limits. Its code is in `quality/evidence/fts5.py`.

To run the benchmark against another server, write the records to files, import the files into that
server, and measure:

```console
$ .venv/bin/python -m quality.evidence corpus var/corpus
$ .venv/bin/python -m quality.evidence run var/corpus --url https://localhost/mcp --token-file token
```

The agent expects tools named `search` and `fetch` that return JSON, and a tool named `count`. If
the server has other tools, pass `--reader MODULE:CLASS` with a class like those in
`quality/evidence/readers.py`.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A measurement: its page, how it ended, when and at which commit, and its command."""

    title: str
    outcome: str
    dates: Sequence[str]
    commit: str
    command: str
    missed: Sequence[str]

    @property
    def cells(self) -> tuple[str, ...]:
        dates = sorted({*self.dates})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        at, state = self.commit or "none", commits.state(self.commit)
        return self.title, self.outcome, when, at, state, f"`{self.command}`"


def measured() -> dict[str, Any]:
    """Runs the evidence benchmark; returns its results with date, commit and versions."""
    rows = [result.row for result in compared()]
    return {
        "date": commits.today(),
        "commit": commits.current(EVIDENCE, PAGE),
        "versions": {
            "Rung": VERSION,
            "mcp": version("mcp"),
            "Python": platform.python_version(),
            "SQLite": sqlite3.sqlite_version,
        },
        "rows": rows,
    }


def page() -> str:
    """The page, from the saved results and the pages of other measurements."""
    evidence = json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else None
    entries = [
        _gates("Search quality", "search-quality.md", "COLLECTIONS=FOLDER make quality"),
        *([_evidence(evidence)] if evidence else ()),
        _gates("Benchmarks", "benchmarks.md", "make bench"),
        *_faults(),
    ]
    head = ("measurement", "outcome", "date", "commit", "state", "repeat with")
    parts = [HEAD, markdown_table(head, [entry.cells for entry in entries]), "\n", SEARCH, ABOUT]
    if evidence:
        columns = ("server", "solved", "calls", "text read", "largest", "proof rate")
        rows = [_server(row) for row in evidence["rows"]]
        parts += [markdown_table((*columns, "at once", "dead handles"), rows)]
        versions = ", ".join(f"{name} {number}" for name, number in evidence["versions"].items())
        parts += [f"\nVersions: {versions}. Seed {SEED}.\n"]
    else:
        parts += ["Not measured yet.\n"]
    behind = [f"- {entry.title}: {'; '.join(entry.missed)}." for entry in entries if entry.missed]
    parts += [
        COLUMNS,
        "\n## Missed goals\n\nThese goals were missed or could not be checked. ",
    ]
    parts += [
        "The linked pages give the figures; for the benchmarks, the page also gives the reasons.",
        *("\n\n", "\n".join(behind), "\n"),
    ]
    return "".join(parts)


def _evidence(evidence: dict[str, Any]) -> Entry:
    rung, plain = evidence["rows"]
    behind = [
        *rung["wrong"],
        *(f"{name} (the plain server is ahead)" for name in _ahead(rung, plain)),
    ]
    outcome = f"{rung['right']} of {rung['tasks']} tasks solved"
    title = "[Evidence benchmark](#evidence-benchmark)"
    return Entry(title, outcome, [evidence["date"]], evidence["commit"], "make record", behind)


def _ahead(rung: dict[str, Any], plain: dict[str, Any]) -> Iterator[str]:
    """The columns in which the plain server has the better figure."""
    less = (("calls", "calls"), ("text read", "bytes"), ("largest", "largest"))
    yield from (title for title, name in less if plain[name] < rung[name])
    more = (("proof rate", "shown", "hits"), ("at once", "at_once", "searched"))
    for title, part, whole in more:
        if plain[part] * rung[whole] > rung[part] * plain[whole]:
            yield title


def _gates(title: str, name: str, command: str) -> Entry:
    """A page whose rows end with a verdict."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    verdicts = re.findall(r"^\| (.+?) \|.* \| (held|missed) \|$", text, re.MULTILINE)
    missed = [cell for cell, verdict in verdicts if verdict == "missed"]
    date, commit = commits.read_stamp(text)
    outcome = f"{len(verdicts) - len(missed)} of {len(verdicts)} goals met"
    return Entry(f"[{title}]({name})", outcome, [date or "not dated"], commit, command, missed)


def _faults() -> Iterator[Entry]:
    """The rows of faults, by the commit at which they ran."""
    by_commit = defaultdict[str, dict[str, Any]](dict)
    for number, row in json.loads(FAULTS.read_text(encoding="utf-8")).items():
        by_commit[row.get("commit", "")][number] = row
    for commit, rows in by_commit.items():
        missed = [f"row {number}" for number, row in rows.items() if row["held"] is not True]
        unchecked = sum(row["held"] is None for row in rows.values())
        outcome = f"{len(rows) - len(missed)} of {len(rows) - unchecked} rows passed"
        outcome = f"{unchecked} not checked" if unchecked == len(rows) else outcome
        dates = [row["date"] for row in rows.values()]
        yield Entry("[Fault tests](figures.md)", outcome, dates, commit, "make figures", missed)


def _server(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["server"],
        f"{row['right']} of {row['tasks']}",
        f"{row['calls']:,}",
        f"{row['bytes'] / 1000:,.0f} KB",
        f"{row['largest'] / 1000:,.0f} KB",
        f"{100 * row['shown'] / row['hits']:.0f}%",
        f"{row['at_once']} of {row['searched']}",
        f"{row['dead']} of {row['handles']:,}",
    )


def main() -> int:
    """Measures, saves and writes."""
    parser = argparse.ArgumentParser(prog="python -m quality.record")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    if not parser.parse_args().page_only:
        EVIDENCE.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
