"""Real files are stored exactly and can be found: see `tests/helpers/awkward.py`."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.helpers.awkward import FILES, File
from tests.helpers.shell import Shell

#: Each of eighty imports starts a process.
pytestmark = pytest.mark.slow
LINE = re.compile(r'^1 \S+ (".*?(?<!\\)") ', re.MULTILINE)
NAMES = [f"{number:02} {file.name}" for number, file in enumerate(FILES)]
#: Files that one command imports at the most.
TOGETHER = 10


def is_plain(file: File) -> bool:
    """Whether no other file of the same import can change how this one is read."""
    with suppress(UnicodeDecodeError):
        file.content.decode()
        plain = file.name.endswith(("csv", "json")) and file.code == 0
        return plain and not (file.options or file.streams)
    return False


def batches() -> list[list[int]]:
    """The numbers of the files of each import: tables of different names and rows go together.

    A process for each of some hundred imports would take longer than everything else here.
    """
    found: list[list[int]] = []
    for number, file in enumerate(FILES):
        rows = in_order(file.records)
        for batch in found:
            files = [FILES[other] for other in batch]
            names = [Path(other.name).stem for other in files]
            apart = not any({*rows} & {*in_order(other.records)} for other in files)
            plain = all(map(is_plain, [file, *files]))
            if plain and apart and len(batch) < TOGETHER and Path(file.name).stem not in names:
                batch.append(number)
                break
        else:
            found.append([number])
    return found


@dataclass
class Imported:
    """A store with all the files, and a token for everything."""

    shell: Shell
    connections: dict[int, str]
    results: dict[int, Result]
    again: dict[int, Result]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    folder = tmp_path_factory.mktemp("awkward")
    shell = Shell({"RUNG_STORE": str(folder / "rung.db")})
    connections, results, again = dict[int, str](), dict[int, Result](), dict[int, Result]()
    for batch in batches():
        connection = f"c{batch[0]}"
        places = [folder / connection / FILES[number].name for number in batch]
        places[0].parent.mkdir()
        for number, place in zip(batch, places):
            place.write_bytes(FILES[number].content)
        words = ("import", *map(str, places), "--connection", connection)
        once, twice = (shell.run(*words, *FILES[batch[0]].options) for _ in range(2))
        connections |= dict.fromkeys(batch, connection)
        results |= dict.fromkeys(batch, once)
        again |= dict.fromkeys(batch, twice)
    token = shell.ok("grant", "create").stdout.strip()
    yield Imported(Shell({**shell.environ, "RUNG_TOKEN": token}), connections, results, again)


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
    connection = imported.connections[number]
    assert in_order(stored(imported.shell, stream_of(file), connection)) == in_order(file.records)
    shared = [*imported.connections.values()].count(connection) > 1
    streams = ("--streams", stream_of(file)) if shared else ()
    asked = ("--connection-id", connection, *streams, "--", file.word)
    body = json.loads(imported.shell.ok("search", "--json", *asked).stdout)
    assert body["data"], "not found"
    assert body["data"][0].get("authored_at") == file.time
    line = LINE.search(imported.shell.ok("search", *asked).stdout)
    assert line is not None
    title = json.loads(line[1])
    if file.title is not None:
        assert title == file.title
    else:
        assert title == " · ".join(filter(None, (connection, body["data"][0]["stream"], file.time)))


def test_the_store_of_all_files_is_sound(imported: Imported) -> None:
    assert "is sound" in imported.shell.ok("check").stderr


@pytest.mark.parametrize("number", range(len(FILES)), ids=NAMES)
def test_the_same_file_again_changes_nothing(imported: Imported, number: int) -> None:
    again = imported.again[number].stderr
    assert re.search(
        rf"^{imported.connections[number]}: 0 new, 0 changed, \d+ unchanged, 0 deleted",
        again,
        re.MULTILINE,
    )
