"""The static tree of a snapshot on another server, with a cache of limited size on disk.

Processes may share a cache folder. A file in it is complete, because it is renamed into place;
every process verifies it once; the least recently used one is removed first.
"""

import hashlib
import io
import os
import stat
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from evidence.errors import TimedOut, TooLarge, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote import outbound
from service.papers import assets
from service.papers.assets import Asset, AssetStore, Parts, failed
from service.papers.text_file import TextFile

DISK_FULL = "does not fit on the disk of this server"


class RemoteAssets(AssetStore):
    """Assets below an HTTP(S) address.

    `generation` identifies the snapshot of the rows; assets without a hash are cached only for it.
    The cache is a separate folder under the temporary folder unless one is given. Raises
    `ValueError` for an address to which nothing can be appended.
    """

    def __init__(
        self,
        base_url: str,
        *,
        generation: str,
        cache: Path | None = None,
        cache_bytes: int = BUDGETS.asset_cache_bytes,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("The asset URL must begin with http:// or https://.")
        if parts.query or parts.fragment:
            raise ValueError("The asset URL must not contain ? or #.")
        self._base = base_url.rstrip("/")
        self._generation = generation
        if cache is None:
            digest = hashlib.sha256(self._base.encode()).hexdigest()[:16]
            cache = Path(tempfile.gettempdir()) / f"rung-assets-{os.geteuid()}-{digest}"
        self._cache = cache
        self._cache_bytes = cache_bytes

    def open(self, asset: Asset, deadline: Deadline) -> TextFile:
        """See `AssetStore.open`. Fetched within `BUDGETS.asset_seconds` and the deadline."""
        if (cached := self._cached(asset, deadline)) is not None:
            return cached
        return super().open(asset, deadline.share(1, most=BUDGETS.asset_seconds))

    def size(self, asset: Asset) -> int | None:
        """The size of the cached file in bytes, without a network request."""
        try:
            return self._path(asset).stat().st_size
        except OSError:
            return None

    def _path(self, asset: Asset) -> Path:
        """The cache path of the asset. The name is a digest, so rows cannot choose it."""
        key = asset.sha256 or repr((self._generation, asset.candidates))
        return self._cache / hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

    def _cached(self, asset: Asset, deadline: Deadline) -> TextFile | None:
        """The cached asset, or None. Deletes an altered one."""
        path = self._path(asset)
        try:
            _check_private(self._cache)
            file = assets.open_file(path)
            with suppress(OSError):
                # The change time records the last use; its other times are part of its identity.
                status = os.fstat(file.fileno())
                os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        except OSError:
            return None
        try:
            return assets.verified(file, asset, deadline)
        except Unavailable as error:
            if isinstance(error.__cause__, TimedOut):
                raise
            _remove(path)
            return None

    def _opened(self, asset: Asset, parts: Parts, deadline: Deadline) -> TextFile:
        """The asset from its server, verified and cached."""
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_private(self._cache)
            number, name = tempfile.mkstemp(prefix="part-", dir=self._cache)
        except OSError as error:
            raise failed(asset, DISK_FULL) from error
        with ExitStack() as stack:
            stack.callback(_remove, name)
            with ExitStack() as opened:
                part = opened.enter_context(io.FileIO(number, "r+"))
                self._fill(part, parts, asset, deadline)
                text = assets.verified(part, asset, deadline)
                opened.pop_all()
            with suppress(OSError):  # the text stays open, even if its name is lost
                self._make_room()
                os.replace(name, self._path(asset))
            return text

    def _fill(self, part: io.FileIO, parts: Parts, asset: Asset, deadline: Deadline) -> None:
        url = "/".join((self._base, *(quote(name, safe="") for name in parts)))
        body = outbound.download(url, seconds=deadline.left(), most_bytes=asset.most_bytes)
        try:
            for chunk in body:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[part.write(rest) :]
        except TimedOut as error:
            raise failed(asset, "took too long to load") from error
        except TooLarge as error:
            raise failed(asset, "is too large") from error
        except Unavailable as error:
            raise failed(asset, "cannot be downloaded") from error
        except OSError as error:
            raise failed(asset, DISK_FULL) from error

    def _make_room(self) -> None:
        """Removes the least recently used files until the cache is within its limit."""
        files = []
        with os.scandir(self._cache) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process made room
                    about = entry.stat(follow_symlinks=False)
                    files.append((about.st_ctime_ns, about.st_size, entry.path))
        surplus = sum(size for _, size, _ in files) - self._cache_bytes
        for _, size, path in sorted(files):
            if surplus <= 0:
                break
            _remove(path)
            surplus -= size


def _check_private(cache: Path) -> None:
    """Raises `OSError` unless the folder is private, because others could place links in it."""
    status = cache.lstat()
    ours = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    if not (ours and stat.S_ISDIR(status.st_mode)):
        raise PermissionError


def _remove(path: str | Path) -> None:
    with suppress(OSError):
        os.unlink(path)
