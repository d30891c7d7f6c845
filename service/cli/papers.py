"""`rung papers`: the papers operations at a shell, over a snapshot on this machine.

The commands are made from the operations. A paper's text goes to stdout; its
position and the next calls go to stderr, so that output can be piped. The library is imported
when a snapshot is opened, because help and completion need none.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from evidence.model import Continuation
from evidence.limits import CONTRACT
from evidence.papers import SOURCE
from renderers.rendering import Context
from service.cli import output
from service.cli.commands import Entry, Spelling, Words, report_errors
from service.operations.base import PaperOperation, PaperSession, run_bounded
from service.operations.papers import PAPER_OPERATIONS, links
from service.ports import TextRead

if TYPE_CHECKING:
    from service.papers.snapshot_library import Papers

COMMANDLINE = ParameterSource.COMMANDLINE
OPERATIONS = {operation.name: operation for operation in PAPER_OPERATIONS}
#: Commands that take any number of words.
SEARCHES = ("search", "keyword")
ENTRIES = tuple(
    Entry(name, OPERATIONS[operation], (positional,), positional if name in SEARCHES else None)
    for name, operation, positional in (
        ("search", "search_papers", "query"),
        ("keyword", "search_papers_by_keyword", "keyword"),
        ("show", "get_paper_metadata", "paper_id"),
        ("summary", "get_paper_summary", "paper_id"),
        ("read", "get_paper_source", "paper_id"),
        ("facets", "list_top_facets", "category"),
    )
)
GROUP = ("rung", "papers")


class Shelf:
    """The snapshot of a command, opened on first use, because help needs none."""

    def __init__(self, db: Path | None, assets: str | None, words: tuple[str, ...]) -> None:
        self._db, self._assets = db, assets
        self.spell = Spelling(GROUP, ENTRIES, words)

    @property
    def db(self) -> Path:
        if self._db is None:
            raise click.UsageError("No snapshot given. Name it with --db or RUNG_PAPERS_DB.")
        return self._db

    @cached_property
    def snapshot(self) -> "Papers":
        from service.papers.snapshot_library import Papers

        return Papers(self.db, self._assets)


def _options() -> list[click.Parameter]:
    """The options that name a snapshot."""
    path = click.Path(path_type=Path)
    about = "The snapshot. Also read from RUNG_PAPERS_DB."
    beside = "The directory or URL of its static files."
    return [
        click.Option(["--db"], type=path, envvar="RUNG_PAPERS_DB", help=about),
        click.Option(["--assets"], envvar="RUNG_PAPERS_ASSETS", help=beside),
    ]


class OnSnapshot(click.Command):
    """A command that also accepts the options of its group; its own take precedence."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += _options()

    def invoke(self, context: click.Context) -> Any:
        given: dict[str, Any] = {}
        for one in filter(None, (context.parent, context)):
            for name in ("db", "assets"):
                if one.get_parameter_source(name) is COMMANDLINE or name not in given:
                    given[name] = one.params[name], one.get_parameter_source(name)
        del context.params["db"], context.params["assets"]
        words = tuple(
            word
            for name, (value, place) in given.items()
            if place is COMMANDLINE
            for word in (f"--{name}", str(value))
        )
        context.obj = Shelf(given["db"][0], given["assets"][0], words)
        return super().invoke(context)


class WordsOnSnapshot(OnSnapshot, Words):
    """The same for a command that accepts any number of words."""


@click.group(params=_options())
def papers(db: Path | None, assets: str | None) -> None:
    """Search and read papers of a snapshot."""


def _command(entry: Entry[PaperOperation]) -> click.Command:
    """The command of an operation: its arguments are options, all but the positional one."""
    operation = entry.operation

    @click.pass_obj
    def run(shelf: Shelf, /, *, as_json: bool, **options: Any) -> None:
        library, given = shelf.snapshot, dict[str, Any]()
        with report_errors(shelf.spell, operation, given):
            given |= entry.given(options)
            session = PaperSession(library.open())
            reading = run_bounded(operation, session, entry.load(given))
            if as_json:
                here = links.href(Continuation(operation.name, given, "self"))
                output.json(links.body(operation.wire(reading, links.as_links), here))
                return
            context = Context(fence_key=session.fence_key, spell=shelf.spell)
            text, *beside = operation.render(reading, context).blocks
            output.text(text)
            for block in beside:
                output.say(block)

    flag = click.Option(["--json", "as_json"], is_flag=True, help="Print the REST body.")
    short, reword = f"{operation.title}.", Spelling(GROUP, ENTRIES).with_commands
    kind = WordsOnSnapshot if entry.joined else OnSnapshot
    return kind(
        entry.name,
        params=[*entry.params(reword), flag],
        callback=run,
        help=reword(entry.help),
        short_help=short,
    )


for _entry in ENTRIES:
    papers.add_command(_command(_entry))


@papers.command(cls=OnSnapshot)
@click.argument("paper_id")
@click.option("--lang", help="A translation instead of the source.")
@click.pass_obj
def source(shelf: Shelf, paper_id: str, lang: str | None) -> None:
    """Print the whole Markdown of a paper of any length."""
    library = shelf.snapshot
    with report_errors(shelf.spell, OPERATIONS[SOURCE], {"paper_id": paper_id}):
        session, offset, total = library.open(), 0, 1
        while offset < total:
            size = CONTRACT.source_chars_max
            window = session.source(TextRead(paper_id, None, lang, offset, size))
            output.text(window.text, newline=False)
            offset, total = window.end, window.total


@papers.command(cls=OnSnapshot)
@click.argument("new", type=click.Path(path_type=Path))
@click.pass_obj
def swap(shelf: Shelf, new: Path) -> None:
    """Replace the snapshot --db with NEW while it is served.

    Checks NEW first. A running service detects the change with its next request and opens it in
    the background.
    """
    from service.papers.swap import swap as install

    with report_errors(shelf.spell):
        installed = install(new, shelf.db)
    click.echo(f"snapshot {installed.build_id} papers {installed.papers}")
