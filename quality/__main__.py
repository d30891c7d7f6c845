"""`python -m quality [--collections FOLDER] [--only NAME ...] [--page FILE]`: measures the search.

If a model of search by meaning is installed, collections are measured with vectors too.
Prints every measure and writes the page if a file is named. A missed gate is no error, unless
`--gate` is given.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from quality import collections, needles, page, runs
from quality.measures import MEANING
from quality.runs import Run
from service.meaning.encoder import Encoder
from service.meaning.opening import encoder_of
from service.settings import load
from tests.helpers import commits


def sources(folder: Path | None, encoder: Encoder | None) -> dict[str, Callable[[], Run]]:
    """The function that measures each collection, by name: those of a folder, then our own.

    With an encoder they are measured a second time, with vectors.
    """
    found = collections.find(folder) if folder else []
    if folder and not found:
        raise SystemExit(f"{folder} has no collection: a folder with about.json in it.")
    named = {path.name: path for path in [*found, collections.OWN]}

    def read(path: Path) -> Callable[[], Run]:
        return lambda: runs.run(collections.read(path))

    functions: dict[str, Callable[[], Run]] = {name: read(path) for name, path in named.items()}
    functions |= {
        "needles": lambda: runs.run(needles.make()),
        "papers": runs.run_papers,
        "demo": runs.run_demo,
    }
    if encoder is not None:
        for name, path in named.items():
            functions[f"{name}{MEANING}"] = partial(_by_meaning, path, encoder, others=False)
        if "xquad" in named:
            functions[f"across{MEANING}"] = partial(
                _by_meaning, named["xquad"], encoder, others=True
            )
        functions[f"demo{MEANING}"] = partial(runs.run_demo, encoder)
    return functions


def _by_meaning(path: Path, encoder: Encoder, *, others: bool) -> Run:
    """Measures a collection with vectors, in its own groups or across the `others`."""
    collection = collections.read(path)
    return runs.run(collections.across(collection) if others else collection, encoder=encoder)


def main() -> int:
    """Measures, prints, and writes the page."""
    parser = argparse.ArgumentParser(prog="python -m quality")
    parser.add_argument("--collections", type=Path, metavar="FOLDER", help="more collections")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these collections")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of figures")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a gate is missed")
    asked = parser.parse_args()
    encoder = encoder_of(load())
    known = sources(asked.collections, encoder)
    if unknown := set(asked.only or ()) - known.keys():
        parser.error(f"no collection {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    found: list[Run] = []
    for name in asked.only or known:
        start = time.perf_counter()
        found.append(known[name]())
        print(f"-- {name} ({time.perf_counter() - start:.0f} s)")
        for row in found[-1].rows:
            print("   " + " | ".join(page.cells(row)), flush=True)
    if asked.page:
        asked.page.parent.mkdir(parents=True, exist_ok=True)
        stamp = commits.stamp(commits.today(), commits.current(asked.page))
        asked.page.write_text(page.render(found, stamp), encoding="utf-8")
    verdicts = [row.verdict for run in found for row in run.rows]
    print(f"{verdicts.count('held')} gates held, {verdicts.count('missed')} missed")
    return int(asked.gate and "missed" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
