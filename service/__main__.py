"""The `rung` command."""

import errno
import os
import sys

import click

from evidence.version import VERSION
from service.cli.deferred import Deferred

#: Errors of a full disk.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

#: Every command: its name, its module in `service.cli`, its name there, and its line in the list
#: of commands. Every command waits for what this file imports, so it imports only click.
TABLE = """
    schema     reading         schema     Discover streams and fields.
    query      reading         query      List records.
    aggregate  reading         aggregate  Count and summarize records.
    search     reading         search     Search records.
    fetch      reading         fetch      Fetch a record.
    read       reading         read       Read part of a field.
    open       reading         open_      Open a record's page in a browser.
    blob       export.commands print_blob Print the bytes of a binary field.
    export     export.commands export     Export fields, records, streams and blobs.
    import     importing       import_    Import records from files.
    source     sources         source     Add, list and remove the sources for `rung sync`.
    sync       sources         sync       Import new and changed records from the sources.
    remove     upkeep          remove     Remove a connection or a stream.
    replace    upkeep          replace    Replace a stream with rows from files.
    backup     upkeep          back_up    Write a copy of the store to a file.
    restore    upkeep          restore    Replace the store with a backup.
    check      upkeep          check_     Check the store or repair its indexes.
    store      upkeep          stores     Copy a store to a file or a database.
    grant      grants          grant      Create, list and revoke grants, and map users to them.
    login      login          login      Sign in to a Rung server.
    logout     login          logout     Sign out of a Rung server and delete its saved tokens.
    owner      store           owner      Sign in to the owner pages.
    package    grants          package    Create, list and revoke packages of several grants.
    stats      store           stats      Count the connections, streams and records of the store.
    log        store           log        Show which grants were used to read which streams.
    model      model          model      Install or show the model for search by meaning.
    vectors    vectors         vectors    Build the vectors for search by meaning.
    papers     papers          papers     Search and read papers.
    serve      serve           serve      Serve records and papers over HTTP.
    config     config          config     Show the effective settings.
    doctor     doctor          doctor     Check the setup and report failures with their fixes.
    connect    connect         connect    Set up an MCP client.
    stdio      stdio           stdio      Serve MCP on standard input and output.
    completion completion      completion Print the completion script for a shell.
    demo       demo            demo       Create a store with demo data.
"""
#: Commands that run despite a faulty configuration file, to explain it.
UNCONFIGURED = ("config", "doctor", "completion")
COMMANDS = [Deferred(*row.split(None, 3)) for row in TABLE.strip().splitlines()]


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="rung")
@click.pass_context
def rung(context: click.Context) -> None:
    """Search and read records and papers, and serve them over MCP and REST."""
    if context.invoked_subcommand not in (None, *UNCONFIGURED):
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
