"""`rung doctor` reaches each source and explains what keeps a store from being up to date."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.helpers.asset_server import AssetServer, asset_server
from tests.helpers.synced import Synced

ROWS = b'{"id": "a", "title": "One"}\n'


@pytest.fixture
def synced(tmp_path: Path) -> Synced:
    synced = Synced.make(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/rows.ndjson").write_bytes(ROWS)
    synced.ok("source", "add", "files", str(tmp_path / "docs"), "--kind", "folder")
    synced.ok("sync")
    return synced


@pytest.fixture
def server() -> Iterator[AssetServer]:
    with asset_server({"/rows.ndjson": ROWS}) as server:
        yield server


def steps(synced: Synced, *names: str) -> list[tuple[str, str]]:
    """The verdict and the message of each finding of these steps."""
    found = orjson.loads(synced.run("doctor", "--json").stdout)["steps"]
    return [(step["verdict"], step["told"]) for step in found if step["step"] in names]


def test_a_source_in_order_passes_with_its_last_success(synced: Synced) -> None:
    before = {path.name for path in synced.folder.iterdir()}
    ((verdict, message),) = steps(synced, "source")
    assert verdict == "ok" and message.startswith("files into files: ok, last success 2")
    assert [verdict for verdict, _ in steps(synced, "clock")] == ["ok"]
    assert {path.name for path in synced.folder.iterdir()} <= before, "nothing is created"


def test_what_keeps_a_source_from_a_round_is_explained(synced: Synced, server: AssetServer) -> None:
    synced.ok("source", "add", "tasks", "no-such-command --all", "--kind", "command")
    synced.ok("source", "add", "rows", f"{server.url}/none.ndjson", "--kind", "url")
    library = synced.folder / "zotero.sqlite"
    library.touch()
    synced.ok("source", "add", "papers", str(library), "--kind", "zotero")
    library.unlink()
    (synced.folder / "docs").rename(synced.folder / "elsewhere")
    files, tasks, rows, papers = steps(synced, "source")
    assert {files[0], tasks[0], rows[0], papers[0]} == {"fail"}
    assert f"papers: {library} cannot be read" in papers[1]
    assert "files: " in files[1] and "is not a readable folder" in files[1]
    assert "The command no-such-command was not found" in tasks[1]
    assert "rows: The server returned status 404" in rows[1]
    assert synced.run("doctor").exit_code == 1


def test_a_source_that_works_again_and_one_that_waits_are_warnings(
    synced: Synced, server: AssetServer
) -> None:
    synced.ok("source", "add", "rows", f"{server.url}/rows.ndjson", "--kind", "url")
    assert steps(synced, "source")[1] == ("warn", "rows can be reached, but has never been synced")
    server.mode = "500"
    assert synced.run("sync", "rows").exit_code == 1
    server.mode = "good"
    (synced.folder / "docs/rows.ndjson").unlink()
    synced.run("sync", "files")
    files, rows = steps(synced, "source")
    assert files == ("warn", files[1]) and "files into files: paused" in files[1]
    assert rows == (
        "warn",
        "rows into rows: failed: The server returned status 500. Check the address.",
    )
    synced.ok("source", "pause", "files")
    assert ("skip", "files is paused. To resume it, run: rung source resume files") in steps(
        synced, "source"
    )


def test_a_file_of_sources_that_others_can_read_is_refused(synced: Synced) -> None:
    path = synced.folder / "sources.toml"
    path.chmod(0o644)
    ((verdict, message),) = steps(synced, "sources", "source", "clock")
    assert verdict == "fail" and f"chmod 600 {path}" in message


def test_a_store_without_sources_has_no_step_for_them(synced: Synced) -> None:
    synced.ok("source", "remove", "files")
    assert steps(synced, "sources", "source", "clock") == []
