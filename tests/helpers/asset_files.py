"""Texts as files in a static tree."""

import hashlib
from pathlib import Path

from evidence.work import Deadline
from service.papers import assets
from service.papers.assets import Asset, LocalAssets
from service.papers.text_file import TextFile

PAPER = "8c12da2f15028ee9cd1444e4cebc2432"


def soon() -> Deadline:
    """A deadline later than the end of any test."""
    return Deadline.after(60.0)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(root: Path, path: str, content: bytes) -> Path:
    """Writes a file at a relative path of the tree."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def put_source(root: Path, content: bytes) -> Asset:
    """The source of `PAPER`, written where its asset looks for it."""
    put(root, f"md/{digest(content)}.md", content)
    return assets.source(PAPER, digest(content))


def text_file(root: Path, text: str) -> TextFile:
    """The text, open as the source of a paper."""
    return LocalAssets(root).open(put_source(root, text.encode()), soon())
