"""A store that an older version wrote is upgraded in place, and what that version printed works."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evidence.errors import Unavailable
from service.records.opening import open_reader
from service.records.sqlite import backup
from tests.helpers.api import Api
from tests.helpers.old_stores import FILES, old_store
from tests.helpers.places import ENGINE, faults
from tests.helpers.shell import Shell
from tests.helpers.worlds import keys_of, row

NAMES = FILES if ENGINE == "sqlite" else ("postgres-2",)
LISTED = "/v1/streams/files/records"


@pytest.mark.parametrize("name", NAMES)
def test_records_and_blobs_of_an_older_store_open(name: str, tmp_path: Path) -> None:
    house, answers = old_store(name, tmp_path)
    with pytest.raises(Unavailable, match="older version. Upgrade it with `rung stats`"):
        with open_reader(house.path).snapshot() as snapshot:
            snapshot.names()
    house.grant()  # upgrades it
    for label in ("full", "limited"):
        api, then = Api(house.app, answers[label]["token"]), answers[label]
        for now, before in zip(api.rest(LISTED, limit=100).body["data"], then["records"]):
            for record in (now, before):
                if (file := record["data"].get("file")) is not None:
                    printed = file.pop("fetch_url")
                    content = api.get(printed).body
                    assert hashlib.sha256(content).hexdigest() == file["sha256"]
            assert now == before
        listed = {record["id"] for record in then["records"]}
        hits = api.rest("/v1/search", q="lantern", limit=100).body["data"]
        assert {hit["record_key"] for hit in hits} == listed
        for id, content in then["blobs"].items():
            answer = api.get(f"/v1/blobs/{id}")
            found = answer.body.decode() if answer.status == 200 else answer.status
            assert found == content, (label, id)
    if isinstance(house.path, Path):
        assert faults(house.path) == []
        assert "sound" in Shell({"RUNG_STORE": str(house.path)}).ok("check").stderr


@pytest.mark.parametrize("name", NAMES)
def test_bookmarks_of_an_older_store_go_on(name: str, tmp_path: Path) -> None:
    house, answers = old_store(name, tmp_path)
    house.grant()  # upgrades it
    house.add("album", row("files", "h", title="Lantern h", at="2026-02-16T00:00:00Z"))
    for label in ("full", "limited"):
        api, then = Api(house.app, answers[label]["token"]), answers[label]
        for bookmark, feed in zip(then["bookmarks"], then["feeds"]):
            body = api.rest(LISTED, limit=100, changes_since=bookmark).body
            assert keys_of(body["data"]) == [*keys_of(feed), "h"], label
            assert api.rest(LISTED, changes_since=body["next_changes_since"]).body["data"] == []


@pytest.mark.skipif(ENGINE != "sqlite", reason="a database is restored by its own tools")
def test_a_bookmark_that_an_older_backup_lacks_is_gone(tmp_path: Path) -> None:
    house, answers = old_store("layout-6", tmp_path)
    api = Api(house.app, answers["full"]["token"])
    copy = tmp_path / "copy.db"
    copy.write_bytes(house.path.read_bytes())
    with closing(sqlite3.connect(copy)) as db:
        newer = len(answers["full"]["feeds"][1])
        (last,) = db.execute("SELECT max(version) - ? FROM change", (newer + 1,)).fetchone()
        db.execute("DELETE FROM change WHERE version > ?", (last,))
        db.execute("UPDATE meta SET value = ? WHERE key = 'next_version'", (last + 1,))
        db.commit()
    backup.restore(copy, house.path)
    first, second = answers["full"]["bookmarks"]
    assert api.rest(LISTED, changes_since=first).status == 200
    for _ in range(2):
        lost = api.rest(LISTED, changes_since=second)
        assert (lost.status, lost.error["code"]) == (410, "cursor_expired")
        house.add("album", row("files", "h", title="Lantern h", at="2026-02-16T00:00:00Z"))
