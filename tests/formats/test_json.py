"""JSON is read a value at a time, and gives what reading it whole gives."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.importing.source import Repair, Source, as_text
from service.importing.json_values import JsonReader
from tests.formats.owner import Owner, counts, write

texts = st.text(st.characters(exclude_categories=("Cs",)))
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20
)


class Dripping(io.BytesIO):
    """A file that gives a few bytes at a time, as a pipe may."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(3)


def rebuilt(reader: JsonReader) -> Any:
    """A document from its parts."""
    if reader.next() == "{":
        return {name: rebuilt(reader) for name in reader.members()}
    if reader.next() == "[":
        return [json.loads(content) for content in reader.elements()]
    return json.loads(reader.value())


@given(values, st.sampled_from((None, 1)), st.booleans())
def test_any_document_is_read_as_if_it_were_read_whole(
    value: Any, indent: int | None, ascii: bool
) -> None:
    content = json.dumps(value, indent=indent, ensure_ascii=ascii)
    source = Source("x.json", "json", Dripping(content.encode()), Repair())
    with as_text(source) as text:
        reader = JsonReader(source, text)
        assert rebuilt(reader) == json.loads(content)
        reader.end()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[{"a": 1}, {"a": 2}', "Expecting ']'"),
        ('[{"a": 1}, {"a": "2', "The text ends within a value"),
        ('[{"a": 1},]', "Expecting value"),
        ('[{"a": 1} {"a": 2}]', "Expecting ']'"),
        ('[{"a": 1}]]', "There is more text after the value"),
        ('{"a" [1]}', "Expecting ':'"),
        ("{a: 1}", "Expecting a name in double quotes"),
        ('{"a": ' * 5_000, "nested too deeply"),
        ("[" * 5_000, "nested too deeply"),
    ],
)
def test_a_document_that_is_not_json_to_its_end_is_refused_before_any_row(
    owner: Owner, content: str, problem: str
) -> None:
    report = owner.bring(write(owner.home, {"x.json": content}) / "x.json", code=1)
    assert problem in report and "new" not in report


def test_a_record_that_is_no_strict_json_is_refused_alone(owner: Owner) -> None:
    path = write(owner.home, {"x.json": '[{"id": 1, "t": "pier"}, {"id": 2, "n": NaN}]'}) / "x.json"
    report = owner.bring(path, code=3)
    assert "line 2: This record is not JSON" in report
    assert counts(report)["new"] == counts(report)["refused"] == 1


def test_json_from_a_pipe_is_read_as_a_file_is(owner: Owner) -> None:
    content = '{"export": {"boats": [{"id": 1}], "piers": [{"id": 2}, {"id": 3}]}}'
    done = owner.shell.bash(f"echo '{content}' | rung import - --format json --connection c")
    assert counts(done.stderr)["new"] == 3
    assert len(owner.rows("piers")) == 2


PARTS = {
    "account": {"name": "Ada Noor", "bio": "sails a boat"},
    "posts": {"own": [{"id": "1", "text": "a seal"}], "liked": [{"id": "2", "text": "a tern"}]},
    "chats": {"own": [{"id": "3", "text": "ebb tide"}]},
}


def test_arrays_at_any_depth_are_streams_and_the_text_around_them_is_a_record(owner: Owner) -> None:
    path = write(owner.home, {"export.json": json.dumps(PARTS)}) / "export.json"
    assert counts(owner.bring(path))["new"] == 4
    assert [row["data"]["id"] for row in owner.rows("posts own")] == ["1"]
    owner.finds("tern", "liked:2")
    owner.finds("ebb", "chats%20own:3")
    assert "sails" in owner.reader().ok("search", "sails").stdout
    owner.again(path)


def test_a_title_above_a_nested_object_with_arrays_is_not_lost(owner: Owner) -> None:
    content = {"title": "Log book", "watches": {"day": [{"t": "calm"}], "night": [{"t": "rough"}]}}
    report = owner.bring(write(owner.home, {"log.json": json.dumps(content)}) / "log.json")
    assert counts(report)["new"] == 3
    assert owner.rows("log")[0]["data"] == {"title": "Log book"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"id": "1"}\n{"id": "2"}\n'),
        ("a.json", '{\n "id": "1"\n}\n{\n "id": "2"\n}\n'),
        ("a.jsonl", '[\n{"id": "1"},\n{"id": "2"}\n]\n'),
        ("a.ndjson", '{\n "id": "1"\n}\n{\n "id": "2"\n}\n'),
        ("a.json", '\ufeff[{"id": "1"}, {"id": "2"}]'),
    ],
)
def test_json_is_read_as_what_it_is_whatever_its_name_says(
    owner: Owner, name: str, content: str
) -> None:
    assert counts(owner.bring(write(owner.home, {name: content}) / name))["new"] == 2
