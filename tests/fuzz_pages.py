"""Damaged pages of FTS5, read by the scorer with sanitizers: `python -m tests.fuzz_pages`.

Compiles scorer.c with the address and undefined behaviour sanitizers and reads pages that were
changed at random. The process ends with another status than 0 at the first read outside a page.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from sqlite3 import connect
from tempfile import TemporaryDirectory

NAME = "service.records.sqlite.scorer"
SOURCE = Path(__file__).parents[1] / "service/records/sqlite/scorer.c"
SANITIZERS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)


def main() -> int:
    """0 if every page was refused, or read as another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--module", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.module:
        _read_pages(asked.module, Random(asked.seed), asked.pages)
        return 0
    with TemporaryDirectory() as folder:
        module = Path(folder) / "scorer.so"
        include = f"-I{sysconfig.get_path('include')}"
        command = ["cc", "-O1", "-g", "-fPIC", "-shared", include, *SANITIZERS]
        subprocess.run([*command, str(SOURCE), "-o", str(module)], check=True)
        runtime = subprocess.check_output(["cc", "-print-file-name=libasan.so"], text=True)
        # Each page is an allocation of its own, so that a read past its end is seen. Python itself
        # is not sanitized, and keeps what it allocates until it ends.
        environment = os.environ | {
            "LD_PRELOAD": runtime.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONMALLOC": "malloc",
        }
        arguments = [*sys.argv[1:], "--module", str(module)]
        return subprocess.call(
            [sys.executable, "-m", "tests.fuzz_pages", *arguments], env=environment
        )


def _read_pages(module: Path, random: Random, wanted: int) -> None:
    spec = spec_from_file_location(NAME, module)
    assert spec and spec.loader
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    from tests.unit.service.records.test_doclists import history, read_damaged

    pages = refused = 0
    while pages < wanted:
        with closing(connect(":memory:", isolation_level=None)) as db:
            for _ in history(random, db):
                some, refused_now = read_damaged(random, db)
                pages, refused = pages + some, refused + refused_now
    print(f"{pages:,} damaged pages were read; {refused:,} of them were refused.")


if __name__ == "__main__":
    sys.exit(main())
