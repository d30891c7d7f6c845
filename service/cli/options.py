"""Options that several commands share."""

from pathlib import Path

import click

store_option = click.option(
    "--store",
    "store",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("var/rung.db"),
    envvar="RUNG_STORE",
    show_default=True,
    help="The path of the store. Also read from RUNG_STORE.",
)
