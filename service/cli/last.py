"""The ids of the last search on a terminal, so that `rung read 3` reads its third hit.

The file is beside the configuration file. It contains ids only, and only its user can read it.
"""

import os
from contextlib import suppress
from pathlib import Path

import orjson

from evidence.errors import InvalidRequest
from evidence.hits import SearchPage
from service import settings
from service.cli import config


def keep(page: SearchPage) -> None:
    """Stores the ids of a page by their numbers; a further page adds its own."""
    ids = _read() if page.args.get("cursor") else {}
    ids |= {str(number): hit.id for number, hit in page.numbered()}
    path = _path()
    with suppress(OSError):  # a home that cannot be written
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(ids))


def id_of(text: str) -> str:
    """The id that an argument stands for; raises `InvalidRequest` for an unknown number."""
    if not (text.isascii() and text.isdigit()):
        return text
    found = _read().get(str(int(text)))
    if found is None:
        raise InvalidRequest(
            f"The last search on a terminal has no hit {text}.",
            hint="Search again, or give the id of a record.",
        )
    return found


def _read() -> dict[str, str]:
    with suppress(OSError, ValueError):
        found = orjson.loads(_path().read_bytes())
        return {name: one for name, one in found.items() if isinstance(one, str)}
    return {}


def _path() -> Path:
    return config.path_of(settings.environment()).with_name("last-search.json")
