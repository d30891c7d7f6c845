"""A paper's files in the static tree of a snapshot, and their lookup on this machine.

    md/HASH.md                       the source
    md_translate/LANG/HASH.md        a translation
    summary/PAPER.json               the summary by the preferred template
    summary/PAPER/TEMPLATE.json      the summary by a template

Names come from the rows of a snapshot, which anyone may have written. A name is used only if it is
plain, and a file only if it is inside the folder and matches its row.
"""

import io
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.errors import NotFound, TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.model import known, members
from evidence.work import Deadline, parse_json
from service.papers import text_file
from service.lru import LruCache
from service.papers.snapshot_file import Mark
from service.papers.text_file import TextFile, TextIndex

MARKDOWN = "text/markdown"
JSON = "application/json"

NAME_BYTES = 255
CHECKS_CACHED = 256


# Does not wait for the writer of a FIFO, and follows no link: links are already resolved.
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW

_json: LruCache[Mark, bool] = LruCache(CHECKS_CACHED)

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of a paper: candidate relative paths, tried in order, as their parts.

    `sha256` is that of its bytes, if known.
    """

    paper_id: str
    candidates: tuple[Parts, ...]
    sha256: str | None
    media_type: str
    template: str | None = None
    lang: str | None = None

    @property
    def what(self) -> str:
        """The display name of the asset."""
        if self.media_type == JSON:
            return "summary"
        return "source" if self.lang is None else "translation"

    @property
    def most_bytes(self) -> int:
        return BUDGETS.summary_bytes if self.media_type == JSON else BUDGETS.asset_bytes

    def details(self) -> dict[str, Any]:
        """The details of an error about it."""
        return known(members(self, "paper_id", "template", "lang"))

    def places(self) -> Iterator[Parts]:
        """The candidates whose parts are all plain names."""
        return (parts for parts in self.candidates if parts and all(map(_is_plain, parts)))


def source(paper_id: str, content_hash: str) -> Asset:
    """The source of a paper, in Markdown."""
    return Asset(paper_id, (("md", f"{content_hash}.md"),), content_hash, MARKDOWN)


def translation(paper_id: str, lang: str, content_hash: str) -> Asset:
    """A translation of the source. Its folder is named as in the row, or in lower case."""
    folders = dict.fromkeys((lang, lang.lower()))
    places = tuple(("md_translate", folder, f"{content_hash}.md") for folder in folders)
    return Asset(paper_id, places, content_hash, MARKDOWN, lang=lang)


def summary(
    paper_id: str,
    template: str | None,
    *,
    preferred: str,
    resource_path: str | None,
    content_hash: str | None,
) -> Asset:
    """The summary by a template, or by the preferred one.

    `resource_path` and `content_hash` are those of the row of the template, if it has them.
    The preferred summary is a separate file, so the hash does not apply to it.
    """
    places: list[Parts] = [tuple(resource_path.split("/"))] if resource_path else []
    if template is None:
        places.insert(0, ("summary", f"{paper_id}.json"))
        content_hash = None
    places.append(("summary", paper_id, f"{template or preferred}.json"))
    return Asset(paper_id, tuple(places), content_hash or None, JSON, template=template)


class AssetStore(ABC):
    """The texts of papers, wherever their files are."""

    def open(self, asset: Asset, deadline: Deadline) -> TextFile:
        """Opens and verifies the asset: the first of its files that exists.

        Raises `Unavailable`: `asset_fetch_failed`, or `asset_parse_failed` for bytes that are not
        UTF-8 and for a summary that is not JSON.
        """
        failure: Unavailable | None = None
        for parts in asset.places():
            try:
                return self._opened(asset, parts, deadline)
            except (FileNotFoundError, NotADirectoryError, NotFound):
                continue
            except Unavailable as error:
                failure = failure or error
        raise failure or failed(
            asset, "is missing" if any(asset.places()) else "has an invalid name"
        )

    @abstractmethod
    def _opened(self, asset: Asset, parts: Parts, deadline: Deadline) -> TextFile:
        """One file; raises `OSError` or `NotFound` if it is missing."""

    @abstractmethod
    def size(self, asset: Asset) -> int | None:
        """The size of the asset in bytes, or None if it is not known without I/O. Never fails."""


class LocalAssets(AssetStore):
    """Assets in a folder on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def size(self, asset: Asset) -> int | None:
        for parts in asset.places():
            try:
                status = os.stat(self._path(asset, parts))
            except (OSError, Unavailable):
                continue
            if stat.S_ISREG(status.st_mode):
                return status.st_size
        return None

    def _opened(self, asset: Asset, parts: Parts, deadline: Deadline) -> TextFile:
        try:
            file = open_file(self._path(asset, parts))
        except (FileNotFoundError, NotADirectoryError):
            raise
        except IsADirectoryError as error:
            raise failed(asset, "is not a regular file") from error
        except OSError as error:
            raise failed(asset, "cannot be read") from error
        return verified(file, asset, deadline)

    def _path(self, asset: Asset, parts: Parts) -> str:
        """The resolved path; raises `Unavailable` if it is outside the directory."""
        root = os.path.realpath(self._folder)
        path = os.path.realpath(os.path.join(root, *parts))
        if os.path.commonpath((root, path)) != root:
            raise failed(asset, "is outside its directory")
        return path


def open_file(path: str | Path) -> io.FileIO:
    """Opens a file for reading, without following a link or waiting; raises `OSError`."""
    return io.FileIO(path, opener=lambda name, _: os.open(name, _OPEN))


def verified(file: io.FileIO, asset: Asset, deadline: Deadline) -> TextFile:
    """The asset in an open file, which is closed if verification fails.

    Each process reads the bytes of a file once. Raises `Unavailable`.
    """
    with ExitStack() as stack:
        stack.enter_context(file)
        try:
            identity = text_file.identity(file)
            index = _checked(file, asset, deadline)
        except TimedOut as error:
            raise failed(asset, "took too long to load") from error
        except OSError as error:
            raise failed(asset, "cannot be read") from error
        stack.pop_all()
        return TextFile(file, identity, index, asset.details())


def _checked(file: io.FileIO, asset: Asset, deadline: Deadline) -> TextIndex:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise failed(asset, "is not a regular file")
    if status.st_size > asset.most_bytes:
        raise failed(asset, "is too large")
    index = text_file.index(file, deadline)
    if asset.sha256 is not None and index.sha256 != asset.sha256.lower():
        raise failed(asset, "does not match its checksum")
    if not index.is_text:
        raise failed(asset, "is not UTF-8 text", code="asset_parse_failed")
    if asset.media_type == JSON and not _is_json(file):
        raise failed(asset, "is not JSON, or is too large to parse", code="asset_parse_failed")
    return index


def failed(asset: Asset, why: str, *, code: str = "asset_fetch_failed") -> Unavailable:
    """The error for an asset with the problem `why`, the end of a sentence without a path."""
    return Unavailable(
        f"The {asset.what} of this paper is unavailable: its file {why}. Read another text of "
        "the paper, or report this to the operator.",
        code=code,
        hint="get_paper_metadata lists the texts of the paper.",
        **asset.details(),
    )


def _is_plain(part: str) -> bool:
    """True if `part` names something in its folder and nothing else."""
    if part in ("", ".", "..") or any(sign in part for sign in "/\\\0"):
        return False
    try:
        return len(part.encode()) <= NAME_BYTES
    except UnicodeEncodeError:
        return False


def _is_json(file: io.FileIO) -> bool:
    def parses() -> bool:
        try:
            parse_json(os.pread(file.fileno(), BUDGETS.summary_bytes, 0))
        except ValueError:
            return False
        return True

    return _json.once(text_file.identity(file), parses)
