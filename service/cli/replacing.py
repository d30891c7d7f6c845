"""Replaces a file atomically."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import click


@contextmanager
def replacing(path: Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """A temporary file that replaces `path` at the end, unless the block raises.

    Raises `click.ClickException` for errors of the file system.
    """
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield file
                file.flush()
                os.chmod(file.name, mode)
                os.replace(file.name, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(file.name)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}.") from error
