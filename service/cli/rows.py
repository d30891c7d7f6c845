"""Turns answers into rows for output: body objects, table cells and notes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evidence.model import Continuation, members
from evidence.records import RecordPage
from service.pdpp.decode import records, search
from service.pdpp.decode.records import decode_buckets
from evidence.text import unmark
from renderers.rendering import Spell, step, warning

#: The columns of a table other than the fields of a record.
RECORD_COLUMNS = ("id", "connection_id", "emitted_at")
HIT_COLUMNS = tuple("id title at connection_id source field_path match_start_chars text".split())


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an answer.

    `objects` are those of the body, `cells` have the same values with flat names.
    """

    objects: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    cells: Sequence[Mapping[str, Any]]
    warnings: Sequence[dict[str, Any]]
    following: Sequence[Continuation]

    def beside(self, spell: Spell) -> list[str]:
        """Warnings and next calls."""
        return [
            *map(warning, self.warnings),
            *(step(continuation, spell) for continuation in self.following),
        ]


def _records(body: dict[str, Any], args: dict[str, Any]) -> Rows:
    page = replace(records.decode_page(body, args["stream"]), args=args)
    cells = [
        {
            "id": item.id,
            "connection_id": item.source.connection_id,
            "emitted_at": item.emitted_at,
            **({"deleted": True} if item.deleted else {}),
            **{column(name): value for name, value in item.shown.items()},
        }
        for item in page.records
    ]
    names = [*RECORD_COLUMNS, *_names(page)]
    return Rows(body.get("data", []), names, cells, page.warnings, page.continuations())


def _names(page: RecordPage) -> list[str]:
    """The columns of the fields, in order of first appearance."""
    fields = dict.fromkeys(column(name) for item in page.records for name in item.data)
    return [*(["deleted"] if any(item.deleted for item in page.records) else []), *fields]


def column(name: str) -> str:
    """The column of a field, renamed if it would collide with ours."""
    return f"data.{name}" if name in (*RECORD_COLUMNS, "deleted") else name


def _hits(body: dict[str, Any], args: dict[str, Any]) -> Rows:
    page = replace(search.read(body), args=args)
    cells = []
    for hit in page.hits:
        match = hit.matches[0] if hit.matches else None
        window = (
            (match.field_path, match.match_start, unmark(match.shown)) if match else (None,) * 3
        )
        if hit.related is not None:
            window = (hit.related.field_path, None, hit.related.begins)
        row = (hit.id, hit.heading, hit.at, hit.source.connection_id, hit.source.label, *window)
        cells.append(dict(zip(HIT_COLUMNS, row)))
    return Rows(body.get("data", []), HIT_COLUMNS, cells, page.warnings, page.continuations())


def _groups(body: dict[str, Any], args: dict[str, Any]) -> Rows:
    buckets = decode_buckets(body, stream=args["stream"], metric=args["metric"])
    buckets = replace(buckets, args=args)
    if buckets.groups is None:
        value = {"metric": buckets.metric, "value": buckets.value}
        return Rows([value], tuple(value), [value], buckets.warnings, ())
    columns = buckets.group_members
    groups = [members(group, *columns) for group in buckets.groups]
    return Rows(groups, columns, groups, buckets.warnings, buckets.continuations())


#: The rows of an answer to an operation, from its body and arguments.
READERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Rows]] = {
    "query_records": _records,
    "search": _hits,
    "aggregate": _groups,
}
