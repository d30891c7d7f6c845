"""An encoder behind an OpenAI-compatible endpoint, such as Ollama, llama.cpp, TEI or vLLM."""

from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import combinations
from math import hypot
from operator import mul
from statistics import fmean
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from evidence.cached import cached_property
from evidence.errors import EvidenceError, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline, parse_json, portions, within
from service.breaker import Breaker
from service.meaning.encoder import PROBES, MeaningUnavailable, quantized
from service.networks import is_loopback
from service.settings import Settings, parsing
from service.sources.remote import outbound

PROBED: Final = 32  # components of each of these vectors that an id has
SAME: Final = 0.999  # the least cosine between two vectors of one text by the same model
SPREAD: Final = 8.8  # from the mean cosine to 1, in standard deviations: that of the local model
BYTES_PER_TOKEN: Final = 3  # of UTF-8, at least, for the vocabularies in use


class Endpoint:
    """Sends texts to RUNG_EMBEDDINGS_URL. Its dimensions are those of the first answer."""

    def __init__(self, settings: Settings) -> None:
        base = str(settings.embeddings_url).removesuffix("/embeddings").removesuffix("/v1")
        self._url = f"{base}/v1/embeddings"
        local = urlsplit(base).hostname in parsing.LOOPBACK
        self._accepts = is_loopback if local else None
        self._settings = settings
        self._breaker = Breaker()

    @cached_property
    def _probes(self) -> list[bytes]:
        return self.passages(PROBES)

    @property
    def id(self) -> str:
        beginnings = b"".join(vector[:PROBED] for vector in self._probes)
        return f"{self._settings.embeddings_model}:{b64encode(beginnings).decode()}"

    @property
    def dimensions(self) -> int:
        return len(self._probes[0])

    @property
    def calibration(self) -> tuple[float, float]:
        mean = fmean(cosine(*pair) for pair in combinations(self._probes, 2))
        return mean, (1 - mean) / SPREAD

    @property
    def patience(self) -> float:
        return BUDGETS.sent_question_seconds

    def matches(self, id: str) -> bool:
        (name, _, ours), (other, _, theirs) = self.id.rpartition(":"), id.rpartition(":")
        return name == other and cosine(b64decode(ours), b64decode(theirs)) >= SAME

    def load(self) -> None:
        self._probes

    def question(self, text: str, seconds: float) -> bytes:
        return self._embed([text], seconds)[0]

    def passage(self, text: str) -> bytes:
        return self.passages([text])[0]

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        size, seconds = self._settings.embeddings_batch, self._settings.embeddings_seconds
        batches = portions(texts, size)
        return [vector for batch in batches for vector in self._embed(batch, seconds)]

    def tokens(self, text: str) -> int:
        return len(text.encode()) // BYTES_PER_TOKEN

    def _embed(self, texts: Sequence[str], seconds: float) -> list[bytes]:
        """The vectors of these texts, by one request, within the deadline of this thread too."""
        try:
            with self._breaker.guard(), within(seconds) as deadline:
                return self._ask(texts, deadline)
        except EvidenceError as error:
            raise MeaningUnavailable(f"The embeddings endpoint failed. {error.message}") from error

    def _ask(self, texts: Sequence[str], deadline: Deadline) -> list[bytes]:
        data = orjson.dumps({"model": self._settings.embeddings_model, "input": [*texts]})
        sent: dict[str, Any] = {"headers": self._headers(), "accepts": self._accepts, "data": data}
        with outbound.opened("POST", self._url, deadline=deadline, **sent) as answer:
            content = answer.read(BUDGETS.upstream_bytes)
        try:
            rows = sorted(parse_json(content)["data"], key=lambda row: int(row["index"]))
            vectors = [quantized(row["embedding"]) for row in rows]
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise Unavailable(f"It returned status {answer.status} without embeddings.") from error
        lengths = {len(vector) for vector in [*vectors, *self.__dict__.get("_probes", ())]}
        if len(vectors) != len(texts) or len(lengths) != 1 or 0 in lengths:
            raise Unavailable(
                "It returned the wrong number of embeddings, or embeddings of different lengths."
            )
        return vectors

    def _headers(self) -> dict[str, str]:
        headers, path = {"Content-Type": "application/json"}, self._settings.embeddings_key_file
        try:
            key = {"Authorization": f"Bearer {path.read_text().strip()}"} if path else {}
        except (OSError, ValueError) as error:
            raise Unavailable(
                "The file that RUNG_EMBEDDINGS_KEY_FILE names cannot be read."
            ) from error
        return headers | key


def cosine(left: bytes, right: bytes) -> float:
    """The cosine between two vectors of signed bytes; 0 if they differ in length."""
    ours, theirs = array("b", left), array("b", right)
    product: int = sum(map(mul, ours, theirs))
    return product / (hypot(*ours) * hypot(*theirs) or 1) if len(ours) == len(theirs) else 0.0
