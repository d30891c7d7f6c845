"""`rung blob`: the bytes of a binary field, to a file or a pipe."""

import hashlib
import sys
from pathlib import Path
from typing import IO, Any

import click

from evidence.errors import Unavailable
from service.cli import output
from service.cli.commands import Spelling, report_errors
from service.cli.reading import ENTRIES
from service.cli.replacing import replacing
from service.cli.source import Source, source_options
from service.ports import Blob


@click.command()
@click.argument("blob_id")
@click.option("--connection-id", help="Only this connection.")
@click.option("-o", "--output", "path", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--json", "as_json", is_flag=True, help="Print the blob's metadata instead of its bytes."
)
@source_options
def blob(
    source: Source, blob_id: str, connection_id: str | None, path: Path | None, as_json: bool
) -> None:
    """Print the bytes of the binary field that `rung read` shows as BLOB_ID.

    The bytes go to standard output, or to the file of --output once they are complete.
    """
    from service.cli.opening import open_session

    spelling = Spelling(("rung",), ENTRIES, source.words)
    with report_errors(spelling, as_json=as_json, asked=source.server):
        content = open_session(source).rs.blob(blob_id, connection_id=connection_id)
        if as_json:
            output.json(_metadata(content))
            return
        if path is not None:
            with replacing(path) as file:
                _write(content, file)
            output.say(f"{path}: {content.size_bytes} bytes, {content.media_type}")
            return
        if output.on_terminal():
            raise click.UsageError(
                "Will not write binary data to a terminal. Use --output FILE or a pipe."
            )
        _write(content, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _metadata(content: Blob) -> dict[str, Any]:
    """The metadata of a blob."""
    return {
        "object": "blob",
        "blob_id": content.blob_id,
        "mime_type": content.media_type,
        "size_bytes": content.size_bytes,
        "sha256": content.sha256 or None,
    }


def _write(content: Blob, file: IO[bytes]) -> None:
    """Writes all bytes; raises `Unavailable` if they do not match the announced size or hash."""
    digest = hashlib.sha256()
    for piece in content.chunks(0, content.size_bytes):
        digest.update(piece)
        file.write(piece)
    if content.sha256 and digest.hexdigest() != content.sha256:
        raise Unavailable(
            f"The bytes of blob {content.blob_id} do not match its checksum. Try again.",
            code="blob_corrupt",
        )
