"""The local model: onnxruntime runs the encoder, SentencePiece splits texts into tokens.

Imports of its libraries start threads and take memory, so they are loaded at the first use, which
must come after a fork. One text a run: the graph rounds by the greatest value of a run, so in a
batch the vector of a text would depend on the others.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

import orjson

from evidence.work import Deadline
from service.meaning import card
from service.meaning.card import Card
from service.meaning.encoder import MeaningUnavailable, quantized

_SPACES: Final = re.compile(" {2,}")


class LocalModel:
    """The model in a folder with a card."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._run: Callable[[list[int]], bytes] | None = None
        self._split: Callable[[str], list[int]] | None = None

    @cached_property
    def card(self) -> Card:
        return card.read(self._folder)

    @property
    def id(self) -> str:
        return self.card.id

    @property
    def dimensions(self) -> int:
        return self.card.dimensions

    @property
    def calibration(self) -> tuple[float, float]:
        return self.card.calibration

    def matches(self, id: str) -> bool:
        return id == self.id

    def load(self) -> None:
        with self._lock, _failures("cannot be loaded"):
            if self._run is None:
                card.verify(self.card, self._folder)
                self._split = _tokenizer(self._folder)
                self._run = _encoder(self._folder)

    def question(self, text: str, seconds: float) -> bytes:
        self.load()
        deadline = Deadline.after(seconds)
        vector = self._embed(self.card.question_prefix + text)
        if deadline.expired():
            raise MeaningUnavailable("Embedding the question took too long.")
        return vector

    def passage(self, text: str) -> bytes:
        return self._embed(self.card.passage_prefix + text)

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.passage(text) for text in texts]

    def tokens(self, text: str) -> int:
        return len(self.ids(self.card.passage_prefix + text))

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without those of its beginning and end."""
        self.load()
        assert self._split is not None
        return self._split(text)

    def _embed(self, text: str) -> bytes:
        ids = self.ids(text)[: self.card.longest_tokens - 2]
        assert self._run is not None
        with _failures("failed"):
            return self._run([self.card.begin, *ids, self.card.end])


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """Turns every error of the libraries into `MeaningUnavailable`."""
    try:
        yield
    except MeaningUnavailable:
        raise
    except Exception as error:
        raise MeaningUnavailable(f"The model {what}: {type(error).__name__}.") from error


def _tokenizer(folder: Path) -> Callable[[str], list[int]]:
    from sentencepiece import SentencePieceProcessor

    processor: Any = SentencePieceProcessor(model_file=str(folder / card.TOKENIZER))
    table = orjson.loads((folder / card.CHARACTERS).read_bytes())
    characters = {int(character): text for character, text in table.items()}

    def split(text: str) -> list[int]:
        valid = normalize("NFC", text.encode(errors="replace").decode())
        ids: list[int] = processor.encode(_SPACES.sub(" ", valid.translate(characters)))
        return ids

    return split


def _encoder(folder: Path) -> Callable[[list[int]], bytes]:
    import numpy as np
    import onnxruntime

    from service.meaning.weights import row_bytes, unpacked

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession(
        folder / card.GRAPH, options, providers=["CPUExecutionProvider"]
    )
    ((_, hidden),) = (node.shape for node in session.get_inputs())
    words = np.memmap(folder / card.WORDS, np.uint8, "r").reshape(-1, row_bytes(hidden))

    def run(ids: list[int]) -> bytes:
        (mean,) = session.run(None, {"embeddings": unpacked(words[ids])})
        return quantized(mean.tolist())

    return run
