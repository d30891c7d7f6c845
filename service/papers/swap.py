"""Replaces the snapshot of a running server: checks the new one, then renames it into place."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evidence.errors import EvidenceError, InvalidRequest, Unavailable
from service import database_files
from service.papers.snapshot_file import Stamp, look, reason, whole
from service.papers.snapshot import Snapshot, SnapshotRefused, open_snapshot


def swap(new: Path, target: Path) -> Snapshot:
    """Atomically replaces `target` with the snapshot `new`, including its log; returns it, closed.

    `new` stays unchanged. If `target` is a link, the file behind it is replaced. Raises
    `InvalidRequest` (`snapshot_refused`) for an invalid snapshot or for `target` itself,
    `Unavailable` (`snapshot_unavailable`) if the folder cannot be written.
    """
    real = Path(os.path.realpath(target))
    try:
        stamp = look(new)
        if real.exists() and os.path.samefile(stamp.file, real):
            raise _refused("it is the file that is being served; pass the path of the new file")
        with _draft(stamp, real) as draft:
            installed = open_snapshot(draft)
            installed.close()
            database_files.replace(draft, real)
        return installed
    except SnapshotRefused as error:
        raise _refused(str(error)) from error
    except OSError as error:
        raise Unavailable(
            f"The directory of the served snapshot is not writable: {reason(error)}.",
            code="snapshot_unavailable",
            hint="Make the directory writable for this user, and free space for another copy. "
            "The old snapshot is still being served.",
        ) from error


@contextmanager
def _draft(new: Stamp, real: Path) -> Iterator[Path]:
    """A synced copy of `new` in the folder of the target; removed at the end if still there."""
    handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.", suffix=".new")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as copy:
            with whole(new) as source, source.open("rb") as content:
                shutil.copyfileobj(content, copy, 1 << 20)
            # The permissions of the served file.
            owner = (real if real.exists() else Path(new.file)).stat()
            draft.chmod(owner.st_mode & 0o777)
            with suppress(PermissionError):
                os.chown(draft, owner.st_uid, owner.st_gid)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _refused(why: str) -> EvidenceError:
    return InvalidRequest(
        f"The new file was not installed: {why}.",
        code="snapshot_refused",
        hint="Use a complete deepresearch-flow snapshot. The old snapshot is unchanged.",
    )
