"""The `rung` command."""

import click

from evidence.version import VERSION
from service.cli.demo import demo
from service.cli.grants import grant
from service.cli.packages import package
from service.cli.papers import papers
from service.cli.serve import serve
from service.cli.stdio import stdio
from service.cli.store import import_, stats

COMMANDS: tuple[click.Command, ...] = (import_, grant, package, stats, papers, serve, stdio, demo)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="rung")
def rung() -> None:
    """Evidence, one rung at a time: records over MCP and REST."""


for command in COMMANDS:
    rung.add_command(command)


def main() -> None:
    """Runs the command line: data on stdout, messages on stderr; exits 0, 1 or 2."""
    rung(prog_name="rung")


if __name__ == "__main__":
    main()
