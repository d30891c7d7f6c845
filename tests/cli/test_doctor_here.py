"""`rung doctor` without a URL: what is wrong on this machine, and the line to change."""

import shutil
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from service.__main__ import rung
from service.settings import OWNER_VARIABLES, SETTINGS
from service.records.sqlite.writer import open_writer
from tests.helpers import small
from tests.helpers.snapshots import DATA
from tests.helpers.stores import build
from tests.helpers.worlds import House

UNSET = [setting.variable for setting in SETTINGS] + list(OWNER_VARIABLES)
Found = dict[str, dict[str, str]]


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A store of its own."""
    found = build(small.connections(), tmp_path)
    found.grant()
    return found


def here(environ: dict[str, str]) -> Found:
    """The findings by step; the exit code is checked."""
    env = {**dict.fromkeys(UNSET), "RUNG_CONFIG": None, "XDG_CONFIG_HOME": "/nonexistent"}
    result = CliRunner().invoke(rung, ["doctor", "--json"], env={**env, **environ})
    body = orjson.loads(result.stdout)
    found: Found = {step["step"]: step for step in body["steps"]}
    failed = any(step["verdict"] == "fail" for step in found.values())
    assert (result.exit_code, body["failed"]) == (int(failed), failed), result.output
    return found


def verdicts(found: Found, verdict: str) -> list[str]:
    return [name for name, step in found.items() if step["verdict"] == verdict]


def test_a_place_in_order_passes_every_step(house: House) -> None:
    environ = {**house.environment, "RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db")}
    found = here(environ)
    assert verdicts(found, "fail") == verdicts(found, "skip") == []
    assert "schema version" in found["store"]["told"]
    assert "46 papers" in found["snapshot"]["told"] and "1 active" in found["grants"]["told"]


def test_looking_changes_nothing(house: House) -> None:
    before = house.path.read_bytes(), sorted(path.name for path in house.path.parent.iterdir())
    here(house.environment)
    after = house.path.read_bytes(), sorted(path.name for path in house.path.parent.iterdir())
    assert after == before


def test_faults_of_settings_and_mistyped_names_are_told(house: House) -> None:
    found = here({**house.environment, "RUNG_THREADS": "many", "RUNG_PUBLICURL": "https://a"})
    assert verdicts(found, "fail") == ["settings"] and "'many'" in found["settings"]["told"]
    assert found["names"]["verdict"] == "warn"
    assert "RUNG_PUBLIC_URL" in found["names"]["told"]
    assert found["store"]["verdict"] == "ok"


def test_an_owner_credential_is_a_fault_and_is_not_printed(house: House) -> None:
    found = here({**house.environment, OWNER_VARIABLES[0]: "s3cret-of-the-owner"})
    assert verdicts(found, "fail") == ["settings"] and "s3cret" not in str(found)


def test_a_missing_store_is_named_with_the_command_that_fills_it(tmp_path: Path) -> None:
    found = here({"RUNG_STORE": str(tmp_path / "none.db")})
    assert verdicts(found, "fail") == ["store"] and "rung import" in found["store"]["change"]
    assert verdicts(found, "skip") == ["files", "grants"]


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.db"
    page.write_text("<!doctype html>" * 100)
    found = here({"RUNG_STORE": str(page)})
    assert verdicts(found, "fail") == ["store"] and "not a Rung store" in found["store"]["meaning"]


@pytest.mark.parametrize(
    "sql", ["PRAGMA user_version = 1", "UPDATE meta SET value = '0' WHERE key = 'fold_version'"]
)
def test_a_store_of_another_version_is_told_with_the_command(house: House, sql: str) -> None:
    house.change(sql)
    found = here(house.environment)
    assert found["store"]["verdict"] == "fail"
    assert found["store"]["change"] == f"Upgrade the store: rung stats --store {house.path}"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM fts_data WHERE id > 10",
        "UPDATE fts_data SET block = zeroblob(length(block)) WHERE id = 10",
    ],
)
def test_a_damaged_index_is_found(house: House, sql: str) -> None:
    house.change(sql)
    found = here(house.environment)
    assert verdicts(found, "fail") == ["store"] and "damaged" in found["store"]["told"]
    assert "rung check --repair" in found["store"]["change"]


def test_a_store_that_others_can_read_is_warned_of(house: House) -> None:
    house.path.chmod(0o644)
    found = here(house.environment)
    assert found["files"]["verdict"] == "warn"
    assert found["files"]["change"] == f"chmod 600 {house.path}"


def test_grants_that_have_ended_are_counted(house: House) -> None:
    with open_writer(house.path) as writer:
        writer.db.execute('DELETE FROM "grant"')
    house.grant(expires_at="2020-01-01T00:00:00Z")
    house.revoke(house.grant()[0])
    found = here(house.environment)
    assert found["grants"]["told"] == "0 active, 1 expired, 1 revoked"
    assert "rung grant create" in found["grants"]["change"]


def test_a_refused_snapshot_is_named_with_its_reason(house: House, tmp_path: Path) -> None:
    cut = tmp_path / "cut.db"
    shutil.copy(DATA / "papers" / "snapshot.db", cut)
    with cut.open("r+b") as file:
        file.truncate(cut.stat().st_size // 2)
    found = here({**house.environment, "RUNG_PAPERS_DB": str(cut)})
    assert verdicts(found, "fail") == ["snapshot"] and "cut" in found["snapshot"]["told"]


def test_what_is_fetched_at_start_is_not_fetched_here(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/file"
    found = here(
        {
            **{"RUNG_STORE_URL": nowhere, "RUNG_STORE_SHA256": "0" * 64},
            **{"RUNG_PAPERS_URL": nowhere, "RUNG_PAPERS_SHA256": "0" * 64},
        }
    )
    assert found["store"]["verdict"] == found["snapshot"]["verdict"] == "skip"


def test_a_broken_configuration_file_is_named(house: House, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("urll = 1\n")
    found = here({**house.environment, "RUNG_CONFIG": str(file)})
    assert verdicts(found, "fail") == ["config"] and "urll" in found["config"]["told"]


def test_a_name_that_is_no_text_is_told_in_json_too(house: House) -> None:
    found = here({**house.environment, "RUNG_STORE": "/nowhere/\udcff\x1b[2J.db"})
    assert "/nowhere/  [2J.db does not exist" in found["store"]["told"]


@pytest.mark.parametrize("words", [("--token", "x" * 20), ("--token-file", "/nowhere")])
def test_a_token_without_an_address_is_wrong_usage(words: tuple[str, str]) -> None:
    refused = CliRunner().invoke(rung, ["doctor", *words])
    assert refused.exit_code == 2 and "require the URL" in refused.stderr
