"""Writes that survive a power cut: whole files, and their entries in a folder."""

import os
import tempfile
from pathlib import Path


def move(draft: Path, target: Path) -> None:
    """Replaces `target` with a complete file in the same folder. Readers see one or the other."""
    sync(draft)
    os.replace(draft, target)
    sync_entry(target)


def write(path: Path, content: bytes) -> None:
    """Replaces the file with one that only its user can read; creates its folder if necessary."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(opened, "wb") as file:
        file.write(content)
    move(Path(name), path)


def sync_entry(path: Path) -> None:
    """Syncs the entry of a new, renamed or deleted file, or of a new folder, to the disk."""
    sync(path.parent)


def sync(path: Path) -> None:
    """Syncs a file, or the entries of a folder, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
