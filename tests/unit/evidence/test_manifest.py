from typing import Any

import pytest

from evidence.errors import InvalidRequest
from service.importing.inference import infer
from evidence.manifest import StreamManifest, parse
from evidence.manifest.values import FieldType, sortable
from evidence.times import microseconds, moment

STRING = FieldType("string")
TIME = FieldType("string", "date-time")


def document(**changes: Any) -> dict[str, Any]:
    stream = {
        "name": "messages",
        "primary_key": ["id"],
        "cursor_field": "sent_at",
        "schema": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "subject": {"type": ["string", "null"], "x_pdpp_role": "primary-title"},
                "body": {"type": "string", "x_pdpp_type": "text"},
                "size": {"type": "integer"},
                "tags": {"type": "array"},
                "sent_at": {"type": "string", "format": "date-time"},
            },
        },
    }
    return {"streams": [stream | changes]}


def read(**changes: Any) -> StreamManifest:
    (found,) = parse(document(**changes))
    return found


def test_a_date_time_cursor_is_also_the_time_of_a_record() -> None:
    assert read().time_field == "sent_at"
    assert read(cursor_field="size").time_field is None
    assert read(cursor_field="size", consent_time_field="sent_at").time_field == "sent_at"


def test_without_exact_filters_every_scalar_field_can_be_filtered() -> None:
    assert read().exact_filters == ("id", "subject", "body", "size", "sent_at")
    assert read(query={"exact_filters": ["id"]}).exact_filters == ("id",)


def test_roles_and_types_are_those_declared() -> None:
    assert read().roles == {"primary-title": "subject"}
    assert read().fields["body"].shown_as == "text"
    assert read().fields["size"].type == "integer"


def test_title_and_text_are_searched_by_meaning_unless_other_fields_are_declared() -> None:
    words = ["body", "subject", "tags"]
    assert read().semantic_fields == ()
    assert read(query={"search": {"lexical_fields": words}}).semantic_fields == ("subject",)
    search = {"lexical_fields": words, "semantic_fields": ["tags", "size", "nowhere"]}
    assert read(query={"search": search}).semantic_fields == ("tags",)


def test_cells_are_kept_for_what_is_filtered_aggregated_or_referred_to() -> None:
    query = {
        "exact_filters": ["id"],
        "range_filters": {"size": ["gte"]},
        "aggregations": {"group_by_time": ["sent_at"]},
    }
    thread = document(
        name="threads",
        relationships=[{"name": "m", "stream": "messages", "foreign_key": "subject"}],
    )["streams"]
    messages, threads = parse({"streams": document(query=query)["streams"] + thread})
    assert messages.cell_fields == ("id", "subject", "size", "sent_at")
    assert threads.foreign_keys == ()


def test_expansions_carry_their_limits() -> None:
    found = read(
        relationships=[{"name": "replies", "stream": "messages", "foreign_key": "subject"}],
        query={"expand": [{"name": "replies", "default_limit": 2, "max_limit": 5}]},
    )
    assert (found.expansions["replies"].default_limit, found.expansions["replies"].max_limit) == (
        2,
        5,
    )
    assert found.expansions["replies"].cardinality == "has_many"


def test_a_manifest_is_given_back_as_it_was_declared() -> None:
    assert read().document == document()["streams"][0]


@pytest.mark.parametrize(
    ("changes", "path", "advice"),
    [
        ({"name": "x" * 65}, "manifest.streams[0].name", "64 bytes"),
        ({"name": "語" * 22}, "manifest.streams[0].name", "64 bytes"),
        ({"name": None}, "manifest.streams[0].name", "add a name"),
        ({"schema": {}}, "manifest.streams[0].schema.properties", "declares no field"),
        ({"primary_key": ["key"]}, "manifest.streams[0].primary_key", "not a declared field"),
        ({"cursor_field": "sent"}, "manifest.streams[0].cursor_field", "; try 'sent_at'."),
        ({"cursor_field": "tags"}, "manifest.streams[0].cursor_field", "scalar"),
        ({"consent_time_field": "size"}, "manifest.streams[0].consent_time_field", "date-time"),
        ({"query": {"filters": []}}, "manifest.streams[0].query", "'filters' is not a valid key"),
        (
            {"query": {"range_filters": {"subject": ["gte"]}}},
            "manifest.streams[0].query.range_filters",
            "must be a number",
        ),
        (
            {"query": {"range_filters": {"size": ["ge"]}}},
            "manifest.streams[0].query.range_filters.size",
            "gte, gt, lte, lt",
        ),
        (
            {"query": {"aggregations": {"sum": ["body"]}}},
            "manifest.streams[0].query.aggregations.sum",
            "a number or an integer",
        ),
        (
            {"query": {"search": {"lexical_fields": ["size"]}}},
            "manifest.streams[0].query.search.lexical_fields",
            "string field",
        ),
        (
            {"query": {"expand": [{"name": "x"}]}},
            "manifest.streams[0].query.expand[0].name",
            "not a declared relationship",
        ),
        (
            {"views": [{"id": "v", "fields": ["nope"]}]},
            "manifest.streams[0].views[0].fields",
            "not a declared field",
        ),
        (
            {"schema": {"properties": {"a": {"type": "text"}}}},
            "manifest.streams[0].schema.properties.a.type",
            "must be one of",
        ),
    ],
)
def test_an_error_names_the_path_and_says_what_to_do(
    changes: dict[str, Any], path: str, advice: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(document(**changes))
    assert caught.value.details["param"] == path
    assert advice in caught.value.message


@pytest.mark.parametrize("junk", [None, [], "x", {}, {"streams": []}, {"streams": {"a": 1}}])
def test_what_is_no_manifest_is_refused_with_a_path(junk: Any) -> None:
    with pytest.raises(InvalidRequest, match="manifest"):
        parse(junk)


def test_the_same_stream_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="twice"):
        parse({"streams": document()["streams"] * 2})


def test_times_are_stored_as_microseconds_in_utc() -> None:
    assert microseconds("1970-01-01T00:00:01Z") == 1_000_000
    assert microseconds("1970-01-01") == 0
    assert microseconds("1970-01-01T02:00:00+02:00") == 0
    assert microseconds("1970-01-01T00:00:00.000001234z") == 1
    assert microseconds("1969-12-31T23:59:59") == -1_000_000


@pytest.mark.parametrize("text", ["", "now", "2024", "20240101", "2024-13-01", "2024-01-01T25:00"])
def test_what_is_no_time_has_no_stored_form(text: str) -> None:
    assert microseconds(text) is None
    assert sortable(text, TIME) is None


def test_a_stored_time_reads_back_as_the_same_moment() -> None:
    assert moment(microseconds("2024-02-29T12:00:00.5+01:00") or 0) == "2024-02-29T11:00:00.500000Z"


def test_values_are_compared_in_the_form_of_their_type() -> None:
    assert sortable("x" * 256, STRING) == "x" * 256
    assert str(sortable("x" * 300, STRING)).startswith("x" * 256 + "…#")
    assert sortable("x" * 300, STRING) != sortable("x" * 301, STRING)
    assert sortable(True, FieldType("boolean")) == 1
    assert sortable(2.5, FieldType("number")) == 2.5
    assert sortable(2**63, FieldType("integer")) == float(2**63)


def test_a_value_of_another_type_is_not_compared() -> None:
    assert sortable(5, STRING) is None
    assert sortable("five", FieldType("integer")) is None
    assert sortable(True, FieldType("integer")) is None
    assert sortable({}, FieldType("object")) is None


ROWS = [
    {
        "id": f"r{n}",
        "title": f"Report number {n}",
        "author": "Ada" if n % 2 else "Noor",
        "url": f"https://example.org/{n}",
        "count": n,
        "ratio": n / 3 if n % 2 else n,
        "draft": n % 3 == 0,
        "created_at": f"2024-01-{n % 28 + 1:02}T10:00:00Z",
        "day": "2024-05-01",
        "comment": "東京" if n else None,
        "more": {"a": 1},
    }
    for n in range(50)
]


def test_inference_finds_types_key_time_and_text() -> None:
    (found,) = parse({"streams": [infer("reports", ROWS).document]})
    assert found.primary_key == ("id",)
    assert found.cursor_field == "created_at"
    assert found.fields["day"].format == "date"
    assert found.fields["ratio"].type == "number"
    assert found.fields["more"].type == "object"
    assert found.lexical_fields == ("title", "author", "comment")
    assert found.aggregations["group_by"] == ("author", "draft", "comment")
    assert found.aggregations["sum"] == ("count", "ratio", "/more/a")
    assert found.range_filters["day"] == ("gte", "gt", "lte", "lt")


def test_inference_proposes_roles_only_when_asked() -> None:
    (silent,) = parse({"streams": [infer("reports", ROWS).document]})
    (asked,) = parse({"streams": [infer("reports", ROWS, roles=True).document]})
    assert silent.roles == {}
    assert asked.roles["primary-title"] == "title"
    assert asked.roles["event-time"] == "created_at"


def test_inference_takes_no_key_whose_values_repeat() -> None:
    assert infer("x", [{"id": 1}, {"id": 1}]).document["primary_key"] == []


def test_inference_knows_an_id_however_its_name_is_written() -> None:
    assert infer("x", [{"ID": 1}, {"ID": 2}]).document["primary_key"] == ["ID"]


def test_inference_takes_the_key_it_is_given() -> None:
    rows = [{"id": 1, "isbn": "a"}, {"id": 2, "isbn": "b"}]
    assert infer("x", rows, key=("isbn",)).document["primary_key"] == ["isbn"]


def test_short_words_of_a_small_table_are_searched_and_grouped_by() -> None:
    rows = [{"name": "Dune", "kind": "novel"}, {"name": "Emma", "kind": "classic"}]
    (found,) = parse({"streams": [infer("books", rows).document]})
    assert found.lexical_fields == ("name", "kind")
    assert found.aggregations["group_by"] == ("name", "kind")


def test_values_that_never_repeat_in_many_rows_are_not_grouped_by() -> None:
    rows = [{"name": f"Name{n}", "kind": "abc"[n % 3]} for n in range(50)]
    (found,) = parse({"streams": [infer("names", rows).document]})
    assert found.aggregations["group_by"] == ("kind",)


def test_of_many_fields_of_short_words_not_all_are_searched() -> None:
    wide = {f"c{n}": "word" for n in range(100)} | {"said": "several words of text"}
    (found,) = parse({"streams": [infer("wide", [wide]).document]})
    assert len(found.lexical_fields) == 32 and "said" in found.lexical_fields


def test_inference_copes_with_rows_that_agree_on_nothing() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1},
        {"a": "x"},
        {"a": None},
        {"b": []},
        {},
        {"": 1},
        {"n" * 65: 1},
    ]
    (found,) = parse({"streams": [infer("x", rows).document]})
    assert set(found.fields) == {"a", "b"}
