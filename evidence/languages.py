"""Properties of languages, by their two-letter codes: see `languages.toml`."""

import tomllib
from pathlib import Path
from typing import Final

LANGUAGES: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
