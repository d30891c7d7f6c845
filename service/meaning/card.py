"""The card beside a model: what its files are, and how texts are prepared for it."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

from service.meaning.encoder import MeaningUnavailable

FILE: Final = "card.json"
GRAPH: Final = "model.onnx"
WORDS: Final = "words.bin"
TOKENIZER: Final = "tokenizer.model"
CHARACTERS: Final = "characters.json"
_ADVICE: Final = "Run `rung model install`, or set RUNG_MODEL to the folder of an installed model."


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
    begin: int
    end: int
    calibration: tuple[float, float]

    @property
    def id(self) -> str:
        """The name of the model and the beginning of a hash of its files."""
        together = "".join(self.files[name] for name in sorted(self.files))
        return f"{self.name}:{hashlib.sha256(together.encode()).hexdigest()[:8]}"

    def write(self, folder: Path) -> None:
        content = orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)
        (folder / FILE).write_bytes(content)


def read(folder: Path) -> Card:
    """The card of a model; raises `MeaningUnavailable` if there is none."""
    try:
        fields = orjson.loads((folder / FILE).read_bytes())
        card = Card(**{**fields, "calibration": tuple(fields["calibration"])})
        if {GRAPH, WORDS, TOKENIZER, CHARACTERS} == card.files.keys():
            return card
    except (OSError, ValueError, TypeError, LookupError):
        pass
    raise MeaningUnavailable(f"{folder} has no model with a valid {FILE}.", hint=_ADVICE)


def verify(card: Card, folder: Path) -> None:
    """Raises `MeaningUnavailable` if a file of the model is missing or is not that of its card."""
    for name, expected in card.files.items():
        try:
            checksum = digest(folder / name)
        except OSError as error:
            raise MeaningUnavailable(f"{folder / name} cannot be read.", hint=_ADVICE) from error
        if checksum != expected:
            raise MeaningUnavailable(f"{folder / name} is not the file of its card.", hint=_ADVICE)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
