"""Stores that older versions of Rung wrote, each with what it printed and answered then.

`tests/data/stores` has a file per layout, and beside it the tokens, bookmarks, feeds and blobs of
the version that wrote it, by grant: `full` reads everything, `limited` the files of 10 to 19
February 2026. One file left that range before the second bookmark, one entered it, one was deleted.
"""

import json
import lzma
import subprocess
from pathlib import Path
from typing import Any

from tests.helpers.places import empty_database
from tests.helpers.worlds import House

STORES = Path(__file__).parents[1] / "data" / "stores"
FILES = ("layout-5", "layout-6")


def old_store(name: str, folder: Path) -> tuple[House, dict[str, Any]]:
    """A copy of the store that a version wrote, and what that version answered, by grant."""
    answers = json.loads((STORES / f"{name}.json").read_text(encoding="utf-8"))
    packed = next(STORES.glob(f"{name}.*.xz"))
    content = lzma.decompress(packed.read_bytes())
    if name in FILES:
        path = folder / "rung.db"
        path.write_bytes(content)
        return House(path), answers
    place = empty_database()
    command = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", place.url]
    subprocess.run(command, input=content, check=True, stdout=subprocess.DEVNULL)
    return House(place), answers
