"""Runs the official MCP conformance suite, and exits with 0 only when all of it passes.

    python -m tests.conformance.run                      our fixture server, all that is required
    python -m tests.conformance.run --url URL [--token T]   a running server, what needs no fixture
    python -m tests.conformance.run --demo               the same for a demo store as it is served

The first mode serves `tests.conformance.app` and runs the frozen requirement set of each
revision against its baseline. The second asks a server as it ships only for what any server
can do. The suite cannot send a token and insists on a loopback address, so in that mode it
talks to a doorman on loopback, which hands everything on and adds the token.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.doorman import doorman
from tests.helpers.demo import serving_demo
from tests.helpers.packages import install_node_packages
from tests.helpers.server import serving

HERE = Path(__file__).resolve().parent
NODE = HERE / "node_modules" / ".bin" / "node"
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

REVISIONS = ("2025-11-25", "2026-07-28")

#: What a server without the suite's own tools and resources can be asked.
BARE = {
    "2025-11-25": (
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        "server-stateless",
        "tools-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
        "server-sse-multiple-streams",
        "input-required-result-unsupported-methods",
    ),
}


def main() -> int:
    """The exit code: 0 when every run passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="a running server, such as http://127.0.0.1:8000/mcp")
    parser.add_argument("--token", help="a client token for that server")
    parser.add_argument("--demo", action="store_true", help="serve the demo and ask it")
    options = parser.parse_args()
    install_node_packages(HERE)
    if options.demo:
        with serving_demo() as (target, token), doorman(target, token) as url:
            failed = [name for name, selection in bare_runs() if not run(url, name, selection)]
    elif options.url:
        with doorman(options.url, options.token) as url:
            failed = [name for name, selection in bare_runs() if not run(url, name, selection)]
    else:
        with serving("tests.conformance.app:create_app()") as base:
            url = f"{base}/mcp"
            failed = [name for name, selection in full_runs() if not run(url, name, selection)]
    print(f"conformance: {'failed: ' + ', '.join(failed) if failed else 'all passed'}")
    return 1 if failed else 0


def full_runs() -> Iterator[tuple[str, list[str]]]:
    """(name, arguments) of the requirement set of each revision."""
    for revision in REVISIONS:
        baseline = str(HERE / f"baseline-{revision}.yml")
        yield revision, ["--requirements", revision, "--expected-failures", baseline]


def bare_runs() -> Iterator[tuple[str, list[str]]]:
    """(name, arguments) of each scenario that needs nothing the suite names."""
    baseline = str(HERE / "baseline-bare.yml")
    for revision, scenarios in BARE.items():
        for scenario in scenarios:
            selection = ["--scenario", scenario, "--spec-version", revision]
            yield f"{revision} {scenario}", [*selection, "--expected-failures", baseline]


def run(url: str, name: str, selection: list[str]) -> bool:
    """Whether one run of the suite passed; prints its own words only where it did not."""
    command = [str(NODE), str(SUITE), "server", "--url", url, *selection]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    passed = done.returncode == 0
    print(f"{'ok    ' if passed else 'FAILED'}  {name}")
    if not passed:
        print(done.stdout + done.stderr)
    return passed


if __name__ == "__main__":
    sys.exit(main())
