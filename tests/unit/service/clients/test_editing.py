"""JSON with comments: read as it says, and edited so that nothing else moves."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from service.clients.editing import Document, Unfit, append, lookup, put, take

NAMES = st.sampled_from(["a", "b", "mcpServers", "rung", "é", 'q"q', "//", "/*"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ENTRY = {"type": "http", "url": "https://rung.example.com/mcp", "headers": {"Authorization": "B"}}
PATH = ("mcpServers", "rung")
_NUMBERED = re.compile(r"(?:// |/\* )c(\d+)c")


class Writer:
    """Writes a value as a person might: blanks, comments and trailing commas anywhere."""

    def __init__(self, draw: st.DrawFn, newline: str) -> None:
        self.draw, self.newline, self.comments = draw, newline, 0

    def gap(self) -> str:
        kind = self.draw(st.integers(0, 9))
        if kind < 5:
            return self.draw(
                st.sampled_from(["", "", " ", "\t", self.newline, self.newline + "  "])
            )
        if kind < 8:
            return ""
        self.comments += 1
        if kind == 8:
            return f" // c{self.comments}c {{,}}{self.newline}"
        return f" /* c{self.comments}c {self.newline} ], */"

    def value(self, value: Any) -> str:
        if isinstance(value, dict):
            return self.nest(
                "{}",
                [
                    f"{json.dumps(k)}{self.gap()}:{self.gap()}{self.value(v)}"
                    for k, v in value.items()
                ],
            )
        if isinstance(value, list):
            return self.nest("[]", [self.value(one) for one in value])
        return json.dumps(value, ensure_ascii=self.draw(st.booleans()))

    def nest(self, signs: str, parts: list[str]) -> str:
        inside = ",".join(f"{self.gap()}{part}{self.gap()}" for part in parts)
        comma = "," if parts and self.draw(st.booleans()) else ""
        return f"{signs[0]}{inside}{comma}{self.gap()}{signs[1]}"


@st.composite
def texts(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[str, Any]:
    """A text, and what it says."""
    value = draw(values)
    writer = Writer(draw, draw(st.sampled_from(["\n", "\r\n"])))
    return f"{writer.gap()}{writer.value(value)}{writer.gap()}", value


def settings(servers: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with and without a table of servers, in any place among others."""
    others = st.dictionaries(NAMES.filter(lambda name: name != "mcpServers"), VALUES, max_size=2)
    table = st.fixed_dictionaries({}, optional={"mcpServers": servers})
    return st.tuples(others, table, others).map(lambda parts: parts[0] | parts[1] | parts[2])


TABLES = st.dictionaries(NAMES, VALUES, max_size=3)
WITHOUT = texts(settings(st.dictionaries(NAMES.filter(lambda n: n != "rung"), VALUES, max_size=3)))
WITH = texts(
    st.tuples(settings(TABLES), TABLES, VALUES).map(
        lambda parts: parts[0] | {"mcpServers": {**parts[1], "rung": parts[2]}}
    )
)


def comments(text: str) -> list[str]:
    return _NUMBERED.findall(text)


def says(text: str) -> Any:
    root = Document(text).root
    assert root is not None
    return root.value


@given(texts(VALUES))
def test_a_text_is_read_as_it_was_meant(case: tuple[str, Any]) -> None:
    text, value = case
    root = Document(text).root
    assert root is not None
    assert json.dumps(root.value) == json.dumps(value)  # 1 and 1.0 and True are not alike
    assert not text[: root.start].strip() or comments(text[: root.start])


@given(WITHOUT)
def test_what_is_put_in_is_there_and_nothing_else_moves(case: tuple[str, Any]) -> None:
    text, value = case
    new = put(text, PATH, ENTRY)
    assert says(new) == value | {"mcpServers": value.get("mcpServers", {}) | {"rung": ENTRY}}
    assert comments(new) == comments(text)
    assert _is_inside(text, new)
    assert new.count("\n") - new.count("\r\n") == 0 or "\r\n" not in text


@given(WITHOUT)
def test_what_was_put_beside_others_is_taken_out_to_the_byte(case: tuple[str, Any]) -> None:
    text, value = case
    if value.get("mcpServers"):
        assert take(put(text, PATH, ENTRY), PATH) == text
    else:
        assert comments(take(put(text, PATH, ENTRY), PATH)) == comments(text)


@given(WITH)
def test_what_is_taken_out_leaves_the_rest(case: tuple[str, Any]) -> None:
    text, value = case
    new = take(text, PATH)
    expected = {name: one for name, one in value["mcpServers"].items() if name != "rung"}
    assert says(new) == value | {"mcpServers": expected}
    assert _is_inside(new, text)


@given(WITH, VALUES)
def test_what_is_replaced_changes_in_its_place(case: tuple[str, Any], entry: Any) -> None:
    text, value = case
    new = put(text, PATH, entry)
    assert says(new) == value | {"mcpServers": value["mcpServers"] | {"rung": entry}}
    assert put(new, PATH, entry) == new
    assert lookup(new, PATH) == entry


@given(texts(st.lists(VALUES, max_size=4)), VALUES)
def test_a_list_gets_one_more_and_gives_it_back(case: tuple[str, Any], entry: Any) -> None:
    inner, value = case
    text = '{"inputs":' + inner + "}"
    new = append(text, ("inputs",), entry)
    assert says(new) == {"inputs": [*value, entry]}
    assert says(take(new, ("inputs",), len(value))) == {"inputs": value}
    assert not value or take(new, ("inputs",), len(value)) == text


def _is_inside(less: str, more: str) -> bool:
    """Whether every character of one text stands in the other, in the same order."""
    rest = iter(more)
    return all(sign in rest for sign in less)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 01}', "line 1, column 8"),
        ('{"a": .5}', "line 1, column 7"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": "\\x"}', "line 1, column 8"),
        ('{"a": "b\nc"}', "line 1, column 9"),
        ('{,"a": 1}', "line 1, column 2"),
        ("{,}", "line 1, column 2"),
        ("[1, ,]", "line 1, column 5"),
        ('{"a": 1,,}', "line 1, column 9"),
        ('{"a" 1}', "line 1, column 6"),
        ("[1 2]", "line 1, column 4"),
        ("{}\n\n  {}", "line 3, column 3"),
        ("/* open", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(ValueError, match=re.escape(where)):
        Document(text)


def test_values_that_cannot_be_told_apart_or_hold_nothing_are_refused() -> None:
    for text in ('{"mcpServers": 1}', '{"mcpServers": {"rung": 1, "rung": 2}}', "[]"):
        with pytest.raises(Unfit):
            put(text, PATH, ENTRY)
    with pytest.raises(Unfit):
        append('{"inputs": {}}', ("inputs",), 1)


def test_a_new_server_looks_like_its_neighbours() -> None:
    before, after = '{\n\t"mcpServers": {\n\t\t"a": {}', "\n\t}\n}\n"
    assert put(f"{before} // one{after}", PATH, {"url": "u"}) == (
        f'{before}, // one\n\t\t"rung": {{\n\t\t\t"url": "u"\n\t\t}}{after}'
    )
    assert put('{"mcpServers":{"a":{}}}', PATH, {"url": "u"}) == (
        '{"mcpServers":{"a":{}, "rung": {"url": "u"}}}'
    )
    assert put('{\n  "mcpServers": {}\n}', ("mcpServers", "a"), 1) == (
        '{\n  "mcpServers": {\n    "a": 1\n  }\n}'
    )


def test_an_object_that_is_left_empty_is_closed_again() -> None:
    assert take('{\n  "mcpServers": {\n    "rung": 1\n  }\n}', PATH) == '{\n  "mcpServers": {}\n}'
