"""Answers for a person at a terminal: tables and marks, as wide as it is, with every id whole.

Record text is escaped before it comes here or as it does: nothing in it reaches the terminal raw.
`NO_COLOR` is respected.
"""

import re
from collections.abc import Sequence
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evidence.model import Buckets, Hit, RecordPage, SearchPage
from evidence.text import clip, escape
from renderers import aggregate, records, search_lines
from renderers.rendering import Context

LEAST_COLUMN = 12
GAP = 2
MOST_CELL = 400
_MARK = re.compile("<mark>(.*?)</mark>", re.DOTALL)


def show(reading: Any, text: str, context: Context) -> None:
    """A reading on the terminal; `text` is what a pipe would get."""
    console = Console(highlight=False, markup=False, emoji=False)
    header, _, rest = text.partition("\n")
    _line(console, header, "dim")
    if isinstance(reading, RecordPage) and _fits(reading, console.width):
        _records(console, reading, context)
    elif isinstance(reading, SearchPage):
        _hits(console, reading, context)
    elif isinstance(reading, Buckets) and reading.groups:
        _groups(console, reading)
    elif rest:
        _line(console, rest)


def _line(console: Console, text: str, style: str = "") -> None:
    """Text on lines that only the terminal breaks: a command can be copied whole."""
    console.print(Text(text, style=style), soft_wrap=True)


def _fits(page: RecordPage, width: int) -> bool:
    """Whether the ids leave room for anything beside them."""
    longest = max((cell_len(item.id) for item in page.records), default=0)
    return bool(page.records) and longest + GAP + LEAST_COLUMN <= width


def _records(console: Console, page: RecordPage, context: Context) -> None:
    named = dict.fromkeys(name for item in page.records for name in item.data)
    told = [name for name in named if not _repeats(page, name)]
    longest = max(cell_len(item.id) for item in page.records)
    room = console.width - longest - GAP
    shown = told[: max(1, room // (LEAST_COLUMN + GAP))]
    columns = [_column(page, name) for name in shown]
    needs = [max(map(cell_len, column)) for column in columns]
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="bold")
    table.add_column("id", no_wrap=True, width=longest, style="cyan")
    for column, width in zip(columns, _widths(needs, room - GAP * len(columns))):
        table.add_column(Text(column[0]), no_wrap=True, overflow="ellipsis", width=width)
    for number, item in enumerate(page.records, start=1):
        cells = [Text(column[number]) for column in columns]
        table.add_row(Text(item.id), *cells, style="strike" if item.deleted else None)
    console.print(table)
    if len(shown) < len(told):
        left = ", ".join(escape(name)[0] for name in told[len(shown) :])
        _line(
            console, f"not shown for want of room: {left}; --fields chooses, --json has all", "dim"
        )
    for item in page.records:
        for read in records.reads(item, context):
            _line(console, f"{item.id}{read}", "dim")
    for line in records.footer(page, context):
        _line(console, line)


def _repeats(page: RecordPage, name: str) -> bool:
    """Whether a field says what the id says already."""
    return all(item.data.get(name) in (item.ref.record_id, None) for item in page.records)


def _column(page: RecordPage, name: str) -> list[str]:
    """The name of a field and its values, each on one line."""
    return [_plain(name), *(_cell(item.data.get(name)) for item in page.records)]


def _widths(needs: Sequence[int], room: int) -> list[int]:
    """Room for each column: what it needs, or an equal share of what the others leave."""
    widths = [0] * len(needs)
    by_need = sorted(range(len(needs)), key=lambda number: needs[number])
    for place, number in enumerate(by_need):
        widths[number] = min(needs[number], room // (len(needs) - place))
        room -= widths[number]
    return widths


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict) and isinstance(value.get("preview_text"), str):
        value = f"{value['preview_text']}…"
    return _plain(value if isinstance(value, str) else orjson.dumps(value).decode())


def _plain(text: str) -> str:
    """Text on one line, as far as any column reaches."""
    return escape(" ".join(clip(text, MOST_CELL).split()))[0]


def _hits(console: Console, page: SearchPage, context: Context) -> None:
    for number, hit in enumerate(page.hits, start=1):
        _hit(console, number, hit, context)
    for line in search_lines.footer(page, context):
        _line(console, line)


def _hit(console: Console, number: int, hit: Hit, context: Context) -> None:
    told = search_lines.line(number, hit)
    before, _, after = told.partition(hit.id)
    line = Text(before).append(hit.id, style="bold cyan").append(after)
    console.print()
    console.print(line, soft_wrap=True)
    for match in hit.matches:
        console.print(_marked(match.shown))
        _line(console, search_lines.evidence_line(hit, match, context), "dim")
    if not hit.matches:
        _line(console, f"  no proven window; {context.step(hit.fetch)}", "dim")


def _marked(shown: str) -> Text:
    """A window with its marks as colour, and as they are where there is no colour."""
    found, place = Text(), 0
    for mark in _MARK.finditer(shown):
        found.append(shown[place : mark.start()])
        found.append(mark[1], style="bold reverse")
        place = mark.end()
    found.append(shown[place:])
    return found


def _groups(console: Console, found: Buckets) -> None:
    groups: Sequence[dict[str, Any]] = found.groups or ()
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="bold")
    table.add_column(escape(found.group_by or "key")[0], overflow="fold")
    table.add_column("count", justify="right")
    for group in groups:
        table.add_row(Text(aggregate.key(group.get("key"))), str(group.get("count")))
    console.print(table)
    for line in aggregate.footer(found):
        _line(console, line)
