"""`rung remove` and `rung replace` on a database, and what other commands advise."""

import json
from pathlib import Path

import psycopg
import pytest

from service.place import Database, spelled
from service.records.postgres.ddl import OPEN
from tests.helpers import worlds
from tests.helpers.places import empty_database, new_database
from tests.helpers.shell import Shell
from tests.helpers.worlds import House

RECORDS = "/v1/streams/{}/records"
OF_CONNECTIONS = """
SELECT table_name FROM information_schema.columns c JOIN information_schema.tables t
USING (table_schema, table_name) WHERE column_name = 'conn' AND table_type = 'BASE TABLE'
"""


@pytest.fixture
def house() -> House:
    place = new_database()
    worlds.fill(place, worlds.two_mailboxes())
    return House(place)


@pytest.fixture
def shell(house: House) -> Shell:
    return Shell({"RUNG_STORE": spelled(house.path)})


def rows(house: House) -> dict[str, int]:
    """How many rows each table has of each connection."""
    assert isinstance(house.path, Database)
    with psycopg.connect(house.path.url) as db:
        db.execute(OPEN)
        tables = [name for (name,) in db.execute(OF_CONNECTIONS)]
        listed = {
            f"{table} of {conn}": count
            for table in tables
            for conn, count in db.execute(
                f"SELECT c.connection_id, count(*) FROM {table} t "
                "LEFT JOIN connection c ON c.id = t.conn GROUP BY 1".encode()
            )
        }
    return listed


def test_a_removed_connection_leaves_no_row_and_the_others_keep_theirs(
    house: House, shell: Shell
) -> None:
    before = rows(house)
    shell.ok("remove", "mail-home", "--yes")
    after = rows(house)
    assert after == {name: n for name, n in before.items() if not name.endswith("of mail-home")}
    assert len(after) < len(before) and not any("None" in name for name in after)
    assert len(house.api().rest("/v1/search", q="lantern").body["data"]) > 5


def test_a_stream_that_a_grant_covers_stays_and_its_readers_see_the_deletions(
    house: House, shell: Shell
) -> None:
    api, home = house.api({"connection_id": "mail-home"}), {"connection_id": "mail-home"}
    url = RECORDS.format("messages")
    marked = api.rest(url, changes_since="beginning", **home).body["next_changes_since"]
    said = shell.ok("remove", "mail-home", "--yes").stderr
    assert "messages: 7 records (the empty stream is kept" in said
    gone = api.rest(url, changes_since=marked, **home).body["data"]
    assert len(gone) == 7 and all(one["deleted"] for one in gone)
    assert api.rest(url, **home).body["data"] == []


def test_a_replaced_stream_has_the_new_rows_and_its_log_names_what_differs(
    house: House, shell: Shell, tmp_path: Path
) -> None:
    api, home = house.api({"connection_id": "mail-home"}), {"connection_id": "mail-home"}
    url, file = RECORDS.format("threads"), tmp_path / "new.ndjson"
    marked = api.rest(url, changes_since="beginning", **home).body["next_changes_since"]
    new = [{"id": "t1", "topic": "Thread 1 at home"}, {"id": "t5", "topic": "A quince"}]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in new))
    said = shell.ok("replace", "mail-home/threads", str(file), "--yes").stderr
    assert "replaced: 1 new, 0 changed, 1 unchanged, 1 removed." in said
    changed = api.rest(url, changes_since=marked, **home).body["data"]
    assert sorted(worlds.keys_of(changed)) == ["t0", "t5"]
    assert len(api.rest("/v1/search", q="quince").body["data"]) == 1

    file.write_text('{"id": "t9"}\n{"topic": "no id"}\n')
    before = api.rest(url, **home).body["data"]
    failed = shell.run("replace", "mail-home/threads", str(file), "--yes")
    assert failed.exit_code == 1 and "nothing was replaced" in failed.stderr
    assert api.rest(url, **home).body["data"] == before


def test_a_repair_brings_back_what_is_derived_from_records(house: House, shell: Shell) -> None:
    assert isinstance(house.path, Database)
    api, before = house.api(), rows(house)
    asked = (
        ("/v1/search", {"q": "lantern"}),
        (RECORDS.format("messages"), {}),
        (RECORDS.format("threads"), {}),
    )
    answers = [api.rest(path, **given).body["data"] for path, given in asked]
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    with psycopg.connect(house.path.url) as db:
        indexed = db.execute(indexes).fetchall()
        db.execute(OPEN)
        db.execute("TRUNCATE term, passage, word_count, word_key, cell")
        db.execute("UPDATE scope SET words = 7")
        db.execute("UPDATE stream SET records = 0")
        db.execute("UPDATE record SET at = NULL, cursor = '', thread = NULL, place = NULL")
        db.execute("UPDATE counter SET generation = generation + 1, catalog = 'another'")
    assert api.rest("/v1/search", q="lantern").body["data"] == []
    shell.ok("check", "--repair", "--yes")
    assert rows(house) == before
    assert [api.rest(path, **given).body["data"] for path, given in asked] == answers
    with psycopg.connect(house.path.url) as db:
        assert db.execute(indexes).fetchall() == indexed


@pytest.mark.parametrize("command", ["backup", "restore", "check"])
def test_other_commands_name_the_one_to_use(shell: Shell, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    words = [command] if command == "check" else [command, str(tmp_path / "file")]
    failed = shell.run(*words, "--yes")
    assert failed.exit_code == 1 and "is a database" in failed.stderr
    assert ("pg_amcheck" if command == "check" else "rung store copy") in failed.stderr


def test_the_check_of_settings_opens_the_database(house: House) -> None:
    empty = Shell({"DATABASE_URL": spelled(empty_database())})
    assert "Warning: There is no store yet." in empty.ok("config", "--check").stderr
    assert "contains no store yet" in empty.run("doctor").stdout
    gone = Database(f"{empty_database().url}-gone")
    missing = Shell({"DATABASE_URL": spelled(gone)}).run("config", "--check")
    assert missing.exit_code == 2 and "cannot be read" in missing.stderr
    shell = Shell({"DATABASE_URL": spelled(house.path)})
    assert shell.ok("config", "--check").output == ""
    assert isinstance(house.path, Database)
    with psycopg.connect(house.path.url) as db:
        db.execute(OPEN)
        db.execute("UPDATE meta SET value = '999' WHERE key = 'layout'")
    newer = shell.run("config", "--check")
    assert newer.exit_code == 2 and "newer version of Rung" in newer.stderr
