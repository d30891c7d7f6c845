"""Descriptions of streams and figures: encoded and decoded without loss, rendered untouched."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.model import SYNC_STATES, Buckets, Group, Source, SyncStatus
from evidence.operators import OPERATORS
from evidence.manifest.parts import View
from evidence.schema import (
    COMPACT,
    FULL,
    METRICS,
    NAMED,
    Bearer,
    Connector,
    ConnectorList,
    FieldCapability,
    Relation,
    Schema,
    StreamCount,
    StreamDetails,
    StreamList,
    StreamRow,
    StreamSchema,
    parse_flags,
)
from renderers import records as records_renderer
from renderers import schema as schema_renderer
from renderers.rendering import Context
from service.pdpp import encode
from service.pdpp.decode import schema
from service.pdpp.decode.records import decode_buckets

NAMES = st.sampled_from(["id", "name", "a b", "日記", "fields", "stream_1", "x=y", "label"])
WORDS = st.sampled_from(["text", "date-time", "integer", "event-time", "a=b"])
MAYBE = st.none() | NAMES
COUNTS = st.none() | st.integers(0, 2**63)
WARNINGS = st.lists(st.fixed_dictionaries({"code": WORDS, "message": NAMES}), max_size=2)
JSON_SCHEMAS = st.fixed_dictionaries(
    {"type": WORDS}, optional={"format": WORDS, "items": st.none()}
)
TIMES = st.none() | st.sampled_from(["2026-11-28T04:00:00Z", "2026-11-28T04:10:00Z"])
STATES = st.builds(SyncStatus, st.sampled_from(SYNC_STATES), TIMES, TIMES, st.just(False))
RELATIONS = st.builds(Relation, NAMES, NAMES, MAYBE, MAYBE, COUNTS, COUNTS)
VIEWS = st.builds(View, NAMES, MAYBE, st.lists(NAMES).map(tuple))
DECODERS = {
    Buckets: decode_buckets,
    ConnectorList: schema.connectors,
    Schema: schema.read,
    StreamDetails: schema.stream,
    StreamList: schema.streams,
}


def subsets(words: Any) -> st.SearchStrategy[tuple[str, ...]]:
    """Some of the words, in their order."""
    return st.lists(st.sampled_from(list(words)), unique=True).map(
        lambda some: tuple(word for word in words if word in some)
    )


def capabilities(detail: str) -> st.SearchStrategy[FieldCapability]:
    return st.builds(
        FieldCapability,
        type=st.none() | WORDS,
        role=st.none() | WORDS,
        exact=st.booleans(),
        operators=st.none() | subsets(OPERATORS),
        lexical=st.booleans(),
        semantic=st.booleans(),
        aggregations=subsets(METRICS),
        other=subsets(["sem=unusable", "b=1"]) if detail == COMPACT else st.just(()),
        schema=st.none() if detail == COMPACT else st.none() | JSON_SCHEMAS,
    )


def streams(detail: str) -> st.SearchStrategy[StreamSchema]:
    if detail == NAMED:
        return st.builds(StreamSchema, NAMES, st.just(NAMED))
    full: dict[str, Any] = {"counts": st.booleans(), "since": MAYBE, "until": MAYBE}
    return st.builds(
        StreamSchema,
        name=NAMES,
        detail=st.just(detail),
        label=MAYBE,
        primary_key=st.lists(NAMES).map(tuple),
        cursor_field=MAYBE,
        fields=st.dictionaries(NAMES, capabilities(detail)),
        relations=st.lists(RELATIONS, max_size=3).map(tuple),
        views=st.lists(VIEWS, max_size=3).map(tuple),
        **({**full, "time_field": MAYBE} if detail == FULL else {}),
    )


@st.composite
def connectors(draw: st.DrawFn, details: tuple[str, ...]) -> Connector:
    key = draw(NAMES)
    sources = st.builds(Source, NAMES, st.just(key), MAYBE, st.none() | STATES)
    listed = st.lists(sources, min_size=1, max_size=3).map(tuple)
    described = st.one_of([streams(detail) for detail in details])
    rows = st.lists(st.builds(StreamRow, described, st.just(key), listed), min_size=1, max_size=3)
    return Connector(key, draw(NAMES), draw(NAMES), tuple(draw(rows)))


def schemas(details: tuple[str, ...]) -> st.SearchStrategy[Schema]:
    bearers = st.builds(Bearer, MAYBE, MAYBE, MAYBE)
    compact = FULL not in details
    listed = st.lists(connectors(details), max_size=3).map(tuple)
    return st.builds(Schema, listed, st.just(compact), st.none() | bearers, WARNINGS)


@st.composite
def figures(draw: st.DrawFn) -> Buckets:
    values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NAMES
    groups = draw(st.none() | st.lists(st.builds(Group, values, COUNTS)).map(tuple))
    found = Buckets(
        stream=draw(NAMES),
        metric=draw(NAMES),
        field=draw(MAYBE),
        group_by=draw(MAYBE),
        group_by_time=draw(MAYBE),
        granularity=draw(MAYBE),
        time_zone=draw(MAYBE),
        approximate=draw(st.booleans()),
        filtered_record_count=draw(COUNTS),
        groups=groups,
        warnings=draw(WARNINGS),
        as_of=tuple(draw(st.lists(st.builds(Source, NAMES, st.none(), MAYBE, STATES), max_size=2))),
    )
    if groups is None:
        return replace(found, value=draw(values))
    counts: dict[str, Any] = {
        name: draw(COUNTS) for name in ("limit", "other_count", "group_count")
    }
    return replace(found, next_cursor=draw(MAYBE), **counts)


SOURCES = st.lists(st.builds(Source, NAMES, st.none(), MAYBE, st.none() | STATES), min_size=1).map(
    tuple
)
STREAM_COUNTS = st.builds(
    StreamCount, NAMES, st.builds(Source, NAMES, MAYBE, MAYBE, st.none()), COUNTS, MAYBE, MAYBE
)
SCHEMAS = schemas((COMPACT, NAMED)) | schemas((FULL,))
VALUES: Any = st.one_of(
    SCHEMAS,
    figures(),
    st.builds(ConnectorList, st.lists(connectors((NAMED,)), max_size=3).map(tuple), WARNINGS),
    st.builds(StreamList, st.lists(STREAM_COUNTS).map(tuple), WARNINGS),
    st.builds(
        StreamDetails,
        st.builds(StreamRow, streams(FULL), st.none(), SOURCES),
        WARNINGS,
    ),
)


def sent(value: Any) -> Any:
    """The value as a client decodes it from the bytes of its body."""
    return DECODERS[type(value)](orjson.loads(orjson.dumps(encode.body(value))))


@given(VALUES)
def test_a_value_survives_its_body(value: Any) -> None:
    assert sent(value) == value


@given(capabilities(COMPACT))
def test_flags_are_parsed_as_they_are_spelled(capability: FieldCapability) -> None:
    assert parse_flags(capability.flags) == capability


@pytest.mark.parametrize("flags", ["declared", "t=text,eq", "r=gte|lt,a=max|min", "lex,sem"])
def test_flags_of_a_source_are_spelled_as_they_came(flags: str) -> None:
    assert parse_flags(flags).flags == flags


@given(SCHEMAS, st.sampled_from([{}, {"stream": "s"}, {"stream": "s", "detail": "full"}]))
def test_a_schema_reads_the_same_from_its_body_and_is_not_changed(
    value: Schema, args: dict[str, Any]
) -> None:
    ours, theirs = replace(value, args=args), replace(sent(value), args=args)
    before = deepcopy(ours)
    rendering = schema_renderer.render(ours, Context())
    assert ours == before
    assert rendering == schema_renderer.render(theirs, Context())


@given(figures())
def test_figures_read_the_same_from_their_body_and_are_not_changed(value: Buckets) -> None:
    before = deepcopy(value)
    rendering = records_renderer.render_groups(value, Context())
    assert value == before
    assert rendering == records_renderer.render_groups(sent(value), Context())
