"""A stand-in for a model: hashed trigrams of characters, the same in every process.

`Trigrams` is an encoder inside a test. For servers and commands, `serving()` serves the same
vectors at a real endpoint: start them with the variables that it yields.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from zlib import crc32

import orjson

from service.meaning.building import build
from service.meaning.encoder import quantized
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.worlds import House

DIMENSIONS = 64
MODEL = "trigrams"


def components(text: str) -> list[float]:
    """The vector of a text: each trigram of its letters adds 1 or -1 to a component."""
    vector = [0.0] * DIMENSIONS
    padded = f"  {' '.join(text.casefold().split())}  "
    for start in range(len(padded) - 2):
        number = crc32(padded[start : start + 3].encode("utf-8", "surrogatepass"))
        vector[number % DIMENSIONS] += 1 if number >> 16 & 1 else -1
    return vector


class Trigrams:
    """An encoder that embeds by `components`; one with another `id` is another model."""

    dimensions = DIMENSIONS
    calibration = (0.1, 0.15)
    patience = 1.0

    def __init__(self, id: str = f"{MODEL}:1") -> None:
        self.id = id

    def matches(self, id: str) -> bool:
        return id == self.id

    def load(self) -> None:
        """Loads nothing."""

    def question(self, text: str, seconds: float) -> bytes:
        return self.passage(text)

    def passage(self, text: str) -> bytes:
        return quantized(components(text))

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.passage(text) for text in texts]

    def tokens(self, text: str) -> int:
        return len(text.split())


def embed_all(house: House) -> House:
    """The same house, whose store has vectors, so that it is also searched by meaning."""
    build(house.path, Trigrams(), Event(), on_commit=lambda progress: None)
    house.app.extensions["rung"].store.encoder = Trigrams()
    return house


def answer(asked: Asked) -> Reply:
    """What an OpenAI-compatible endpoint answers."""
    texts = orjson.loads(asked.body)["input"]
    rows = [{"index": at, "embedding": components(text)} for at, text in enumerate(texts)]
    return as_json({"object": "list", "data": rows, "model": MODEL})


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """Serves these vectors; yields the variables for a server or command that uses them."""
    with answering(answer) as server:
        yield {"RUNG_EMBEDDINGS_URL": f"{server.url}/v1", "RUNG_EMBEDDINGS_MODEL": MODEL}
