"""Decimals, times as written, nested fields: in filters, sorting, aggregates, search and grants."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.shell import Shell

TABLE = "id;on;amount;note\n" + "".join(
    f"{n};{day};{amount};{note}\n"
    for n, day, amount, note in (
        (1, "03.04.2026", "-1.250,00", "rent for the pier"),
        (2, "31.12.2025", "0,10", "interest"),
        (3, "01.05.2026", "90.071.992.547.409,93", "sale of the harbour"),
        (4, "02.05.2026", "0,20", "interest"),
    )
)
PEOPLE = [
    {"id": "a", "user": {"name": "Ada Brandt", "age": 36, "paid": 1.5}, "tags": ["red", "pier"]},
    {"id": "b", "user": {"name": "Noor Adeyemi", "age": 7, "paid": 2.25}, "tags": []},
]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("exact")
    (folder / "bank.csv").write_text(TABLE, encoding="utf-8")
    (folder / "people.json").write_text(json.dumps(PEOPLE), encoding="utf-8")
    shell = Shell({"RUNG_STORE": str(folder / "rung.db")})
    shell.ok("import", str(folder / "bank.csv"), str(folder / "people.json"), "--connection", "c")
    return shell


@pytest.fixture(scope="module")
def everything(shell: Shell) -> Shell:
    return granted(shell)


def granted(shell: Shell, *words: str) -> Shell:
    token = shell.ok("grant", "create", *words).stdout.strip()
    return Shell({**shell.environ, "RUNG_TOKEN": token})


def ids(shell: Shell, stream: str, *words: str) -> list[str]:
    return [row["id"] for row in body(shell, "query", stream, *words)["data"]]


def body(shell: Shell, *words: str) -> Any:
    return json.loads(shell.ok(*words, "--json").stdout)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("amount=-1.250,00",), ["1"]),
        (("amount=-1250",), ["1"]),
        (("amount=90071992547409.93",), ["3"]),
        (("amount>0.1",), ["4", "3"]),
        (("amount>=0,1", "amount<1"), ["4", "2"]),
        (("on=03.04.2026",), ["1"]),
        (("on>=2026-04-03", "on<2026-05-02"), ["3", "1"]),
    ],
)
def test_filters_take_values_as_written_and_in_the_usual_form(
    everything: Shell, words: tuple[str, ...], expected: list[str]
) -> None:
    filters = [part for word in words for part in ("--filter", word)]
    assert ids(everything, "bank", *filters) == expected


def test_written_times_order_a_stream(everything: Shell) -> None:
    assert ids(everything, "bank") == ["4", "3", "1", "2"]


@pytest.mark.parametrize(
    ("metric", "value"),
    [("sum", "90071992546160.23"), ("min", "-1.250,00"), ("max", "90.071.992.547.409,93")],
)
def test_aggregates_are_exact(everything: Shell, metric: str, value: str) -> None:
    assert body(everything, "aggregate", "bank", metric, "--field", "amount")["value"] == value


def test_written_times_make_groups(everything: Shell) -> None:
    words = ("aggregate", "bank", "count", "--group-by-time", "on", "--granularity", "year")
    groups = body(everything, *words)["groups"]
    assert [group["count"] for group in groups] == [1, 3]


def test_search_limits_written_times(everything: Shell) -> None:
    found = body(everything, "search", "interest", "--since", "2026-01-01")
    assert [hit["record_key"] for hit in found["data"]] == ["4"]


@pytest.mark.parametrize(
    ("filter", "expected"), [("/user/age>=18", ["a"]), ("/user/name=Noor Adeyemi", ["b"])]
)
def test_nested_fields_are_filtered(everything: Shell, filter: str, expected: list[str]) -> None:
    assert ids(everything, "people", "--filter", filter) == expected


def test_nested_fields_are_aggregated_and_described(everything: Shell) -> None:
    found = body(everything, "aggregate", "people", "sum", "--field", "/user/paid")
    assert found["value"] == 3.75
    assert "/user/name" in everything.ok("schema", "people", "--detail", "full").stdout


@pytest.mark.parametrize(("word", "path"), [("brandt", "/user/name"), ("pier", "tags")])
def test_nested_words_are_found_where_the_printed_call_reads_them(
    everything: Shell, word: str, path: str
) -> None:
    (hit,) = [hit for hit in body(everything, "search", word)["data"] if hit["stream"] == "people"]
    assert hit["matched_fields"] == [path]
    excerpt = hit["evidence_excerpts"][0]
    window = body(everything, "read", "c/people:a", path, "--query", word)
    at = window["window"]["match_start_chars"]
    assert at == excerpt["match_start_chars"]


def test_a_hidden_object_hides_what_is_inside(shell: Shell) -> None:
    narrow = granted(shell, "--stream", "people", "--fields", "id,tags")
    assert body(narrow, "search", "brandt")["data"] == []
    assert "/user" not in narrow.ok("schema", "people", "--detail", "full").stdout
    refused = narrow.run("query", "people", "--filter", "/user/name=Ada Brandt")
    unknown = narrow.run("query", "people", "--filter", "/nobody/name=Ada Brandt")
    assert refused.exit_code == unknown.exit_code == 4
    assert refused.stderr.replace("/user", "/nobody") == unknown.stderr


def test_a_table_that_is_exported_has_a_column_for_each_top_level_field(
    everything: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    everything.ok("export", "stream", "people", "-o", str(path))
    head = path.read_text(encoding="utf-8").splitlines()[0]
    assert head == "id,connection_id,emitted_at,data.id,user,tags"
