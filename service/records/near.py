"""Measures how close in meaning all the records of a store are to a text."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.cached import cached_property
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.meaning.encoder import Encoder
from service.records.engine import Snapshot
from service.records.engine.engine import Reader
from service.records.opening import open_reader
from service.records.overview import everything
from service.records.search.blocks import DIGITS
from service.records.search.meaning import meaning_of
from service.records.view import open_view

if TYPE_CHECKING:
    from service.records.search.nearest import Nearness


class NearRecords:
    """The records of a store with one stream, while a snapshot of it is open.

    The text is embedded when it is first needed; `warnings` says why it could not be.
    """

    def __init__(self, snapshot: Snapshot, encoder: Encoder, text: str) -> None:
        self._snapshot, self._encoder, self._text = snapshot, encoder, text
        self._view = open_view(snapshot, everything(snapshot))
        self.warnings: list[dict[str, Any]] = []

    @cached_property
    def _nearness(self) -> "Nearness | None":
        whole = self._view.covered.meaning_scope
        meaning = meaning_of(self._snapshot, self._encoder, self._text, whole)
        self.warnings = meaning.warnings
        return meaning.nearness

    def of(self, keys: Iterable[str]) -> dict[str, float] | None:
        """The nearness of records with a vector; None if that of none is known."""
        if self._nearness is None:
            return None
        selection = self._view.streams[0].selection()
        records = [(key, self._snapshot.find(selection, key)) for key in keys]
        keys_by_seq = {stored.seq: key for key, found in records if (stored := found.get())}
        texts = self._nearness.of(keys_by_seq).get()
        return {keys_by_seq[seq]: text.nearness for seq, text in texts.items()}

    def best(self) -> list[str]:
        """The records that are nearer than the average, nearest first."""
        if self._nearness is None:
            return []
        deadline = Deadline.after(BUDGETS.related_seconds)
        texts, _ = self._nearness.search(self._view.covered.meaning_scope, deadline)
        near = [seq for seq, text in texts.items() if text.nearness > 0]
        stored = self._snapshot.load(near).get()
        order = sorted(
            (-round(texts[seq].nearness, DIGITS), record.record_key)
            for seq, record in stored.items()
        )
        return [key for _, key in order]


class NearStores:
    """The stores of a deployment that are asked so, each opened once in a process."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._readers = encoder, dict[Path, Reader]()

    @contextmanager
    def open(self, path: Path, text: str) -> Iterator[NearRecords | None]:
        """How near the records of a store are to a text; None if there is no store."""
        if not path.exists():
            yield None
            return
        reader = self._readers.get(path) or self._readers.setdefault(path, open_reader(path))
        with reader.snapshot() as snapshot:
            yield NearRecords(snapshot, self._encoder, text)
