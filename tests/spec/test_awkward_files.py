"""Real files are stored exactly and can be found: see `tests/helpers/awkward.py`."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.helpers.awkward import FILES, File
from tests.helpers.shell import Shell

#: Each of some hundred imports starts a process.
pytestmark = pytest.mark.timeout(600)
LINE = re.compile(r'^1 \S+ (".*?(?<!\\)") ', re.MULTILINE)
NAMES = [f"{number:02} {file.name}" for number, file in enumerate(FILES)]
KINDS = [file.name.partition(".")[2] for file in FILES]
#: The files that are imported twice: the first of each kind, and every fifth.
TWICE = sorted({*map(KINDS.index, KINDS), *range(0, len(FILES), 5)})


@dataclass
class Imported:
    """A store with all the files, each in its own connection, and a token for everything."""

    shell: Shell
    results: list[Result]
    again: dict[int, Result]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    folder = tmp_path_factory.mktemp("awkward")
    shell = Shell({"RUNG_STORE": str(folder / "rung.db")})
    results, again = [], {}
    for number, file in enumerate(FILES):
        place = folder / str(number) / file.name
        place.parent.mkdir()
        place.write_bytes(file.content)
        words = ("import", str(place), "--connection", f"c{number}", *file.options)
        results.append(shell.run(*words))
        if number in TWICE:
            again[number] = shell.run(*words)
    token = shell.ok("grant", "create").stdout.strip()
    yield Imported(Shell({**shell.environ, "RUNG_TOKEN": token}), results, again)


def stream_of(file: File) -> str:
    if file.streams:
        return file.streams[0]
    name = Path(file.name.removesuffix(".gz"))
    return name.stem


def stored(shell: Shell, stream: str, connection: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: tuple[str, ...] = ()
    while True:
        words = (
            "query",
            stream,
            "--connection-id",
            connection,
            "--limit",
            "100",
            "--json",
            *cursor,
        )
        body = json.loads(shell.ok(*words).stdout)
        found += [row["data"] for row in body["data"]]
        if not body["has_more"]:
            return found
        cursor = ("--cursor", body["next_cursor"])


def in_order(records: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def test_there_are_sixty_files() -> None:
    assert len(FILES) >= 60


@pytest.mark.parametrize("number", range(len(FILES)), ids=NAMES)
def test_a_file_is_stored_as_it_is_and_found(imported: Imported, number: int) -> None:
    file, result = FILES[number], imported.results[number]
    assert result.exit_code == file.code, result.output
    for part in file.says:
        assert part in result.stderr
    connection = f"c{number}"
    assert in_order(stored(imported.shell, stream_of(file), connection)) == in_order(file.records)
    asked = ("search", "--connection-id", connection, "--", file.word)
    body = json.loads(imported.shell.ok("search", "--json", *asked[1:]).stdout)
    assert body["data"], "not found"
    assert body["data"][0].get("authored_at") == file.time
    line = LINE.search(imported.shell.ok(*asked).stdout)
    assert line is not None
    title = json.loads(line[1])
    if file.title is not None:
        assert title == file.title
    else:
        assert title == " · ".join(filter(None, (connection, body["data"][0]["stream"], file.time)))


def test_the_store_of_all_files_is_sound(imported: Imported) -> None:
    assert "is sound" in imported.shell.ok("check").stderr


@pytest.mark.parametrize("number", TWICE, ids=[NAMES[number] for number in TWICE])
def test_the_same_file_again_changes_nothing(imported: Imported, number: int) -> None:
    again = imported.again[number].stderr
    assert re.search(
        rf"^c{number}: 0 new, 0 changed, \d+ unchanged, 0 deleted", again, re.MULTILINE
    )
