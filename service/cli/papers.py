"""`rung papers`: the papers operations at a shell, over a snapshot on this machine.

The commands are made from the operations. Text goes to stdout, and what stands beside a paper's
own text (where it lies, what comes next) to stderr, so that output can be piped.
"""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import orjson

from evidence.continuation import Continuation
from evidence.errors import EvidenceError
from evidence.limits import CONTRACT
from evidence.papers import SOURCE
from renderers import failure
from renderers.rendering import Context
from service.operations.arguments import Flag, Number
from service.operations.base import PaperOperation, PaperSession, retries, run_bounded
from service.operations.papers import PAPER_OPERATIONS, links
from service.upstreams.papers.snapshot_library import Papers
from service.upstreams.papers.swap import swap as install

#: Command, operation, and the argument that needs no option name.
COMMANDS = (
    ("search", "search_papers", "query"),
    ("keyword", "search_papers_by_keyword", "keyword"),
    ("show", "get_paper_metadata", "paper_id"),
    ("summary", "get_paper_summary", "paper_id"),
    ("read", "get_paper_source", "paper_id"),
    ("facets", "list_top_facets", "category"),
)
OPERATIONS = {operation.name: operation for operation in PAPER_OPERATIONS}
SPELLED = {operation: (command, positional) for command, operation, positional in COMMANDS}


@click.group()
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    envvar="RUNG_PAPERS_DB",
    required=True,
    help="The snapshot; RUNG_PAPERS_DB otherwise.",
)
@click.option("--assets", envvar="RUNG_PAPERS_ASSETS", help="Its static files, if elsewhere.")
@click.pass_context
def papers(context: click.Context, db: Path, assets: str | None) -> None:
    """Search and read the papers of a snapshot."""
    context.obj = Papers(db, assets)


def spell(continuation: Continuation) -> str:
    """A next call as a shell command."""
    command, positional = SPELLED[continuation.operation]
    given = dict(continuation.args)
    named = str(given.pop(positional))
    dashed = named.startswith("-")  # would be taken for an option
    words = ["rung", "papers", command, *([] if dashed else [named])]
    for name, value in given.items():
        words.append(f"--{name.replace('_', '-')}")
        words += [] if value is True else [str(value)]
    return shlex.join([*words, *(["--", named] if dashed else [])])


@contextmanager
def _teaching(operation: PaperOperation | None = None, **given: Any) -> Iterator[None]:
    """Prints what went wrong, what to do and what to call instead on stderr; exits with 1."""
    try:
        yield
    except EvidenceError as error:
        if operation is not None:
            error.calls += retries(error, operation, given)
        click.echo(failure.render_lines(error, spell), err=True)
        sys.exit(1)


def _command(name: str, operation: PaperOperation, positional: str) -> click.Command:
    """The command of an operation: its arguments are options, all but the positional one."""

    @click.pass_obj
    def run(library: Papers, /, *, as_json: bool, **options: Any) -> None:
        given = {
            key: value for key, value in options.items() if value is not None and value is not False
        }
        with _teaching(operation, **given):
            session = PaperSession(library.open())
            reading = run_bounded(operation, session, operation.load(given))
            if as_json:
                here = links.href(Continuation(operation.name, given, "self"))
                wired = operation.wire(reading, links.as_links)
                click.echo(orjson.dumps(links.body(wired, here), option=orjson.OPT_INDENT_2))
                return
            context = Context(fence_key=session.fence_key, spell=spell)
            text, *beside = operation.render(reading, context).blocks
            click.echo(text)
            for block in beside:
                click.echo(block, err=True)

    params: list[click.Parameter] = [
        (
            click.Argument([key])
            if key == positional
            else click.Option([f"--{key.replace('_', '-')}"], **_typed(field))
        )
        for key, field in operation.arguments.fields.items()
    ]
    flag = click.Option(["--json", "as_json"], is_flag=True, help="The body REST gives.")
    short = f"{operation.title}."
    return click.Command(
        name, params=[*params, flag], callback=run, help=operation.description, short_help=short
    )


def _typed(field: Any) -> dict[str, Any]:
    """How an option takes the values of an argument; bounds are checked by the operation."""
    found: dict[str, Any] = {"help": field.metadata["description"]}
    if isinstance(field, Flag):
        return {**found, "is_flag": True}
    return {**found, "type": int if isinstance(field, Number) else str}


for _name, _operation, _positional in COMMANDS:
    papers.add_command(_command(_name, OPERATIONS[_operation], _positional))


@papers.command()
@click.argument("paper_id")
@click.option("--lang", help="A translation instead of the source.")
@click.pass_obj
def source(library: Papers, paper_id: str, lang: str | None) -> None:
    """Print the whole Markdown of a paper, however long it is."""
    with _teaching(OPERATIONS[SOURCE], paper_id=paper_id):
        for piece in _pieces(library, paper_id, lang):
            click.echo(piece, nl=False)


def _pieces(library: Papers, paper_id: str, lang: str | None) -> Iterator[str]:
    """A text in the largest windows there are."""
    session, offset = library.open(), 0
    while True:
        window = session.source(
            paper_id, lang=lang, offset=offset, max_chars=CONTRACT.source_chars_max
        )
        yield window.text
        if window.end >= window.total:
            return
        offset = window.end


@papers.command()
@click.argument("new", type=click.Path(path_type=Path))
@click.pass_context
def swap(context: click.Context, new: Path) -> None:
    """Put the snapshot NEW in the place of --db, while it is served.

    NEW is checked first; a running service sees it with its next request and opens it
    in the background.
    """
    with _teaching():
        found = install(new, context.parent.params["db"] if context.parent else new)
    click.echo(f"snapshot {found.build_id} papers {found.papers}")
