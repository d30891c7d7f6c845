"""An owner with an empty store."""

from pathlib import Path

import pytest

from tests.formats.owner import Owner


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owner:
    monkeypatch.chdir(tmp_path)
    return Owner(tmp_path)
