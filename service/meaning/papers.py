"""The vectors of a paper snapshot, in a separate store that is named after the snapshot's SHA-256.

The snapshot is only read. The store has a record with the title and the summaries of each paper, so
that it is filled and asked like any other.
"""

from contextlib import AbstractContextManager
from pathlib import Path

from evidence.errors import Unavailable
from evidence.manifest import parse
from service.meaning.encoder import Encoder
from service.papers.snapshot_library import Papers
from service.records.intake import Row
from service.records.near import NearRecords, NearStores
from service.records.opening import engine_of
from service.records.writing.ingest import Batch
from service.records.writing.streams import connect, declare, open_stream

NAME = "papers"
_TEXTS = {"title": "primary-title", "summary": "primary-text"}
_FIELDS = {name: {"type": "string", "x_pdpp_role": role} for name, role in _TEXTS.items()}
_STREAM = {
    "name": NAME,
    "schema": {"type": "object", "properties": _FIELDS},
    "query": {"search": {"lexical_fields": [*_TEXTS]}},
}


def _store(folder: Path, sha256: str) -> Path:
    return folder / f"papers-{sha256}.db"


def filled_store(papers: Papers, folder: Path) -> Path:
    """The store in a folder for the vectors of the current snapshot, created if new.

    Raises `Unavailable` without a usable snapshot, or if the folder cannot be written.
    """
    sha256, texts = papers.texts()
    path = _store(folder, sha256)
    if not path.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"The folder {folder} cannot be created.") from error
        with engine_of(path).new_store() as writer:
            connect(writer, NAME, connector_key=NAME)
            declare(writer, NAME, parse({"streams": [_STREAM]}))
            stream, batch = open_stream(writer, NAME, NAME), Batch(writer)
            for paper_id, title, summary in texts:
                batch.add(stream, Row({"title": title, "summary": summary}, paper_id))
            batch.flush()
            writer.finish()
    return path


class PaperMeaning:
    """Opens what questions about papers need; for all threads of a worker."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self._folder, self._stores = folder, NearStores(encoder)

    def open(self, sha256: str, text: str) -> AbstractContextManager[NearRecords | None]:
        """How near the papers of a snapshot are to a text; None if they have no vectors yet."""
        return self._stores.open(_store(self._folder, sha256), text)
