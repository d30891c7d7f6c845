"""The `rung` command."""

import errno
import os
import sys

import click

from evidence.version import VERSION
from service.cli.deferred import Deferred

#: Errors of a full disk.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

#: Every command: its module in `service.cli`, its name there, and its line in the list of commands.
#: Every command waits for what this file imports, so it imports no command, and only click.
COMMANDS = (
    Deferred("schema", "reading", "schema", "Discover streams and fields."),
    Deferred("query", "reading", "query", "List records."),
    Deferred("aggregate", "reading", "aggregate", "Count and summarize."),
    Deferred("search", "reading", "search", "Search records."),
    Deferred("fetch", "reading", "fetch", "Fetch a record."),
    Deferred("read", "reading", "read", "Read part of a field."),
    Deferred("blob", "reading", "blob", "Print the bytes of a binary field."),
    Deferred(
        "export", "export.commands", "export", "Export fields, records, streams, blobs and papers."
    ),
    Deferred("import", "importing", "import_", "Import records from files."),
    Deferred("remove", "upkeep", "remove", "Remove a connection or a stream."),
    Deferred("replace", "upkeep", "replace", "Replace a stream by the rows of files."),
    Deferred("backup", "upkeep", "back_up", "Copy the store while it is served."),
    Deferred("restore", "upkeep", "restore", "Put a backup in place of the store."),
    Deferred("check", "upkeep", "check_", "Check the store, and repair its indexes."),
    Deferred("store", "copying", "store", "Copy a store into a file or a database."),
    Deferred("grant", "grants", "grant", "Create, list and revoke tokens for the store."),
    Deferred("owner", "owner", "owner", "Sign in to the pages of the owner."),
    Deferred(
        "package", "packages", "package", "Create, list and revoke tokens for several grants."
    ),
    Deferred("stats", "store", "stats", "Count the connections, streams and records of the store."),
    Deferred("log", "log", "log", "Show which grants read which streams, by day."),
    Deferred("papers", "papers", "papers", "Search and read the papers of a snapshot."),
    Deferred("serve", "serve", "serve", "Serve records and papers over HTTP."),
    Deferred(
        "config",
        "settings",
        "config",
        "Show the effective settings and their origin.",
        configured=False,
    ),
    Deferred(
        "doctor",
        "doctor",
        "doctor",
        "Check the setup and report the first failure.",
        configured=False,
    ),
    Deferred("connect", "connect", "connect", "Set up an MCP client."),
    Deferred("stdio", "stdio", "stdio", "Serve MCP on standard input and output."),
    Deferred(
        "completion", "completion", "completion", "Set up shell completion.", configured=False
    ),
    Deferred("demo", "demo", "demo", "Create a store with demo data."),
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
        from service.cli.commands import FAILURE

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or what is left is written at the very end
        click.echo(f"Error: cannot write to standard output: {error.strerror}.", err=True)
        sys.exit(FAILURE)


if __name__ == "__main__":
    main()
