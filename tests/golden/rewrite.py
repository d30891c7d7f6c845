"""Writes all transcripts anew: `python -m tests.golden.rewrite`. Read the diff as copy."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.transcripts import CALLS, FOLDER, PAPER_CALLS, path_of, transcript
from tests.helpers import small
from tests.helpers.papers import in_process
from tests.helpers.stores import build, steady_client


def main() -> None:
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    with TemporaryDirectory() as folder:
        caller = steady_client(build(small.connections(), Path(folder)))
        for name in CALLS:
            path_of(name).write_text(transcript(caller, name), encoding="utf-8")
    for name in PAPER_CALLS:
        path_of(name).write_text(transcript(in_process(), name), encoding="utf-8")


if __name__ == "__main__":
    main()
