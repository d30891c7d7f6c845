"""Shows answers on a terminal: tables and highlights that fit its width, with every id in full.

Record text is always escaped. `NO_COLOR` is respected.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import singledispatch
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from evidence.errors import EvidenceError
from evidence.hits import SearchPage
from evidence.model import Buckets
from evidence.papers import Paper, PaperFacets, PaperFinds, PaperOutline, PaperPage
from evidence.records import Record, RecordPage
from evidence.schema import Schema, StreamSchema
from evidence.text import clip, escape
from evidence.values import Preview, as_json
from renderers import records, search
from renderers.rendering import Context
from service.cli.output import counted
from service.operations.base import Session
from service.ports import SchemaQuery

SHORT_CHARS = 24
LEADING = ("primary-title", "actor")
TEXT = "primary-text"


def order(page: RecordPage, session: Session) -> list[str]:
    """The fields of a page in display order.

    Requested fields keep the order of the request. Otherwise time, title and actor come first, then
    short words and numbers, references to other records, long values, and the text.
    """
    stream = None if page.args.get("fields") else _stream(page, session)
    roles = {field.role: name for name, field in stream.fields.items()} if stream else {}
    cursor = stream.cursor_field if stream else None
    time = str(page.args.get("sort") or "").removeprefix("-") or cursor or roles.get("event-time")
    first = page.args.get("fields") or [time, *map(roles.get, LEADING)]

    def rank(name: str) -> int:
        if name in first:
            return list(first).index(name)
        values = [item.data.get(name) for item in page.records]
        short = 0 if all(map(_is_short, values)) else 2
        return len(first) + (3 if name == roles.get(TEXT) else short or name.endswith("_id"))

    return sorted(dict.fromkeys(name for item in page.records for name in item.data), key=rank)


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= SHORT_CHARS
    return value is None or isinstance(value, (bool, int, float))


def _stream(page: RecordPage, session: Session) -> StreamSchema | None:
    """The schema of the stream, if the source returns one."""
    query = SchemaQuery(stream=page.stream, connection_id=page.args.get("connection_id"))
    try:
        rows = session.rs.schema(query).value.rows
    except EvidenceError:
        return None
    return next((row.stream for row in rows if row.stream.name == page.stream), None)


#: If ids leave less space than this, cells go below them.
LEAST_BESIDE = 40
#: The minimum width for a long value.
LONG_WIDTH = 24
GAP = 2
MOST_CELL = 400
#: Deeper than our own lines, so that no line of a record looks like one of them.
WINDOW_INDENT = 4
_MARK = re.compile("<mark>(.*?)</mark>", re.DOTALL)
#: Record text in the text of a tool: nothing in it can end its fence.
_FENCED = re.compile(r"^<<<(\w+) untrusted record text\n(.*?)\n\1>>>$", re.DOTALL | re.MULTILINE)


def show(result: Any, text: str, context: Context, session: Session | None = None) -> None:
    """Shows a result on the terminal; `text` is the output for a pipe."""
    console = Console(highlight=False, markup=False, emoji=False)
    _line(console, _plain(sentence(result)), "dim")
    if isinstance(result, RecordPage) and result.records and session is not None:
        _records(console, result, context, order(result, session))
    elif isinstance(result, SearchPage):
        _hits(console, result, context)
    elif isinstance(result, Buckets) and result.groups:
        _groups(console, result, context)
    else:
        _text(console, text.partition("\n")[2])


def _text(console: Console, text: str) -> None:
    """The text of a tool: our lines unchanged, windows without their fence."""
    position = 0
    for window in _FENCED.finditer(text):
        _line(console, text[position : window.start()].removesuffix("\n"))
        _window(console, window[2])
        position = window.end() + 1
    if rest := text[position:]:
        _line(console, rest)


def _line(console: Console, text: str, style: str = "") -> None:
    """Text that only the terminal wraps, so that a command can be copied whole."""
    console.print(Text(text, style=style), soft_wrap=True)


def _records(console: Console, page: RecordPage, context: Context, fields: Sequence[str]) -> None:
    """A table; if the ids leave too little space, each id has its own line.

    Fields that repeat the id are left out.
    """
    columns = [
        name
        for name in fields
        if any(item.data.get(name) not in (item.ref.record_id, None) for item in page.records)
    ]
    longest = max(cell_len(item.id) for item in page.records)
    beside = console.width - longest - GAP >= LEAST_BESIDE
    cells = {name: [_cell(item, name) for item in page.records] for name in columns}
    visible = _fitting(cells, console.width - GAP - (longest if beside else 0))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    if beside:
        table.add_column("id", style="cyan", width=longest)
    for name in visible:
        table.add_column(Text(_plain(name), no_wrap=True), overflow="ellipsis")
    for number, item in enumerate(page.records):
        row = [Text(cells[name][number], no_wrap=True) for name in visible]
        table.add_row(*([item.id] if beside else []), *row, style="strike" if item.deleted else "")
    if beside:
        console.print(table)
    else:
        ids = ["id", *(item.id for item in page.records)]
        lines = [*console.render_lines(table, pad=False), *([] for _ in ids)]
        for id, below in zip(ids, lines):
            _line(console, id, "cyan")
            console.print(Segments([Segment(" " * GAP), *below, Segment.line()]))
    hidden = [escape(name)[0] for name in columns if name not in visible]
    if hidden:
        advice = "select columns with --fields, or use --json"
        _line(console, f"hidden to fit the terminal: {', '.join(hidden)}; {advice}", "dim")
    for item in page.records:
        for read in records.reads(item, context):
            _line(console, f"{item.id}{read}", "dim")
    for line in records.footer(page, page.continuations(), context):
        _line(console, line)


def _fitting(cells: Mapping[str, Sequence[str]], room: int) -> list[str]:
    """The columns that fit, at least the first; wide ones can be truncated."""
    columns: list[str] = []
    for name, column in cells.items():
        need = min(max(map(cell_len, [_plain(name), *column])), LONG_WIDTH) + GAP
        if need <= room or not columns:
            columns.append(name)
            room -= need
    return columns


def _cell(item: Record, name: str) -> str:
    value = item.data.get(name)
    if value is None:
        return ""
    if isinstance(value, Preview):
        value = f"{value.text}…"
    value = as_json(value, item.ref, name)
    return _plain(value if isinstance(value, str) else orjson.dumps(value).decode())


def _plain(text: str) -> str:
    """Text on one line, no longer than any column."""
    return escape(" ".join(clip(text, MOST_CELL).split()))[0]


def _hits(console: Console, page: SearchPage, context: Context) -> None:
    for number, hit in page.numbered():
        heading = search.line(number, replace(hit, authored_at=_local(hit.authored_at)))
        before, _, after = heading.partition(hit.id)
        console.print()
        console.print(Text.assemble(before, (hit.id, "bold cyan"), after), soft_wrap=True)
        for match in hit.matches:
            _window(console, match.shown)
            _line(console, search.evidence_line(match, context), "dim")
        if not hit.matches:
            for line in search.windows(number, hit, context):
                _line(console, line, "dim")
    for line in search.footer(page, page.continuations(), context):
        _line(console, line)


def _local(time: str | None) -> str | None:
    """A time in the time zone of this machine; a date or other text unchanged."""
    try:
        at = datetime.fromisoformat(time or "")
    except ValueError:
        return time
    if at.tzinfo is None or not (at.hour or at.minute or at.second):
        return time
    local = at.astimezone()
    return time if local.utcoffset() == at.utcoffset() else local.isoformat(timespec="minutes")


def _window(console: Console, marked: str) -> None:
    """A window with its marks as colour; without colour, the marks stay."""
    text = Text()
    for number, part in enumerate(_MARK.split(marked)):
        text.append(part, style="bold reverse" if number % 2 else None)
    console.print(Padding(text, (0, 0, 0, WINDOW_INDENT), expand=False))


def _groups(console: Console, counts: Buckets, context: Context) -> None:
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="bold")
    name = counts.group_by or counts.group_by_time or "key"
    table.add_column(Text(_plain(name)), overflow="fold")
    for column in counts.group_members[1:]:
        table.add_column(column, justify="right")
    for group in counts.groups or ():
        figures = [records.group_key(group.count), records.group_value(group.value)]
        cells = map(Text, [records.group_key(group.key), *figures])
        table.add_row(*[cell for cell, _ in zip(cells, counts.group_members)])
    console.print(table)
    for line in records.groups_footer(counts, context):
        _line(console, line)


METRICS = {
    "sum": "Sum of",
    "avg": "Average of",
    "min": "Minimum of",
    "max": "Maximum of",
    "count_distinct": "Distinct values of",
}


@singledispatch
def sentence(result: Any) -> str:
    """Describes an answer and its size in a sentence. Raises `TypeError` for other values."""
    raise TypeError(f"{type(result).__name__} has no sentence")


@sentence.register
def _(page: SearchPage) -> str:
    counts, text = page.counts, f"{len(page.proven)} shown"
    if counts is not None:
        least = "" if counts.exact else "At least "
        text = least + _matches("record", counts.some, counts.all, len(page.proven))
    if related := len(page.hits) - len(page.proven):
        text += f", and {counted(related, 'related record')} without any of the words"
    missed = page.recall.get("complete", True) is False
    return f"{text}{', but not all records were searched' * missed}."


@sentence.register
def _(page: PaperPage) -> str:
    if page.counts is None:
        return f"{counted(len(page.hits), 'paper')} shown."
    return f"{_matches('paper', page.counts.some, page.counts.all, len(page.hits))}."


def _matches(noun: str, some: int, whole: int | None, visible: int) -> str:
    """The number of matches, of those with every word, and of those shown."""
    every = f", {whole:,} with every word" if whole not in (None, some) else ""
    verb = "matches" if some == 1 else "match"
    return f"{counted(some, noun)} {verb}{every}{_cut_note(visible, some)}"


@sentence.register
def _(page: RecordPage) -> str:
    noun = "change" if "changes_since" in page.args else "record"
    visible, total = len(page.records), page.count.value
    if total is not None:
        return f"{counted(total, noun)} of {page.stream}{_cut_note(visible, total)}."
    return f"{counted(visible, noun)} of {page.stream}{', and more follow' * page.has_more}."


@sentence.register
def _(buckets: Buckets) -> str:
    number = buckets.filtered_record_count
    of = buckets.stream if number is None else f"{counted(number, 'record')} of {buckets.stream}"
    if buckets.groups is not None:
        by = buckets.group_by or f"{buckets.granularity} of {buckets.group_by_time}"
        total = len(buckets.groups) if buckets.group_count is None else buckets.group_count
        if buckets.metric != "count":
            of = f"{METRICS[buckets.metric]} {buckets.field}: {of}"
        return f"{of} in {counted(total, 'group')} by {by}{_cut_note(len(buckets.groups), total)}."
    if buckets.metric == "count":
        return f"Records of {buckets.stream}: {records.group_key(buckets.value)}."
    return f"{METRICS[buckets.metric]} {buckets.field} in {of}: {records.group_key(buckets.value)}"


@sentence.register
def _(schema: Schema) -> str:
    if stream := schema.args.get("stream"):
        return f"The stream {stream}."
    connectors = counted(len(schema.connectors), "connector")
    return f"{counted(len(schema.rows), 'stream')} of {connectors}."


@sentence.register
def _(paper: Paper) -> str:
    return f"A paper from {paper.year}." if paper.year else "A paper."


@sentence.register
def _(finds: PaperFinds) -> str:
    rest = "" if finds.searched_to >= finds.total else ", with more text to search"
    return f"{counted(len(finds.matches), 'match')} in the text{rest}."


@sentence.register
def _(outline: PaperOutline) -> str:
    return f"{counted(len(outline.headings), 'heading')} in {outline.total:,} characters."


@sentence.register
def _(facets: PaperFacets) -> str:
    note = _cut_note(len(facets.values), facets.total)
    return f"{counted(facets.total, 'value')} of {facets.category}{note}."


def _cut_note(visible: int, total: int) -> str:
    return f", {visible} shown" if visible < total else ""
