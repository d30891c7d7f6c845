"""A snapshot is fetched at boot once, whole and as named by its checksum, or not at all."""

import hashlib
import io
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evidence.errors import EvidenceError, InvalidRequest, TooLarge, Unavailable
from service.fetching import SNAPSHOT as PARCEL, fetch
from service.papers.snapshot import open_snapshot
from tests.helpers.asset_server import Mode, asset_server
from tests.helpers.snapshots import DATA

SNAPSHOT = (DATA / "papers" / "snapshot.db").read_bytes()
MODES = ("w:", "w:gz", "w:xz")


def checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def packed(mode: str, *members: tuple[str, bytes]) -> bytes:
    """A tar archive of files."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode=mode) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return body.getvalue()


def fetched(body: bytes, into: Path, sha256: str | None = None, **bounds: int) -> Path:
    with asset_server({"/file": body}) as server:
        return fetch(PARCEL, f"{server.url}/file", sha256 or checksum(body), into, **bounds)


def left(into: Path) -> list[str]:
    """What stands in the folder, without the lock."""
    return sorted(path.name for path in into.iterdir() if path.name != ".lock")


def test_a_bare_snapshot_is_kept_under_its_checksum(tmp_path: Path) -> None:
    path = fetched(SNAPSHOT, tmp_path / "new" / "folder")
    assert path.read_bytes() == SNAPSHOT
    assert open_snapshot(path).papers == 46
    assert left(tmp_path / "new" / "folder") == [checksum(SNAPSHOT)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("top", ["", "papers/"])
def test_an_archive_brings_its_assets(tmp_path: Path, mode: str, top: str) -> None:
    body = packed(
        mode,
        (f"{top}._papers.db", b"what a Mac leaves"),
        (f"{top}papers.db", SNAPSHOT),
        (f"{top}static/md/a.md", b"# A"),
    )
    path = fetched(body, tmp_path)
    assert path.name == "papers.db"
    assert open_snapshot(path).papers == 46
    assert (path.parent / "static" / "md" / "a.md").read_bytes() == b"# A"
    assert left(tmp_path) == [checksum(body)]


def test_what_is_there_is_not_asked_for_again(tmp_path: Path) -> None:
    with asset_server({"/file": SNAPSHOT}) as server:
        url = f"{server.url}/file"
        first = fetch(PARCEL, url, checksum(SNAPSHOT), tmp_path)
        assert fetch(PARCEL, url, f" {checksum(SNAPSHOT).upper()}\n", tmp_path) == first
        assert server.paths == ["/file"]


def test_processes_that_start_together_fetch_once(tmp_path: Path) -> None:
    with asset_server({"/file": SNAPSHOT}) as server, ThreadPoolExecutor(4) as pool:
        arguments = (PARCEL, f"{server.url}/file", checksum(SNAPSHOT), tmp_path)
        found = {pool.submit(fetch, *arguments) for _ in range(4)}
        assert len({task.result() for task in found}) == 1
        assert server.paths == ["/file"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".fetching-x").mkdir()
    (tmp_path / ".fetching-x" / "body").write_bytes(b"half")
    fetched(SNAPSHOT, tmp_path)
    assert left(tmp_path) == [checksum(SNAPSHOT)]


@pytest.mark.parametrize("sha256", ["", "abc", "g" * 64, "0" * 63])
def test_without_a_checksum_nothing_is_fetched(tmp_path: Path, sha256: str) -> None:
    with asset_server({"/file": SNAPSHOT}) as server:
        with pytest.raises(InvalidRequest, match="sha256sum"):
            fetch(PARCEL, f"{server.url}/file", sha256, tmp_path)
        assert server.paths == []


def test_another_checksum_is_named_and_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=checksum(SNAPSHOT)):
        fetched(SNAPSHOT, tmp_path, "0" * 64)
    assert left(tmp_path) == []


UNFIT = {
    "page": b"<!doctype html><title>Not found</title>",
    "empty": b"",
    "cut": packed("w:gz", ("papers.db", SNAPSHOT))[:-5000],
    "none": packed("w:gz", ("static/md/a.md", b"# A")),
    "two": packed("w:", ("a.db", SNAPSHOT), ("b.db", SNAPSHOT)),
    "folder": packed("w:", ("papers.db/a", SNAPSHOT)),
    "outside": packed("w:", ("../papers.db", SNAPSHOT)),
    "root": packed("w:gz", ("papers.db", SNAPSHOT), ("../../x", b"x")),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_what_holds_no_snapshot_is_refused_and_nothing_is_kept(tmp_path: Path, kind: str) -> None:
    into = tmp_path / "into"
    with pytest.raises(Unavailable) as caught:
        fetched(UNFIT[kind], into)
    assert caught.value.code == "snapshot_unavailable"
    assert caught.value.hint
    assert left(into) == []
    assert [path.name for path in tmp_path.iterdir()] == ["into"]


def test_links_out_of_the_archive_are_refused(tmp_path: Path) -> None:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:") as archive:
        link = tarfile.TarInfo("static")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        member = tarfile.TarInfo("papers.db")
        member.size = len(SNAPSHOT)
        archive.addfile(member, io.BytesIO(SNAPSHOT))
    with pytest.raises(Unavailable):
        fetched(body.getvalue(), tmp_path / "into")
    assert left(tmp_path / "into") == []


@pytest.mark.parametrize(
    "body",
    [
        SNAPSHOT,
        packed("w:gz", ("papers.db", b"\0" * 2_000_000)),
        packed("w:gz", *((f"static/{number}", b"") for number in range(300))),
    ],
)
def test_too_large_a_body_is_refused_packed_or_not(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(TooLarge):
        fetched(body, tmp_path, most_bytes=100_000)
    assert left(tmp_path) == []


@pytest.mark.parametrize("mode", ["404", "reset", "wrong_length"])
def test_a_failing_server_leaves_nothing_and_no_message_has_the_url(
    tmp_path: Path, mode: Mode
) -> None:
    with asset_server({"/hidden": SNAPSHOT}, mode) as server:
        url = server.url.replace("http://", "http://name:secret@") + "/hidden"
        with pytest.raises(EvidenceError) as caught:
            fetch(PARCEL, url, checksum(SNAPSHOT), tmp_path)
    told = str(caught.value.body())
    assert "secret" not in told and "127.0.0.1" not in told and "hidden" not in told
    assert left(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named_as_the_cause(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="written to disk") as caught:
        fetched(SNAPSHOT, tmp_path / "file" / "into")
    assert str(tmp_path) not in str(caught.value.body())
