"""Which commit a measurement was made at, and what of the product has changed since."""

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from tests.helpers.server import ROOT

#: What the results of a measurement depend on.
PRODUCT = ("evidence", "renderers", "service", "requirements.txt", "setup.py")
DIRTY = "-dirty"


def current(*written: Path) -> str:
    """The commit that is checked out, with `-dirty` after changes to files but those `written`.

    Changes in docs/ do not count: measurements write their pages there.
    """
    inside = (path.resolve() for path in written if path.resolve().is_relative_to(ROOT))
    others = [":!docs", *(f":!{path.relative_to(ROOT)}" for path in inside)]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *others)
    return _git("rev-parse", "--short=8", "HEAD") + (DIRTY if changed else "")


def today() -> str:
    """The date in UTC."""
    return datetime.now(UTC).date().isoformat()


def stamp(date: str, commit: str) -> str:
    """The sentence that a page of results begins with, which `read_stamp` reads."""
    return f"Measured on {date}" + (f" at commit {commit}." if commit else ".")


def read_stamp(page: str) -> tuple[str, str]:
    """The date and the commit of a page of results; empty if it names none."""
    match = re.search(r"\b(\d{4}-\d\d-\d\d)(?: at commit (\S+?))?[.,]\s", page)
    return (match[1], match[2] or "") if match else ("", "")


def state(commit: str, root: Path = ROOT) -> str:
    """Whether results of a commit are those of the product as it is checked out in `root`."""
    if not commit or _git("cat-file", "-t", commit, root=root) != "commit":
        return "**out of date**: the page names no commit of this history"
    changed = _git("diff", "--name-only", commit, "--", *PRODUCT, root=root).splitlines()
    return f"**out of date**: {len(changed)} product files have changed" if changed else "current"


def _git(*words: str, root: Path = ROOT) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout.strip()
