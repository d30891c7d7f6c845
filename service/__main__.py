"""The `rung` command."""

import errno
import os
import sys

import click

from evidence.version import VERSION
from service.cli.deferred import Deferred

#: Errors of a full disk.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

#: Every command: the module it is in, its name there, and its line in the list of commands. Every
#: command waits for what this file imports, so it imports no command, and no library but click.
COMMANDS = (
    Deferred("schema", "service.cli.reading", "schema", "Discover streams and fields."),
    Deferred("query", "service.cli.reading", "query", "List records."),
    Deferred("aggregate", "service.cli.reading", "aggregate", "Count and summarize."),
    Deferred("search", "service.cli.reading", "search", "Search records."),
    Deferred("fetch", "service.cli.reading", "fetch", "Fetch a record."),
    Deferred("read", "service.cli.reading", "read", "Read part of a field."),
    Deferred("blob", "service.cli.blob", "blob", "Print the bytes of a binary field."),
    Deferred(
        "export",
        "service.cli.export.commands",
        "export",
        "Export fields, records, streams, blobs and papers.",
    ),
    Deferred("import", "service.cli.importing", "import_", "Import records from files."),
    Deferred("remove", "service.cli.upkeep", "remove", "Remove a connection or a stream."),
    Deferred("replace", "service.cli.upkeep", "replace", "Replace a stream by the rows of files."),
    Deferred("backup", "service.cli.upkeep", "back_up", "Copy the store while it is served."),
    Deferred("restore", "service.cli.upkeep", "restore", "Put a backup in place of the store."),
    Deferred("check", "service.cli.upkeep", "check_", "Check the store, and repair its indexes."),
    Deferred("store", "service.cli.copying", "store", "Copy a store into a file or a database."),
    Deferred(
        "grant",
        "service.cli.grants",
        "grant",
        "Create, list and revoke tokens for the store.",
    ),
    Deferred("owner", "service.cli.owner", "owner", "Sign in to the pages of the owner."),
    Deferred(
        "package",
        "service.cli.packages",
        "package",
        "Create, list and revoke tokens for several grants.",
    ),
    Deferred(
        "stats",
        "service.cli.store",
        "stats",
        "Count the connections, streams and records of the store.",
    ),
    Deferred("log", "service.cli.log", "log", "Show which grants read which streams, by day."),
    Deferred("papers", "service.cli.papers", "papers", "Search and read the papers of a snapshot."),
    Deferred("serve", "service.cli.serve", "serve", "Serve records and papers over HTTP."),
    Deferred(
        "config",
        "service.cli.settings",
        "config",
        "Show the effective settings and their origin.",
        configured=False,
    ),
    Deferred(
        "doctor",
        "service.cli.doctor",
        "doctor",
        "Check the setup and report the first failure.",
        configured=False,
    ),
    Deferred("connect", "service.cli.connect", "connect", "Set up an MCP client."),
    Deferred("stdio", "service.cli.stdio", "stdio", "Serve MCP on standard input and output."),
    Deferred(
        "completion",
        "service.cli.completion",
        "completion",
        "Set up shell completion.",
        configured=False,
    ),
    Deferred("demo", "service.cli.demo", "demo", "Create a store with demo data."),
)
CONFIGURED = frozenset(command.name for command in COMMANDS if command.configured)


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="rung")
@click.pass_context
def rung(context: click.Context) -> None:
    """Search and read records and papers, and serve them over MCP and REST."""
    if context.invoked_subcommand in CONFIGURED:
        from service.cli import config

        config.apply(context)


def main() -> None:
    """Runs the command line: data on stdout, messages on stderr, and exit codes."""
    try:
        rung(prog_name="rung")
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        from service.cli.errors import FAILURE

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or what is left is written at the very end
        click.echo(f"Error: cannot write to standard output: {error.strerror}.", err=True)
        sys.exit(FAILURE)


if __name__ == "__main__":
    main()
