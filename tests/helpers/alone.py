"""Tests depend on nothing that the person who runs them has installed or signed in to."""

import os
from pathlib import Path
from tempfile import gettempdir
from typing import Final

from service.meaning.opening import model_folder
from service.settings import load

#: The model of that person, for the test that compares its vectors.
INSTALLED_MODEL: Final = model_folder(load())


def leave_home() -> None:
    """Hides the model and the tokens of that person from this process and its children."""
    os.environ.pop("RUNG_MODEL", None)
    os.environ["XDG_DATA_HOME"] = str(Path(gettempdir()) / "rung-tests-data")
