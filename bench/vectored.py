"""A store whose texts have made-up vectors: a scan takes as long over these as over real ones."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import numpy

from bench.stores import Corpus, kept, layout, open_corpus
from service.meaning import building
from service.meaning.building import build, hash_of
from service.meaning.model import LocalModel
from service.meaning.opening import encoder_of, model_folder
from service.records.engine import vectors
from service.settings import load

CHARS_PER_TOKEN = 3


class MadeUp:
    """Random vectors of the installed model's set, the same for the same text."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        return list(map(self.passage, texts))

    def passage(self, text: str) -> bytes:
        random = numpy.random.default_rng(abs(hash_of(text)))
        numbers = random.normal(0, 40, self._model.dimensions)
        return numbers.clip(-127, 127).astype(numpy.int8).tobytes()

    def tokens(self, text: str) -> int:
        return len(text) // CHARS_PER_TOKEN


def installed() -> LocalModel | None:
    """The model that the settings name, or that this user has installed."""
    encoder = encoder_of(load())
    return encoder if isinstance(encoder, LocalModel) else None


def by_meaning() -> dict[str, str]:
    """The settings of a server that uses the installed model."""
    return {"RUNG_SEMANTIC": "on", "RUNG_MODEL": str(model_folder(load()))}


def open_vectored(count: int, model: LocalModel) -> Corpus:
    """The corpus of `count` records with vectors, built if it does not exist."""
    plain = open_corpus(count)

    def fill(folder: Path) -> None:
        for file in plain.folder.glob("store.db*"):
            shutil.copy(file, folder)
        build(folder / "store.db", MadeUp(model), Event(), on_commit=lambda progress: None)

    sources = [Path(str(module.__file__)).read_text() for module in (building, vectors)]
    folder = kept(f"vectored-{count}", repr((layout(), model.id, sources)), fill)
    return Corpus(folder, plain.tokens)
