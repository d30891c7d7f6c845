"""Options that several commands share."""

from pathlib import Path
from typing import Any

import click
import orjson

store_option = click.option(
    "--store",
    "store",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("var/rung.db"),
    envvar="RUNG_STORE",
    show_default=True,
    help="The path of the store. Also read from RUNG_STORE.",
)


def read_json(path: Path) -> Any:
    """The value of a JSON file that an option names."""
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{path} is not JSON: {error}.") from error
