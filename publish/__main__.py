"""`python -m publish`: writes what is checked in, and builds and checks what is uploaded."""

import subprocess
import sys
from pathlib import Path

import click

from publish import agents, bundle
from publish.build import build, compiled_wheel
from publish.identity import FILE, Identity


@click.group()
def main() -> None:
    """What is published: `files` are checked in, `build` and `wheels` make the rest."""


@main.command()
def files() -> None:
    """Write server.json, the skill and the plugin from the operations."""
    agents.write(Identity.read())


@main.command(name="build")
@click.option("--out", type=click.Path(path_type=Path), default=Path("dist"), show_default=True)
@click.option("--publish", is_flag=True, help="Refuse to build with the placeholder of a name.")
def build_all(out: Path, publish: bool) -> None:
    """Build the sdist, the wheel and the bundle, and check them with the tools of their readers."""
    identity = Identity.read()
    if identity.placeholder:
        _placeholder(identity, publish)
    built = build(identity, out)
    _check("twine", "check", "--strict", *map(str, built))
    _check("check_wheel_contents", str(built[1]))
    for path in (*built, bundle.pack(identity, built[1], out)):
        click.echo(path)


@main.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("dist/linux"), show_default=True
)
def wheels(out: Path) -> None:
    """Build the wheel with the compiled scorer for Linux on this processor."""
    try:
        click.echo(compiled_wheel(Identity.read(), out))
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None


def _placeholder(identity: Identity, publish: bool) -> None:
    message = (
        f'The name is still the placeholder "{identity.identity}". Register yours, and write it '
        f"into publish/{FILE.name}."
    )
    if publish:
        raise click.ClickException(message)
    click.echo(f"Not for publishing: {message[0].lower()}{message[1:]}", err=True)


def _check(module: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"{module} refuses it:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
