"""The `rung` command."""

import errno
import os
import sys

import click

from evidence.version import VERSION
from service.cli import config as configuration
from service.cli import errors
from service.cli.blob import blob
from service.cli.completion import completion
from service.cli.connect import connect
from service.cli.demo import demo
from service.cli.doctor import doctor
from service.cli.export.commands import export
from service.cli.grants import grant
from service.cli.packages import package
from service.cli.papers import papers
from service.cli.reading import COMMANDS as READING
from service.cli.serve import serve
from service.cli.settings import config
from service.cli.stdio import stdio
from service.cli.store import import_, stats

#: What a disk says that takes no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

COMMANDS: tuple[click.Command, ...] = (
    *READING,
    blob,
    export,
    import_,
    grant,
    package,
    stats,
    papers,
    serve,
    config,
    doctor,
    connect,
    stdio,
    completion,
    demo,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="rung")
@click.pass_context
def rung(context: click.Context) -> None:
    """Evidence, one rung at a time: records over MCP and REST."""
    configuration.apply(context)


for command in COMMANDS:
    rung.add_command(command)


def main() -> None:
    """Runs the command line: data on stdout, messages on stderr, and exit codes."""
    try:
        rung(prog_name="rung")
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or what is left is written at the very end
        click.echo(f"Error: standard output cannot be written: {error.strerror}.", err=True)
        sys.exit(errors.FAILURE)


if __name__ == "__main__":
    main()
