"""Archives and folders: read where they lie, each file as what it is; tricks are refused."""

import gzip
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.formats.owner import Owner, counts, write, zipped

CSV = "id,place\n1,Köln harbour\n"
MAIL = b"From: Ada <a@x>\nMessage-ID: <m@x>\nSubject: Pier\n\nThe ferry leaves.\n"


def test_a_mixed_archive_is_imported_file_by_file_with_one_report(owner: Owner) -> None:
    mixed = {
        "Takeout/tables/places.csv": CSV,
        "Takeout/log.ndjson.gz": gzip.compress(b'{"id": "a", "text": "lighthouse"}\n'),
        "Takeout/mail/hello.eml": MAIL,
        "Takeout/2026-03-03.json": '[{"id": "x", "text": "bollard"}]',
        "Takeout/broken.json": "[{",
        "Takeout/Übersicht.png": b"\x89PNG",
        "__MACOSX/Takeout/._places.csv": "junk",
        "Takeout/.hidden.csv": CSV,
    }
    path = zipped(owner.home / "all.zip", mixed)
    report = owner.bring(path, code=3)
    assert "Files read: 2 as json, 1 as ndjson, 1 as eml, 1 as csv." in report
    assert "Übersicht.png cannot be imported. It looks like an image." in report
    assert "\nTakeout/broken.json is not JSON" in report and "hidden" not in report
    assert counts(report) == {"new": 4, "changed": 0, "unchanged": 0, "deleted": 0, "refused": 1}
    owner.again(path, code=3)
    owner.finds("köln", "places:1")
    owner.finds("lighthouse", "log:a")
    owner.finds("ferry", "messages:m@x")
    owner.finds("bollard", "Takeout:x")


def test_one_format_may_be_given_for_all(owner: Owner) -> None:
    folder = write(owner.home / "export", {"a.txt": CSV, "b.log": "id,place\n2,Pier\n"})
    assert counts(owner.bring(folder, "--format", "csv"))["new"] == 2


@pytest.mark.parametrize("name", ["../up.csv", "/etc/cron.csv", "C:\\up.csv", "a/../../b.csv"])
def test_a_member_outside_its_archive_is_left_out(owner: Owner, name: str) -> None:
    path = zipped(owner.home / "x.zip", {name: CSV, "ok.csv": CSV})
    report = owner.bring(path)
    assert "leads outside the archive. Rename it" in report and counts(report)["new"] == 1


def test_links_are_left_out(owner: Owner) -> None:
    secret = write(owner.home / "secret", {"s.csv": "id,t\n9,secret\n"})
    folder = write(owner.home / "export", {"ok.csv": CSV})
    (folder / "link.csv").symlink_to(secret / "s.csv")
    (folder / "away").symlink_to(secret, target_is_directory=True)
    report = owner.bring(folder)
    assert "Left out: 2 symbolic links. " in report and counts(report)["new"] == 1
    member = zipfile.ZipInfo("link.csv")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(owner.home / "links.zip", "w") as archive:
        archive.writestr(member, "/etc/passwd")
    assert "is a symbolic link" in owner.bring(owner.home / "links.zip", code=1)


def test_archives_that_exhaust_a_machine_are_refused(owner: Owner, tmp_path: Path) -> None:
    zeros = bytes(300 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(zeros, 6))
    zipped(tmp_path / "bomb.zip", {"a.csv": zeros})
    for name in ("bomb.gz", "bomb.zip"):
        report = owner.bring(tmp_path / name, "--format", "mbox", code=1)
        assert "far more than its size suggests" in report and "unpack it and import" in report


def test_many_archives_in_an_archive_are_limited_together(owner: Owner, tmp_path: Path) -> None:
    members = {"a.png": b"\x89PNG" + bytes(100 << 20), "ok.csv": CSV}
    inner = zipped(tmp_path / "inner.zip", members).read_bytes()
    path = zipped(tmp_path / "outer.zip", {f"{number}.zip": inner for number in range(4)})
    report = owner.bring(path)
    assert "Left out: 2 unreadable members of archives. " in report
    assert "far more than its size suggests" in report


def test_archives_in_archives_and_encrypted_members_come_with_advice(owner: Owner) -> None:
    inner = zipped(owner.home / "inner.zip", {"a.csv": CSV})
    path = zipped(owner.home / "outer.zip", {"inner.zip": inner.read_bytes(), "b.csv": CSV})
    deep = zipped(owner.home / "deep.zip", {"outer.zip": path.read_bytes()})
    report = owner.bring(deep)
    assert "is an archive inside two others. Unpack the outer archive" in report
    assert counts(report)["new"] == 1 and counts(owner.bring(path))["new"] == 1
    raw = bytearray(inner.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    inner.write_bytes(raw)
    assert "is encrypted. Unpack the archive with its password" in owner.bring(inner, code=1)


def test_an_archive_is_known_by_its_content(owner: Owner) -> None:
    path = zipped(owner.home / "download", {"places.csv": CSV})
    assert "places.csv is read as csv." in owner.bring(path)
    (owner.home / "places").write_bytes(gzip.compress(CSV.encode()))
    assert counts(owner.bring(owner.home / "places"))["unchanged"] == 1


@pytest.mark.parametrize("name", ["all.tar", "all.tar.gz", "all.tgz"])
def test_a_tar_archive_comes_with_advice(owner: Owner, name: str) -> None:
    write(owner.home, {"places.csv": CSV})
    with tarfile.open(owner.home / name, "w:gz" if name.endswith("gz") else "w") as archive:
        archive.add(owner.home / "places.csv", "places.csv")
    report = owner.bring(owner.home / name, code=1)
    assert "It looks like a tar archive. Unpack it: tar -xf FILE" in report
