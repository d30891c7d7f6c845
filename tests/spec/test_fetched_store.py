"""A store fetched at startup: complete and matching its checksum, or the service does not start."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from service import bootstrap, settings
from service.bootstrap import Services
from service.settings import SettingsError
from service.records.sqlite.writer import open_writer
from tests.helpers import small
from tests.helpers.api import Api
from tests.helpers.asset_server import AssetServer, asset_server
from tests.helpers.server import BootFailed, serving
from tests.helpers.stores import build
from tests.helpers.worlds import House

APP, CONFIG = "service.app:create_app()", "python:service.serving"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The file of a store, and a token that reads it."""
    house = build(small.connections(), tmp_path_factory.mktemp("shipped"))
    _, token = house.grant()
    assert [path.name for path in house.path.parent.iterdir()] == ["rung.db"]
    return house.path.read_bytes(), token


@pytest.fixture
def files(shipped: tuple[bytes, str]) -> Iterator[AssetServer]:
    with asset_server({"/rung.db": shipped[0]}) as server:
        yield server


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new empty folder to start in, with a temporary folder in it."""
    (tmp_path / "cwd").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path


def named(server: AssetServer, sha256: str | None = None, **more: str) -> dict[str, str]:
    """The variables that name a server's files."""
    found = sha256 or hashlib.sha256(server.files["/rung.db"]).hexdigest()
    return {"RUNG_STORE_URL": f"{server.url}/rung.db", "RUNG_STORE_SHA256": found, **more}


def start(environ: dict[str, str]) -> Services:
    return bootstrap.build(settings.load(environ))


def refusal(environ: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        start(environ)
    return str(caught.value)


def kept(folder: Path) -> list[Path]:
    """The files in and below a folder, without locks."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]


def test_a_service_starts_from_nothing_where_only_tmpdir_can_be_written(
    tmp_path: Path, files: AssetServer, shipped: tuple[bytes, str]
) -> None:
    cwd, temporary = tmp_path / "cwd", tmp_path / "tmp"
    temporary.mkdir()
    cwd.mkdir()
    (cwd / "var").touch()  # no user can create this folder, not even root
    cwd.chmod(0o555)
    environ = named(files, TMPDIR=str(temporary), HOME="/nonexistent")
    with serving(APP, environ, workers=2, config=CONFIG, cwd=cwd) as url:
        api = Api(url, shipped[1])
        assert api.rest("/v1/streams").body["data"]
        assert api.get("/readyz").status == 200
        assert [path.name for path in cwd.iterdir()] == ["var"]
        (file,) = [path for path in kept(temporary) if path.name == "rung.db"]
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_bytes() == shipped[0]
    assert files.paths == ["/rung.db"]


def test_what_is_kept_is_not_fetched_again(here: Path, files: AssetServer) -> None:
    first, second = start(named(files)), start(named(files))
    assert files.paths == ["/rung.db"]
    assert first.store and second.store and first.store.reader.path == second.store.reader.path
    assert kept(here) == [here / "cwd" / first.store.reader.path]


def test_a_named_store_says_where_the_fetched_one_is_kept(here: Path, files: AssetServer) -> None:
    found = start(named(files, RUNG_STORE=str(here / "data" / "rung.db")))
    assert found.store and found.store.reader.path.is_relative_to(here / "data")
    assert kept(here / "cwd") == []


def test_reading_a_fetched_store_leaves_nothing_beside_it(
    here: Path, files: AssetServer, shipped: tuple[bytes, str]
) -> None:
    services = start(named(files))
    assert services.store
    services.open_session(shipped[1])
    assert services.fence_key
    assert len(kept(here)) == 1


def test_another_checksum_stops_the_start_and_leaves_nothing(
    here: Path, files: AssetServer
) -> None:
    line = refusal(named(files, "0" * 64))
    assert line.startswith("RUNG_STORE_URL: ") and "RUNG_STORE_SHA256" in line
    assert hashlib.sha256(files.files["/rung.db"]).hexdigest() in line
    assert files.url not in line and kept(here) == []


def test_an_address_without_a_checksum_stops_the_start(here: Path, files: AssetServer) -> None:
    environ = named(files)
    del environ["RUNG_STORE_SHA256"]
    assert refusal(environ).startswith("RUNG_STORE_URL requires RUNG_STORE_SHA256")
    assert files.paths == []


@pytest.mark.parametrize("body", [b"", b"<!doctype html><title>Sign in</title>"])
def test_what_is_no_store_stops_the_start(here: Path, files: AssetServer, body: bytes) -> None:
    files.files = {"/rung.db": body}
    assert "neither an SQLite file" in refusal(named(files))
    assert kept(here) == []


def test_a_store_of_another_version_stops_the_start(
    here: Path, files: AssetServer, shipped: tuple[bytes, str]
) -> None:
    path = here / "old.db"
    path.write_bytes(shipped[0])
    with open_writer(path) as writer:
        writer.set_meta("fold_version", "0")
    files.files = {"/rung.db": path.read_bytes()}
    assert "rung stats" in refusal(named(files))


def test_a_store_without_its_secret_stops_the_start(
    here: Path, files: AssetServer, shipped: tuple[bytes, str]
) -> None:
    path = here / "bare.db"
    path.write_bytes(shipped[0])
    House(path).change("DELETE FROM meta WHERE key = 'secret'")
    files.files = {"/rung.db": path.read_bytes()}
    assert "is empty" in refusal(named(files))


def test_a_temporary_folder_of_somebody_else_is_not_trusted(here: Path, files: AssetServer) -> None:
    (here / "cwd" / "var").touch()
    own = here / "tmp" / f"rung-{os.geteuid()}"
    own.mkdir()
    own.chmod(0o777)
    assert str(own) in refusal(named(files)) and files.paths == []


def test_a_start_that_fails_says_why_in_one_line_and_ends(
    tmp_path: Path, files: AssetServer
) -> None:
    environ = named(files, "0" * 64, TMPDIR=str(tmp_path))
    with TemporaryFile() as log, pytest.raises(BootFailed, match="RUNG_STORE_SHA256") as caught:
        with serving(APP, environ, config=CONFIG, cwd=tmp_path, log=log):
            pass
    assert "Traceback" not in str(caught.value)
