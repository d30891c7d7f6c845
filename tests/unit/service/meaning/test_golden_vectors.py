"""The installed model gives the tokens and vectors that it gave when it was first converted."""

from base64 import b64decode
from pathlib import Path

import orjson
import pytest

from service.meaning import card
from service.meaning.endpoint import cosine
from service.meaning.model import LocalModel
from tests.helpers.alone import INSTALLED_MODEL

GOLDEN = orjson.loads(Path("tests/data/golden_vectors.json").read_bytes())


@pytest.mark.slow
def test_the_real_model_gives_the_vectors_on_record() -> None:
    if not (INSTALLED_MODEL / card.FILE).exists():
        pytest.skip("no model is installed: run `rung model install`")
    encoder = LocalModel(INSTALLED_MODEL)
    assert encoder.id == GOLDEN["model"]
    for row in GOLDEN["rows"]:
        assert encoder.ids(f"query: {row['text']}") == row["ids"]
        vector = encoder.question(row["text"], 9)
        assert cosine(vector, b64decode(row["vector"])) >= 0.999, row["text"]
