"""A Zotero library is a source while Zotero runs: items with their notes, highlights and files."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.synced import Synced

#: The tables of Zotero 7 that have what a person sees.
SCHEMA = """
CREATE TABLE libraries (libraryID INTEGER PRIMARY KEY, type TEXT NOT NULL);
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT NOT NULL, dateAdded TIMESTAMP,
    dateModified TIMESTAMP, libraryID INT NOT NULL, key TEXT NOT NULL, UNIQUE (libraryID, key));
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value UNIQUE);
CREATE TABLE itemData (itemID INT, fieldID INT, valueID, PRIMARY KEY (itemID, fieldID));
CREATE TABLE itemNotes (itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT, title TEXT);
CREATE TABLE itemAttachments (itemID INTEGER PRIMARY KEY, parentItemID INT, linkMode INT,
    contentType TEXT, path TEXT);
CREATE TABLE itemAnnotations (itemID INTEGER PRIMARY KEY, parentItemID INT NOT NULL, type INTEGER,
    text TEXT, comment TEXT, sortIndex TEXT NOT NULL);
CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE itemTags (itemID INT NOT NULL, tagID INT NOT NULL, type INT NOT NULL);
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE itemCreators (itemID INT NOT NULL, creatorID INT NOT NULL, creatorTypeID INT NOT NULL,
    orderIndex INT NOT NULL);
CREATE TABLE collections (collectionID INTEGER PRIMARY KEY, collectionName TEXT NOT NULL);
CREATE TABLE collectionItems (collectionID INT NOT NULL, itemID INT NOT NULL, orderIndex INT);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY, dateDeleted);

INSERT INTO libraries VALUES (1, 'user'), (2, 'group'), (3, 'feed');
INSERT INTO itemTypes VALUES (1, 'journalArticle'), (2, 'note'), (3, 'attachment'),
    (4, 'annotation'), (5, 'case');
INSERT INTO fields VALUES (1, 'title'), (2, 'abstractNote'), (3, 'date'), (4, 'DOI'), (5, 'pages'),
    (6, 'caseName');
INSERT INTO creators VALUES (1, 'Ada', 'König', 0), (2, '', 'Harbour Office', 1);
INSERT INTO creatorTypes VALUES (1, 'author'), (2, 'editor');
INSERT INTO tags VALUES (1, 'tides'), (2, 'lamps');
INSERT INTO collections VALUES (1, 'Reading');
"""
ADDED = "'2026-03-01 08:00:00', '2026-03-02 09:00:00'"
CONTENT = f"""
INSERT INTO items VALUES
    (1, 1, {ADDED}, 1, 'ARTICLE1'), (2, 2, {ADDED}, 1, 'NOTE0001'), (3, 3, {ADDED}, 1, 'FILE0001'),
    (4, 4, {ADDED}, 1, 'MARK0001'), (5, 5, {ADDED}, 2, 'CASE0001'), (6, 1, {ADDED}, 3, 'FEED0001'),
    (7, 1, {ADDED}, 1, 'TRASH001'), (8, 2, {ADDED}, 1, 'NOTE0002'), (9, 4, {ADDED}, 1, 'MARK0002');
INSERT INTO itemDataValues VALUES
    (1, 'On tides'), (2, 'Elms bloom at spring tide.'), (3, '2026-03-00 March 2026'),
    (4, '10.1000/1'), (5, '4-9'), (6, 'Ferry v. Harbour'), (7, '0000-00-00 in spring');
INSERT INTO itemData VALUES (1, 1, 1), (1, 2, 2), (1, 3, 3), (1, 4, 4), (1, 5, 5), (5, 6, 6),
    (5, 3, 7);
INSERT INTO itemNotes VALUES (2, 1, '<p>Read on the <b>ferry</b>.</p>', 'Read on the ferry.'),
    (8, NULL, '<p>Buy lamps.</p>', 'Buy lamps.');
INSERT INTO itemAttachments VALUES (3, 1, 0, 'application/pdf', 'storage:König 2026.pdf');
INSERT INTO itemAnnotations VALUES (4, 3, 1, 'neap tide', NULL, '00002'),
    (9, 3, 1, 'spring tide', 'why?', '00001');
INSERT INTO itemTags VALUES (1, 1, 0), (1, 2, 0);
INSERT INTO itemCreators VALUES (1, 2, 2, 1), (1, 1, 1, 0);
INSERT INTO collectionItems VALUES (1, 1, 0);
INSERT INTO deletedItems VALUES (7, '2026-03-02 09:00:00');
"""


@pytest.fixture
def zotero(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The database of a running Zotero, which locks it."""
    (tmp_path / "Zotero").mkdir()
    with closing(sqlite3.connect(tmp_path / "Zotero/zotero.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.executescript(SCHEMA + CONTENT)
        yield db


@pytest.fixture
def synced(tmp_path: Path, zotero: sqlite3.Connection) -> Synced:
    synced = Synced.make(tmp_path)
    synced.ok("source", "add", "zotero", str(tmp_path / "Zotero"), "--kind", "zotero")
    return synced


def test_items_come_with_what_belongs_to_them(synced: Synced, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (tmp_path / "Zotero").iterdir()}
    assert "zotero: 3 new." in synced.ok("sync").stderr
    times = {"added_at": "2026-03-01T08:00:00Z", "changed_at": "2026-03-02T09:00:00Z"}
    assert synced.records("zotero") == {
        "items": {
            "ARTICLE1": {
                **{"id": "ARTICLE1", "kind": "journalArticle", "title": "On tides", **times},
                **{"abstract": "Elms bloom at spring tide.", "date": "2026-03"},
                **{"doi": "10.1000/1", "other": ["pages: 4-9"], "tags": ["lamps", "tides"]},
                **{
                    "creators": ["Ada König", "Harbour Office (editor)"],
                    "collections": ["Reading"],
                },
                **{"notes": ["Read on the ferry."], "files": ["König 2026.pdf"]},
                "annotations": ["spring tide\nwhy?", "neap tide"],
            },
            "2/CASE0001": {
                **{"id": "2/CASE0001", "kind": "case", "title": "Ferry v. Harbour", **times},
                "date": "in spring",
            },
            "NOTE0002": {
                **{"id": "NOTE0002", "kind": "note", "title": "Buy lamps.", **times},
                "notes": ["Buy lamps."],
            },
        }
    }
    assert {path: path.read_bytes() for path in (tmp_path / "Zotero").iterdir()} == before


def test_changes_and_deletions_follow(synced: Synced, zotero: sqlite3.Connection) -> None:
    synced.ok("sync")
    store = (synced.folder / "rung.db").read_bytes()
    assert "zotero: nothing new." in synced.ok("sync").stderr
    assert (synced.folder / "rung.db").read_bytes() == store
    zotero.execute("UPDATE itemNotes SET note = '<p>Read twice.</p>' WHERE itemID = 2")
    zotero.execute("INSERT INTO deletedItems VALUES (8, '2026-03-02 09:00:00')")
    assert "zotero: 1 changed, 1 deleted." in synced.ok("sync").stderr
    items = synced.records("zotero")["items"]
    assert sorted(items) == ["2/CASE0001", "ARTICLE1"]
    assert items["ARTICLE1"]["notes"] == ["Read twice."]


def test_a_library_in_the_middle_of_a_change_is_read_later(
    synced: Synced, zotero: sqlite3.Connection
) -> None:
    zotero.execute("INSERT INTO deletedItems VALUES (8, '2026-03-02 09:00:00')")
    zotero.execute("PRAGMA cache_size = 10")  # pages, so that many are written before the end
    zotero.execute("BEGIN")
    zotero.execute("UPDATE items SET key = 'X' || key")
    zotero.execute("UPDATE itemNotes SET note = printf('%.*c', 1000000, 'x')")
    result = synced.run("sync")
    assert result.exit_code == 1 and "Zotero is writing" in result.stderr
    zotero.execute("ROLLBACK")
    synced.ok("sync")
    assert sorted(synced.records("zotero")["items"]) == ["2/CASE0001", "ARTICLE1"]


def test_the_library_of_an_import_is_recognized(synced: Synced, tmp_path: Path) -> None:
    path = str(tmp_path / "Zotero/zotero.sqlite")
    synced.ok("import", path, "--format", "zotero", "--connection", "zotero")
    assert "zotero: nothing new." in synced.ok("sync").stderr


def test_an_address_without_a_library_is_refused(synced: Synced, tmp_path: Path) -> None:
    result = synced.run("source", "add", "x", str(tmp_path), "--kind", "zotero")
    assert result.exit_code == 1 and "data directory" in result.stderr
