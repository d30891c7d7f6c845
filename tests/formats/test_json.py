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
        ('[{"a": 1}, {"a": "2', "It ends within a value"),
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
