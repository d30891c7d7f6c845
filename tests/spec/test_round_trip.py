"""Import, export, import into a new store: the records are equal."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evidence.pointer import strings
from tests.formats.written import WRITERS
from tests.helpers.awkward import FILES
from tests.helpers.shell import Shell

GENERATED = 10_000
ADDED = ("available", "fetch_url")

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)
numbers = st.one_of(
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(-(10**20), 10**20, places=3).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
values = st.recursive(
    st.one_of(numbers, texts.map(json.dumps), st.sampled_from(("true", "false", "null", "1.10"))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(texts, inner, max_size=3).map(
            lambda found: "{%s}" % ",".join(f"{json.dumps(n)}:{v}" for n, v in found.items())
        ),
    ),
    max_leaves=6,
)
#: Texts that a person may have written.
written_texts = st.text(
    st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" <>&;,\\:\"'#[]*@"),
    min_size=1,
    max_size=40,
).map(lambda text: f"ü {text} 🌊")
lines = st.lists(
    st.dictionaries(st.sampled_from("abcd"), values, min_size=1), min_size=1, max_size=8
)


def stripped(value: Any) -> Any:
    """A value without the members that a source adds to references to blobs."""
    if isinstance(value, dict):
        return {name: stripped(inner) for name, inner in value.items() if name not in ADDED}
    return [stripped(inner) for inner in value] if isinstance(value, list) else value


def exported(shell: Shell, connection: str, stream: str, path: Path) -> dict[str, Any]:
    """The records of a stream by their ids, as an export writes them to a file."""
    words = ("export", "stream", stream, "--connection-id", connection, "-o", str(path), "--force")
    shell.ok(*words)
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    return {row["id"]: stripped(row["data"]) for row in rows}


def opened(folder: Path, name: str) -> Shell:
    return Shell({"RUNG_STORE": str(folder / f"{name}.db")})


def granted(shell: Shell) -> Shell:
    token = shell.ok("grant", "create").stdout.strip()
    return Shell({**shell.environ, "RUNG_TOKEN": token})


def check(folder: Path, connections: dict[str, Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """Imports files into a store, and from there into another one.

    Returns the records that arrived, by connection and stream.
    """
    first, second = opened(folder, "first"), opened(folder, "second")
    for connection, path in connections.items():
        first.run("import", str(path), "--connection", connection)
    first = granted(first)
    counts = json.loads(first.ok("stats", "--json").stdout)["streams"]
    kept = {}
    for found in counts:
        connection, stream, number = found["connection_id"], found["stream"], found["records"]
        if not number:
            continue
        path = folder / f"{connection}-{stream}.ndjson"
        kept[connection, stream] = exported(first, connection, stream, path)
        assert len(kept[connection, stream]) == number
        second.ok("import", str(path), "--connection", connection)
    second = granted(second)
    for (connection, stream), records in kept.items():
        assert exported(second, connection, stream, folder / "again.ndjson") == records
    return kept


def size(kept: dict[tuple[str, str], dict[str, Any]]) -> int:
    return sum(map(len, kept.values()))


@pytest.mark.slow
def test_every_format_comes_back_as_it_went(tmp_path: Path) -> None:
    files = {}
    for number, file in enumerate(FILES):
        if not file.options:
            place = tmp_path / str(number) / file.name
            place.parent.mkdir()
            place.write_bytes(file.content)
            files[f"c{number}"] = place
    assert size(check(tmp_path, files)) > len(files)


@pytest.mark.slow
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(written_texts, min_size=1, max_size=6))
def test_any_text_in_a_file_of_any_format_comes_back_as_it_went(
    tmp_path_factory: pytest.TempPathFactory, found: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("formats")
    files = {}
    for name, writer in WRITERS.items():
        (folder / name).mkdir()
        files[name] = writer(folder / name, found)
    kept = check(folder, files)
    for name in files:
        texts = [one for place, rows in kept.items() if place[0] == name for one in strings(rows)]
        missing = [text for text in found if not any(text in one for one in texts)]
        assert not missing, (name, missing)


@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines)
def test_any_json_comes_back_as_it_went(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = folder / "any.ndjson"
    _write(path, found)
    assert size(check(folder, {"c": path})) == len(found)


@pytest.mark.slow
def test_ten_thousand_records_come_back_as_they_went(tmp_path: Path) -> None:
    draw = random.Random(7)
    path = tmp_path / "many.ndjson"
    _write(path, [_drawn(draw) for _ in range(GENERATED)])
    assert size(check(tmp_path, {"c": path})) == GENERATED


def _write(path: Path, found: list[dict[str, str]]) -> None:
    rows = ("{%s}" % ",".join(f'"{name}":{value}' for name, value in row.items()) for row in found)
    path.write_text("\n".join(rows), encoding="utf-8")


def _drawn(draw: random.Random) -> dict[str, str]:
    whole, part = draw.randrange(-(10 ** draw.randrange(1, 25)), 10**25), draw.randrange(10**4)
    words = " ".join(
        draw.choice(("harbour", "köln", "日本", "ß", "\u202e", "😀")) for _ in range(9)
    )
    long = json.dumps(words * 9_000) if draw.random() < 0.001 else json.dumps(words)
    pool = (str(whole), f"{draw.randrange(10**6)}.{part:04}", repr(draw.random()), long, "null")
    row = {name: draw.choice(pool) for name in draw.sample("abcdefgh", 4)}
    row["nested"] = '{"list": [%s, {"deep": %s}]}' % (draw.choice(pool), draw.choice(pool))
    return row
