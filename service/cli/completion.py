"""`rung completion`: prints the completion script for a shell."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell. Save the script in a file that the shell loads."""
    kind = get_completion_class(shell)
    assert kind is not None, "click completes each of SHELLS"
    click.echo(kind(context.find_root().command, {}, "rung", "_RUNG_COMPLETE").source())
