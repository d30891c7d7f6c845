"""Options that several commands share."""

from pathlib import Path
from typing import Any

import click
import orjson

from service import place, settings
from service.place import Database, Place


class PlaceType(click.ParamType[Place]):
    """Where a store is; see `place`."""

    name = "file"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Place:
        try:
            found = value if isinstance(value, (Path, Database)) else place.read(str(value))
        except ValueError as error:
            self.fail(f"it {error}.", param, ctx)
        if isinstance(found, Path):
            click.Path(dir_okay=False).convert(found, param, ctx)
        return found


def _default() -> Place:
    """The database that a host provides, or else the file of this folder."""
    provided = settings.environment().get("DATABASE_URL", "")
    return place.read(provided if provided.startswith(place.SCHEMES) else "var/rung.db")


store_option = click.option(
    "--store",
    "store",
    type=PlaceType(),
    default=_default,
    envvar="RUNG_STORE",
    show_default="var/rung.db",
    help="The path of the store, or the URL of its database. Also read from RUNG_STORE.",
)


def read_json(path: Path) -> Any:
    """The value of a JSON file that an option names."""
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{path} is not JSON: {error}.") from error
