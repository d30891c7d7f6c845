"""Bookmarks of browsers, and Excel workbooks."""

from datetime import datetime
from pathlib import Path

import pytest
from openpyxl import Workbook

from tests.formats.owner import Owner, counts, write

FIREFOX = """\
<!DOCTYPE NETSCAPE-Bookmark-file-1>
<!-- This is an automatically generated file. -->
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks Menu</H1>
<DL><p>
    <DT><H3 ADD_DATE="1772528400">Häfen &amp; Türme</H3>
    <DL><p>
        <DT><A HREF="https://x.org/?a=1&amp;b=2" ADD_DATE="1772528400" TAGS="see,küste">Leuchtturm
 Kiel</A>
        <DD>Der älteste <b>Turm</b> der Küste.
        <HR>
        <DT><A HREF="https://x.org/pier" ADD_DATE="1772614800" LAST_MODIFIED="1772614900">桟橋</A>
    </DL><p>
    <DT><A HREF="javascript:alert(1)" ICON="data:image/png;base64,AAAA">Bookmarklet</A>
    <DT><A HREF="place:sort=8">
</DL>
"""
POCKET = """\
<!DOCTYPE html><html><head><title>Pocket Export</title></head><body><h1>Unread</h1><ul>
<li><a href="https://x.org/buoy" time_added="1772528400" tags="sea,read">Buoys</a></li>
</ul><h1>Read Archive</h1><ul><li><a href="https://x.org/mast" time_added="1">Mast</a></li></ul>
"""


def test_bookmarks_have_folders_tags_descriptions_and_times(owner: Owner) -> None:
    path = write(owner.home, {"bookmarks.html": FIREFOX}) / "bookmarks.html"
    assert "bookmarks.html is read as bookmarks." in owner.bring(path)
    rows = {row["data"]["url"]: row["data"] for row in owner.rows("bookmarks")}
    tower = rows["https://x.org/?a=1&b=2"]
    assert tower["title"] == "Leuchtturm\n Kiel" and tower["folder"] == "Häfen & Türme"
    assert tower["tags"] == ["see", "küste"] and tower["added_at"] == "2026-03-03T09:00:00Z"
    assert tower["description"] == "Der älteste Turm der Küste."
    assert rows["https://x.org/pier"]["changed_at"] == "2026-03-04T09:01:40Z" and len(rows) == 4
    assert "folder" not in rows["javascript:alert(1)"]
    assert "桟橋" in owner.finds("桟橋", "bookmarks:")
    owner.again(path)


def test_a_reading_list_is_bookmarks(owner: Owner) -> None:
    path = write(owner.home, {"ril_export.html": POCKET}) / "ril_export.html"
    owner.bring(path)
    folders = {row["data"]["title"]: row["data"]["folder"] for row in owner.rows("bookmarks")}
    assert folders == {"Buoys": "Unread", "Mast": "Read Archive"}


def workbook(path: Path) -> Path:
    book = Workbook()
    book.active.title = "Ausgaben 2026"
    for row in (
        ["Ausgaben der Hafenmeisterei"],
        [],
        ["id", "Datum", "Zweck", "Betrag", "bezahlt"],
        [1, datetime(2026, 3, 3), "Lampe für den Leuchtturm 🌊", 19.9, True],
        [2, datetime(2026, 3, 4), "Öl", 7, None],
        [3, datetime(2026, 3, 5), "Seil", "=1+1", False],
    ):
        book.active.append(row)
    second = book.create_sheet("Sheet2")
    second.append(["id", "name"])
    second.append(["a", "Poller"])
    book.create_sheet("Leer")
    book.save(path)
    return path


def test_a_workbook_is_a_stream_for_each_sheet(owner: Owner) -> None:
    path = workbook(owner.home / "kasse.xlsx")
    report = owner.bring(path)
    assert (
        "kasse.xlsx is read as xlsx." in report and "Lines left out before the table: 1." in report
    )
    rows = {row["id"]: row["data"] for row in owner.rows("Ausgaben 2026")}
    assert rows["1"] == {
        **{"id": 1, "Datum": "2026-03-03", "Zweck": "Lampe für den Leuchtturm 🌊"},
        **{"Betrag": "19.9", "bezahlt": True},
    }
    assert rows["2"]["Betrag"] == "7" and counts(report)["new"] == 4
    owner.finds("Leuchtturm", "Ausgaben%202026:1")
    owner.finds("Poller", "kasse%202:a")
    owner.again(path)


@pytest.mark.parametrize("name", ["kasse.xlsx", "kasse"])
def test_a_broken_workbook_is_refused_with_its_name(owner: Owner, name: str) -> None:
    path = workbook(owner.home / name)
    path.write_bytes(path.read_bytes()[:900])
    assert f"{name} " in owner.bring(path, code=1)
