"""Pinned Node packages for tests that drive third-party programs."""

import shutil
import subprocess
import sys
from pathlib import Path


def install_node_packages(folder: Path) -> None:
    """Installs what the lock file in `folder` pins, including Node 22, unless it is installed."""
    if (folder / "node_modules" / ".package-lock.json").exists():
        return
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(f"{folder.name} drives Node programs: install npm, then run this again.")
    command = [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=folder, check=True)
