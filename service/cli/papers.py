"""`rung papers`: runs the paper operations in a shell, on a snapshot on this machine.

The commands are built from the operations. A paper's text goes to stdout; its position and the next
calls go to stderr, so that output can be piped. The library is imported when a snapshot is opened,
because help and completion need none.
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evidence import papers_wire
from evidence.cached import cached_property
from evidence.model import Continuation
from evidence.limits import CONTRACT
from evidence.papers import SOURCE, PaperText
from renderers.rendering import Context
from service.cli import output
from service.cli.commands import FORMS, Entry, Spelling, Words, form_options, report_errors
from service.cli.source import PATH, explicit_words
from service.operations.base import PaperOperation, PaperSession, run_bounded
from service.operations import paper_links as links
from service.operations.papers import PAPER_OPERATIONS
from service.ports.papers import SourceRead

if TYPE_CHECKING:
    from service.papers.snapshot_library import Papers

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
DB = "The path of the snapshot. Also read from RUNG_PAPERS_DB."
ASSETS = "The directory or URL of the snapshot's static files. Also read from RUNG_PAPERS_ASSETS."


class Shelf:
    """The snapshot of a command, opened on first use, because help needs none."""

    def __init__(self, db: Path | None, assets: str | None, words: tuple[str, ...]) -> None:
        self._db, self._assets = db, assets
        self.spell = Spelling(GROUP, ENTRIES, words)

    @property
    def db(self) -> Path:
        if self._db is None:
            raise click.UsageError("No snapshot was given. Name one with --db or RUNG_PAPERS_DB.")
        return self._db

    @cached_property
    def snapshot(self) -> "Papers":
        from service.papers.snapshot_library import Papers

        return Papers(self.db, self._assets)


def snapshot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that name a snapshot; the command receives it as a `Shelf`."""

    @click.option("--db", type=PATH, envvar="RUNG_PAPERS_DB", help=DB)
    @click.option("--assets", envvar="RUNG_PAPERS_ASSETS", help=ASSETS)
    @click.pass_context
    @wraps(command)
    def taking(
        context: click.Context, /, db: Path | None, assets: str | None, **parameters: Any
    ) -> Any:
        shelf = Shelf(db, assets, explicit_words(context, "db", "assets"))
        return context.invoke(command, shelf, **parameters)

    return taking


@click.group()
def papers() -> None:
    """Search and read the papers of a deepresearch-flow snapshot."""


def _command(entry: Entry[PaperOperation[Any, Any]]) -> click.Command:
    """The command of an operation: all arguments except the positional one are options."""
    operation = entry.operation

    @snapshot_options
    def run(shelf: Shelf, /, *, form: str | None, **options: Any) -> None:
        library, arguments = shelf.snapshot, dict[str, Any]()
        with report_errors(shelf.spell, operation, arguments):
            arguments |= entry.arguments_of(options)
            session = PaperSession(library.open())
            result = run_bounded(operation, session, entry.load(arguments))
            if form == "json":
                address = links.href(Continuation(operation.name, arguments, "self"))
                output.json(links.body(papers_wire.body(result, links.as_links), address))
                return
            context = Context(fence_key=session.fence_key, spell=shelf.spell)
            text, *beside = operation.render(result, context).blocks
            if form is None and output.on_terminal() and not isinstance(result, PaperText):
                from service.cli import screen  # a library that pipes do not need

                screen.show(result, text, context)
                return
            output.text(text)
            for block in beside:
                output.say(block)

    forms = form_options({name: FORMS[name] for name in ("plain", "json")})
    short, reword = f"{operation.title}.", Spelling(GROUP, ENTRIES).with_commands
    kind = Words if entry.joined else click.Command
    params = [*entry.params(reword), *forms]
    about = {"help": reword(entry.help), "short_help": short}
    return click.command(entry.name, kind, params=params, **about)(run)


for _entry in ENTRIES:
    papers.add_command(_command(_entry))


@papers.command()
@click.argument("paper_id")
@click.option("--lang", help="Print the translation into this language instead of the source.")
@snapshot_options
def source(shelf: Shelf, paper_id: str, lang: str | None) -> None:
    """Print the whole Markdown text of a paper of any length."""
    library = shelf.snapshot
    with report_errors(shelf.spell, OPERATIONS[SOURCE], {"paper_id": paper_id}):
        session, offset, total = library.open(), 0, 1
        while offset < total:
            size = CONTRACT.source_chars_max
            window = session.source(SourceRead(paper_id, lang, size, offset))
            output.text(window.text, newline=False)
            offset, total = window.end, window.total


@papers.command()
@click.argument("new", type=PATH)
@snapshot_options
def swap(shelf: Shelf, new: Path) -> None:
    """Replace the snapshot at --db, even while a server uses it.

    The command first checks NEW, the new snapshot. The command replaces only the snapshot file, so
    copy new texts into the directory with the static files first. A running server detects the new
    snapshot on its next request and opens it in the background.
    """
    from service.papers.swap import swap as install

    with report_errors(shelf.spell):
        installed = install(new, shelf.db)
    click.echo(f"snapshot {installed.build_id} papers {installed.papers}")
