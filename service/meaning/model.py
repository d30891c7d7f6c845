"""The local model: onnxruntime runs the encoder, and SentencePiece splits texts into tokens.

Its libraries start threads and take memory, so they are loaded at the first use, which must come
after a fork. One text a run: the graph rounds by the greatest value of a run, so in a batch the
vector of a text would depend on the others.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

import orjson

from evidence.cached import cached_property
from evidence.limits import BUDGETS
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
        self._session: Any = None

    @cached_property
    def _card(self) -> Card:
        return card.read(self._folder)

    @property
    def id(self) -> str:
        return self._card.id

    @property
    def dimensions(self) -> int:
        return self._card.dimensions

    @property
    def calibration(self) -> tuple[float, float]:
        return self._card.calibration

    @property
    def patience(self) -> float:
        return BUDGETS.question_seconds

    def matches(self, id: str) -> bool:
        return id == self.id

    def load(self) -> None:
        with self._lock, _failures("cannot be loaded"):
            if self._session is None:
                self._card.verify(self._folder)
                self._load_tokenizer()
                self._load_encoder()

    def _load_tokenizer(self) -> None:
        from sentencepiece import SentencePieceProcessor

        table = orjson.loads((self._folder / card.CHARACTERS).read_bytes())
        self._characters = {int(character): text for character, text in table.items()}
        self._pieces = SentencePieceProcessor(model_file=str(self._folder / card.TOKENIZER))

    def _load_encoder(self) -> None:
        import numpy as np
        import onnxruntime

        from service.meaning.weights import row_bytes

        words = np.memmap(self._folder / card.WORDS, np.uint8, "r")
        self._words = words.reshape(-1, row_bytes(self.dimensions))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        exact = "0" if _has_vnni() else "1"
        options.add_session_config_entry("session.x64quantprecision", exact)
        options.enable_mem_pattern = False  # it keeps a plan for every length of a text
        self._freeing = onnxruntime.RunOptions()
        self._freeing.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._session = onnxruntime.InferenceSession(
            self._folder / card.GRAPH, options, providers=["CPUExecutionProvider"]
        )

    def question(self, text: str, seconds: float) -> bytes:
        self.load()
        deadline = Deadline.after(seconds)
        vector = self._embed(self._card.question_prefix + text)
        if deadline.expired():
            raise MeaningUnavailable("Embedding the question took too long.")
        return vector

    def passage(self, text: str) -> bytes:
        return self._embed(self._card.passage_prefix + text)

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.passage(text) for text in texts]

    def tokens(self, text: str) -> int:
        return len(self.ids(self._card.passage_prefix + text))

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without those of its beginning and end."""
        self.load()
        valid = normalize("NFC", text.encode(errors="replace").decode())
        ids: list[int] = self._pieces.encode(_SPACES.sub(" ", valid.translate(self._characters)))
        return ids

    def _embed(self, text: str) -> bytes:
        ids = self.ids(text)[: self._card.longest_tokens - 2]
        with _failures("failed"):
            from service.meaning.weights import unpacked

            rows = self._words[[self._pieces.bos_id(), *ids, self._pieces.eos_id()]]
            (mean,) = self._session.run(None, {"embeddings": unpacked(rows)}, self._freeing)
            return quantized(mean.tolist())


def _has_vnni() -> bool:
    """False if products of 8 bits may overflow on x86; a slower method then gives equal vectors."""
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """Turns every error of the libraries into `MeaningUnavailable`."""
    try:
        yield
    except MeaningUnavailable:
        raise
    except Exception as error:
        raise MeaningUnavailable(f"The model {what}: {type(error).__name__}.") from error
