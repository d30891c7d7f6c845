"""The card of a model: a file that lists the model's files and says how to prepare texts for it."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

from service.meaning.encoder import MeaningUnavailable

FILE: Final = "card.json"
#: The files of a model: its graph, the embeddings of tokens, and the two parts of its tokenizer.
FILES: Final = ("model.onnx", "words.bin", "tokenizer.model", "characters.json")
GRAPH, WORDS, TOKENIZER, CHARACTERS = FILES


@dataclass(frozen=True, slots=True)
class Card:
    """The content of a card. `files` has the SHA-256 of each file."""

    name: str
    licence: str
    origin: str
    files: dict[str, str]
    question_prefix: str
    passage_prefix: str
    pooling: str
    dimensions: int
    longest_tokens: int
    calibration: tuple[float, float]

    @property
    def id(self) -> str:
        """The name of the model and the beginning of a hash of its files."""
        together = "".join(self.files[name] for name in FILES)
        return f"{self.name}:{hashlib.sha256(together.encode()).hexdigest()[:8]}"

    def write(self, folder: Path) -> None:
        content = orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)
        (folder / FILE).write_bytes(content)

    def verify(self, folder: Path) -> None:
        """Raises `MeaningUnavailable` if a file of the model is not that of its card."""
        for name in FILES:
            if not (folder / name).is_file() or digest(folder / name) != self.files[name]:
                raise _refusal(f"{folder / name} does not match its checksum in {FILE}.")


def read(folder: Path) -> Card:
    """The card of a model; raises `MeaningUnavailable` if there is none."""
    try:
        fields = orjson.loads((folder / FILE).read_bytes())
        card = Card(**{**fields, "calibration": tuple(fields["calibration"])})
        if card.files.keys() == {*FILES}:
            return card
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        pass
    raise _refusal(f"{folder} contains no model with a valid {FILE}.")


def _refusal(reason: str) -> MeaningUnavailable:
    advice = "Run `rung model install`, or set RUNG_MODEL to the folder of an installed model."
    return MeaningUnavailable(reason, hint=advice)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
