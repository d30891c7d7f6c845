"""Grants as an owner makes and ends them, and what an import says of them."""

import shlex
from pathlib import Path

import pytest

from tests.helpers import worlds
from tests.helpers.two_owners import letters
from tests.helpers.shell import Shell
from tests.helpers.worlds import House

ROW = '{"id": "1", "title": "A medlar", "note": "in the garden"}\n'


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(letters("home", 2), tmp_path)


@pytest.fixture
def shell(house: House) -> Shell:
    return Shell({"RUNG_STORE": str(house.path)})


def bring(shell: Shell, folder: Path, connection: str = "diary", row: str = ROW) -> list[str]:
    """The lines of an import that are about grants."""
    (folder / "notes.ndjson").write_text(row)
    said = shell.ok("import", str(folder / "notes.ndjson"), "--connection", connection).stderr
    return [line for line in said.splitlines() if "rant " in line and "cover" in line]


def test_a_label_is_used_once(shell: Shell) -> None:
    first = shell.ok("grant", "create", "--label", "laptop").stderr.partition(":")[0]
    again = shell.run("grant", "create", "--label", "laptop")
    assert again.exit_code == 1 and f"rung grant revoke {first}" in again.stderr
    shell.ok("grant", "revoke", "laptop")
    shell.ok("grant", "create", "--label", "laptop")


def test_the_id_of_a_hit_is_not_taken_for_that_of_a_record(house: House, shell: Shell) -> None:
    failed = shell.run("grant", "create", "--record", "home/letters:home-0")
    assert failed.exit_code == 1
    advised = shlex.split(failed.stderr.partition("its record id: ")[2])
    assert advised == ["--record", "home-0", "--connection", "home", "--stream", "letters"]
    shell.ok("grant", "create", *advised)
    shell.ok("grant", "create", "--record", "elsewhere/letters:home-0")  # may be any record's id


def test_a_grant_that_never_expires_says_so(shell: Shell) -> None:
    assert "never expires" in shell.ok("grant", "create").stderr
    assert "never" not in shell.ok("grant", "create", "--expires", "30d").stderr
    assert shell.ok("grant", "list").stdout.count("never expires") == 1


def test_revoking_a_label_of_two_grants_asks_which(house: House, shell: Shell) -> None:
    ids = [house.grant(label="phone")[0] for _ in range(2)]
    failed = shell.run("grant", "revoke", "phone")
    assert failed.exit_code == 1 and all(id in failed.stderr for id in ids)
    assert shell.ok("grant", "list").stdout.count("active") == 2
    assert shell.ok("grant", "revoke", ids[0]).stdout == f"{ids[0]} revoked\n"
    assert shell.ok("grant", "revoke", "phone").stdout == f"{ids[1]} revoked\n"


def test_an_import_names_the_grants_that_do_not_cover_it(house: House, shell: Shell) -> None:
    id, _ = house.grant(label="laptop")
    (line,) = bring(shell, house.path.parent)
    assert line.startswith(f"Grant 'laptop' ({id}) does not cover diary. ")
    command = line.partition("does: ")[2]
    assert command == "rung grant create --connection home --connection diary --label 'laptop 2'"
    assert shell.run(*shlex.split(command)[1:]).exit_code == 0
    shell.ok("grant", "revoke", "laptop")
    assert bring(shell, house.path.parent) == []


def test_no_command_is_wider_than_the_grant_and_what_came_in(house: House, shell: Shell) -> None:
    house.grant({"connection_id": "home", "stream": "letters", "fields": ["id"]})
    house.grant({"connection_id": "home", "stream": "letters", "resources": ["home-1"]})
    lines = bring(shell, house.path.parent)
    assert len(lines) == 2 and all(line.endswith(" create --connection diary") for line in lines)
    lines = bring(shell, house.path.parent, "home", '{"id": "9"}\n')
    assert lines[0].count("body, subject of home/letters; home/notes") == 1
    assert "does not cover home/notes. " in lines[1]


def test_a_limit_that_the_printed_command_drops_is_named(house: House, shell: Shell) -> None:
    shell.ok("grant", "create", "--connection", "home", "--record", "home-0")
    (line,) = bring(shell, house.path.parent)
    assert "To create a grant that does, without its limits on dates and records: rung" in line


def test_an_import_without_any_grant_says_how_to_make_one(house: House, shell: Shell) -> None:
    (line,) = bring(shell, house.path.parent)
    assert line.endswith("To create a grant that does: rung grant create --connection diary")
    store = str(house.path)
    said = shell.ok(
        "import", str(house.path.parent / "notes.ndjson"), "--connection", "d2", "--store", store
    ).stderr
    assert f"--connection d2 --store {store}" in said
