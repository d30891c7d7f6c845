"""The commands that read records: `rung schema`, `query`, `search`, `fetch` and the others.

The commands are built from the operations. In a pipe and with `--plain` they print the answer of
the tools, with next calls as commands; the text of `fetch` and `read` goes to stdout and the rest
to stderr. On a terminal they use the layout of `screen`. `--json` prints the REST body.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import orjson

from evidence import handles, pointer
from evidence.errors import InvalidRequest
from evidence.hits import SearchPage
from evidence.model import Continuation
from evidence.records import Document, FieldRead
from renderers import document, field
from renderers.rendering import Context
from service import settings
from service.addresses import rung_url
from service.cli import config, output, rows
from service.cli.commands import Entry, FORMS, Spelling, Words, form_options, report_errors
from service.cli.source import Source, source_options, url_option
from service.operations import OPERATIONS, bodies
from service.operations.base import RecordOperation, Session, run_bounded

_BY_NAME = {operation.name: operation for operation in OPERATIONS}

ENTRIES: tuple[Entry[RecordOperation[Any, Any]], ...] = (
    Entry("schema", _BY_NAME["schema"], ("stream",)),
    Entry("query", _BY_NAME["query_records"], ("stream",)),
    Entry("aggregate", _BY_NAME["aggregate"], ("stream", "metric"), last="field"),
    Entry("search", _BY_NAME["search"], ("query",), joined="query"),
    Entry("fetch", _BY_NAME["fetch"], ("id",)),
    Entry("read", _BY_NAME["read_record_field"], ("id", "field_path")),
)

#: Output formats for rows only.
LISTS = ("jsonl", "csv")
RAW = "Do not escape formulas or control characters in CSV."


def command(entry: Entry[RecordOperation[Any, Any]]) -> click.Command:
    """The command of an operation: all arguments except the positional ones are options."""

    @source_options
    def run(*, source: Source, form: str | None, raw: bool = False, **options: Any) -> None:
        from service.cli.opening import open_session

        spelling, operation = Spelling(("rung",), ENTRIES, source.words), entry.operation
        arguments: dict[str, Any] = {}
        as_json, server = form == "json", source.server
        with report_errors(spelling, operation, arguments, as_json=as_json, server=server):
            arguments |= entry.arguments_of(options)
            if "id" in arguments:
                arguments["id"] = id_of(arguments["id"])
            session = open_session(source)
            if entry.name == "read":
                arguments |= _primary_text(session, arguments)
            if form in (None, "plain"):
                result = run_bounded(operation, session, entry.load(arguments))
                _text(result, operation, session, spelling, plain=form == "plain")
                return
            address = bodies.address(operation, arguments)
            body = bodies.body(operation, session, operation.rest_defaults | arguments, address)
            if form == "json":
                output.json(body)
            else:
                table = rows.READERS[operation.name](body, arguments)
                _table(table, operation.name, spelling, form, raw)

    has_rows = entry.operation.name in rows.READERS
    about = {name: _help(entry, name) for name in FORMS if name not in LISTS or has_rows}
    forms = form_options(about)
    if "csv" in about:
        forms.append(click.Option(["--raw"], is_flag=True, help=RAW))
    reword = Spelling(("rung",), ENTRIES).with_commands
    params = [*entry.params(reword), *forms]
    kind = Words if entry.joined else click.Command
    return click.command(entry.name, kind, params=params, help=reword(entry.help))(run)


def _primary_text(session: Session, arguments: dict[str, Any]) -> dict[str, Any]:
    """The path of the text of the record, if no field is named and the record has one."""
    if "field_path" in arguments or arguments["id"].startswith(handles.FIELD_WINDOW_SCHEME):
        return {}
    ref = handles.parse(arguments["id"], connection_id=arguments.get("connection_id"))
    name = session.rs.record(ref).value.text_field
    return {"field_path": pointer.path_of(name)} if name else {}


def _help(entry: Entry[RecordOperation[Any, Any]], form: str) -> str:
    """The help of an output option, with the defaults of REST."""
    defaults = entry.operation.rest_defaults.items() if form != "plain" else ()
    return FORMS[form] + "".join(
        f" With --{form}, --{name} defaults to {value}." for name, value in defaults
    )


def _text(
    result: Any,
    operation: RecordOperation[Any, Any],
    session: Session,
    spelling: Spelling,
    *,
    plain: bool,
) -> None:
    """The answer as text. `plain` is the form for a pipe."""
    served: dict[str, Any] = {"fence_key": session.fence_key, "base_url": session.base_url}
    context = Context(**served, spell=spelling, blob=spelling.blob)
    person = output.on_terminal() and not plain
    if isinstance(result, (Document, FieldRead)):  # the exact text; notes go to stderr
        output.text(result.text, newline=person and bool(result.text))
        if isinstance(result, Document):
            notes = document.about(result, context)
        else:
            notes = field.about(result, context)
        for line in notes:
            output.say(line)
        return
    (text,) = operation.render(result, context).blocks
    if person:
        from service.cli import screen  # a library that pipes do not need

        screen.show(result, text, context, session)
    else:
        output.text(text)
    if output.on_terminal() and isinstance(result, SearchPage):
        keep_ids(result)


def _table(table: rows.Rows, operation: str, spelling: Spelling, form: str, raw: bool) -> None:
    """Writes rows to stdout, and the next command, with the same format, to stderr."""
    if form == "jsonl":
        output.json_lines(table.objects)
    else:
        output.table(table.columns, table.cells, raw=raw)
    same_form = [f"--{form}", *(["--raw"] if raw else [])]

    def spell(continuation: Continuation) -> str:
        return spelling(continuation, *(same_form if continuation.operation == operation else []))

    for line in table.beside(spell):
        output.say(line)


schema, query, aggregate, search, fetch, read = map(command, ENTRIES)


@click.command("open")
@click.argument("id")
@url_option
def open_(url: str | None, id: str) -> None:
    """Open a record's page in a browser.

    ID is the id of a record, or the number of a hit in your last search on a terminal. The page is
    on the Rung server at --url or RUNG_URL, or else at the URL in the configuration file, or else
    at RUNG_PUBLIC_URL, or else at http://127.0.0.1:PORT.
    """
    with report_errors(Spelling(("rung",), ENTRIES, ())):
        ref = handles.parse(id_of(id))
        base = rung_url(url) if url else settings.load().base
    address = f"{base}/read/{quote(str(ref), safe='/:')}"
    click.echo(address)
    if output.on_terminal():
        click.launch(address)


def keep_ids(page: SearchPage) -> None:
    """Stores the ids of a page by their numbers; a later page adds its own."""
    ids = _saved_ids() if page.args.get("cursor") else {}
    ids |= {str(number): hit.id for number, hit in page.numbered()}
    path = _ids_path()
    with suppress(OSError):  # the home folder is not writable
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(ids))


def id_of(text: str) -> str:
    """The id for an argument; raises `InvalidRequest` for an unknown hit number."""
    if not (text.isascii() and text.isdigit()):
        return text
    hit_id = _saved_ids().get(str(int(text)))
    if hit_id is None:
        raise InvalidRequest(
            f"The last search in a terminal did not return a hit with the number {text}.",
            hint="Search again, or give the id of a record.",
        )
    return hit_id


def _saved_ids() -> dict[str, str]:
    with suppress(OSError, ValueError):
        document = orjson.loads(_ids_path().read_bytes())
        return {name: hit_id for name, hit_id in document.items() if isinstance(hit_id, str)}
    return {}


def _ids_path() -> Path:
    return config.path_of(settings.environment()).with_name("last-search.json")
