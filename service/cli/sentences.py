"""The first line of an answer for a person: what it is, in a sentence."""

from functools import singledispatch
from typing import Any

from evidence.hits import SearchPage
from evidence.model import Buckets
from evidence.papers import Paper, PaperFacets, PaperFinds, PaperOutline, PaperPage
from evidence.records import RecordPage
from evidence.schema import Schema
from renderers import aggregate
from service.cli.output import counted

METRICS = {
    "sum": "Sum of",
    "min": "Least",
    "max": "Greatest",
    "count_distinct": "Distinct values of",
}


@singledispatch
def sentence(reading: Any) -> str:
    """What an answer is and how much of it there is. Raises `TypeError` for other values."""
    raise TypeError(f"{type(reading).__name__} has no sentence")


@sentence.register
def _(page: SearchPage) -> str:
    counts, text = page.counts, f"{len(page.hits)} shown"
    if counts is not None:
        least = "" if counts.exact else "At least "
        text = least + _matches("record", counts.some, counts.all, len(page.hits))
    missed = page.recall.get("complete", True) is False
    return f"{text}{', not all records were searched' * missed}."


@sentence.register
def _(page: PaperPage) -> str:
    if page.counts is None:
        return f"{counted(len(page.hits), 'paper')} shown."
    return f"{_matches('paper', page.counts.some, page.counts.all, len(page.hits))}."


def _matches(noun: str, some: int, whole: int | None, shown: int) -> str:
    """How many match, how many of them with every word, and how many are shown."""
    every = f", {whole:,} with every word" if whole not in (None, some) else ""
    verb = "matches" if some == 1 else "match"
    return f"{counted(some, noun)} {verb}{every}{_shown(shown, some)}"


@sentence.register
def _(page: RecordPage) -> str:
    noun = "change" if "changes_since" in page.args else "record"
    shown, total = len(page.records), page.count.value
    if total is not None:
        return f"{counted(total, noun)} of {page.stream}{_shown(shown, total)}."
    return f"{counted(shown, noun)} of {page.stream}{', and more follow' * page.has_more}."


@sentence.register
def _(found: Buckets) -> str:
    records = found.filtered_record_count
    of = f"{counted(records, 'record')} of {found.stream}" if records is not None else found.stream
    if found.groups is not None:
        by = found.group_by or f"{found.granularity} of {found.group_by_time}"
        total = len(found.groups) if found.group_count is None else found.group_count
        return f"{of} in {counted(total, 'group')} by {by}{_shown(len(found.groups), total)}."
    if found.metric == "count":
        return f"{aggregate.key(found.value)} records of {found.stream}."
    return f"{METRICS[found.metric]} {found.field} in {of}: {aggregate.key(found.value)}"


@sentence.register
def _(schema: Schema) -> str:
    if stream := schema.args.get("stream"):
        return f"The stream {stream}."
    connectors = counted(len(schema.connectors), "connector")
    return f"{counted(len(schema.rows), 'stream')} of {connectors}."


@sentence.register
def _(paper: Paper) -> str:
    return f"A paper of {paper.year}." if paper.year else "A paper."


@sentence.register
def _(found: PaperFinds) -> str:
    rest = "" if found.searched_to >= found.total else ", and more of the text to search"
    return f"{counted(len(found.matches), 'place')} in the text{rest}."


@sentence.register
def _(outline: PaperOutline) -> str:
    return f"{counted(len(outline.headings), 'heading')} in {outline.total:,} characters."


@sentence.register
def _(facets: PaperFacets) -> str:
    shown = _shown(len(facets.values), facets.total)
    return f"{counted(facets.total, 'value')} of {facets.category}{shown}."


def _shown(shown: int, total: int) -> str:
    return f", {shown} shown" if shown < total else ""
