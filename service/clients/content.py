"""Reads a configuration file if it is a regular file of a reasonable size."""

import errno
import os
import stat
from pathlib import Path

from evidence.limits import BUDGETS


def content_of(path: Path, most: int = BUDGETS.client_file_bytes) -> bytes | None:
    """The bytes of a regular file; None if it does not exist.

    Raises `OSError` for other kinds of files, which may never end, and above `most` bytes.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
    with os.fdopen(opened, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"It is too large, with over {most} bytes", str(path))
    return content
