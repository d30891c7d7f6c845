"""What a file of somebody else's holds, if it is an ordinary file of a sensible size."""

import errno
import os
import stat
from pathlib import Path

from evidence.limits import BUDGETS


def content_of(path: Path, most: int = BUDGETS.client_file_bytes) -> bytes | None:
    """The bytes of an ordinary file; None if there is none. A pipe would not come to an end.

    Raises `OSError` for what is none, or has over `most` bytes.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "It is no ordinary file", str(path))
    with os.fdopen(opened, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"It is too large, with over {most} bytes", str(path))
    return content
