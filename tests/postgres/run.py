"""Runs the tests of the store over PostgreSQL: `python -m tests.postgres.run [--short]`.

Without `--short` it then measures the search, which must pass the gates of `make quality`.
"""

import os
import subprocess
import sys

from tests.postgres.server import VARIABLE, found

#: What is asked of a store, whatever engine keeps it.
SUITES = (
    *("tests/contract", "tests/golden", "tests/journeys", "tests/postgres"),
    *("tests/spec/sign_in", "tests/cli/test_grant_commands.py"),
    "tests/cli/test_webhook.py",
    *(
        f"tests/spec/test_{name}.py"
        for name in (
            *("access", "aggregate", "binary", "changes_walks", "common_words", "continuations"),
            *(
                "documents",
                "fan_in",
                "fan_in_order",
                "feeds_of_ranges",
                "fetch",
                "grant_isolation",
                "groups",
                "issuers",
            ),
            *(
                "large_integers",
                "matching_words",
                "meaning",
                "meaning_packages",
                "more_than_asked",
                "nearest",
                "no_oracle",
                "non_interference",
                "odd_ids",
            ),
            *("packages", "parity", "query", "reference_search", "related_hits"),
            *("repeated_calls", "rest", "schema", "search"),
            *("search_arguments", "search_calls", "search_quality", "tokens_and_cursors"),
            *("undeclared_names", "whole_values", "wider_scope"),
        )
    ),
)

#: The collections that are in a store and in the repository.
QUALITY = ("quality", "--only", "needles", "own", "--gate")

#: What takes a few minutes.
SHORT = (
    *("tests/golden", "tests/postgres", "tests/contract/test_resource_server.py"),
    "tests/contract/test_promises.py",
    *("tests/spec/test_grant_isolation.py", "tests/spec/test_non_interference.py"),
    *("tests/spec/test_search.py", "tests/spec/test_aggregate.py"),
    *("tests/spec/test_matching_words.py", "tests/spec/test_meaning.py"),
)


def main() -> None:
    words = sys.argv[1:]
    suites = SHORT if "--short" in words else SUITES
    more = [word for word in words if word != "--short"]
    with found() as url:
        environ = {**os.environ, "TEST_ENGINE": "postgres", VARIABLE: url}
        tests = ("pytest", "-m", "not slow", *suites, *more)
        for module in (tests,) if "--short" in words else (tests, QUALITY):
            done = subprocess.run([sys.executable, "-m", *module], env=environ)
            if done.returncode:
                sys.exit(done.returncode)


if __name__ == "__main__":
    main()
