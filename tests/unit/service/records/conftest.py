"""A store of notes, empty and open for writing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evidence.manifest import parse
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import declare, open_stream
from service.records.sqlite.writer import Writer, open_writer
from tests.helpers.notes import NOTES


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with open_writer(tmp_path / "folder" / "rung.db") as opened:
        declare(opened, "c", parse({"streams": [NOTES]}))
        yield opened


@pytest.fixture
def notes(writer: Writer) -> StreamHandle:
    return open_stream(writer, "c", "notes")
