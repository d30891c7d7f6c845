"""Evernote, OPML and QIF: notes with their files, links and outlines, payments."""

from base64 import b64encode

from tests.formats.owner import Owner, counts, write

ENEX = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export export-date="20260401T000000Z" application="Evernote" version="10.1">
  <note><title>Leuchtturm ☀</title><created>20260303T091500Z</created>
    <updated>20260304T101500Z</updated><tag>küste</tag><tag>reise</tag>
    <note-attributes><author>Ada König</author><source-url>https://x.org/turm</source-url>
    </note-attributes>
    <content><![CDATA[<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd">
<en-note><div>Die Lampe dreht sich.</div><div><en-todo checked="true"/>Karten</div>
<div><en-todo/>Fernglas &amp; Brot</div>
<div>PIN: <en-crypt hint="h" cipher="AES" length="128">RU5DMJq8Qe==</en-crypt></div>
</en-note>]]></content>
    <resource><data encoding="base64">
{b64encode(b"teil;zahl").decode()}
</data><mime>text/csv</mime><resource-attributes><file-name>liste.csv</file-name>
    </resource-attributes></resource>
    <resource><data encoding="base64">=?=</data><mime>image/png</mime></resource></note>
  <note><title>Broken</title><content>&nope;</content></note>
  <note><title></title><content><![CDATA[<en-note>Nur Text, 春の海.</en-note>]]></content></note>
</en-export>
"""


def test_a_notebook_of_evernote_is_notes_with_times_tags_and_files(owner: Owner) -> None:
    folder = write(owner.home / "export", {"Reisen.enex": ENEX})
    report = owner.bring(folder / "Reisen.enex", code=3)
    assert "is read as evernote" in report and "The note is not valid XML" in report
    assert "is not base64" in report
    rows = {row["data"]["title"]: row["data"] for row in owner.rows("notes")}
    assert rows.keys() == {"Leuchtturm ☀", "Nur Text, 春の海."}
    note = rows["Leuchtturm ☀"]
    assert (note["written_at"], note["changed_at"]) == (
        "2026-03-03T09:15:00Z",
        "2026-03-04T10:15:00Z",
    )
    assert note["text"].split("\n") == [
        *("Die Lampe dreht sich.", "[x] Karten", "[ ] Fernglas & Brot", "PIN: [encrypted]"),
    ]
    assert note["tags"] == ["küste", "reise"] and note["author"] == "Ada König"
    assert note["folder"] == "Reisen" and note["links"] == ["https://x.org/turm"]
    (file,) = [row["data"] for row in owner.rows("attachments")]
    assert (file["filename"], file["message_id"]) == ("liste.csv", note["id"])
    owner.again(folder / "Reisen.enex", code=3)


OPML = """\
<?xml version="1.0"?>
<opml version="2.0"><head><title>x</title></head><body>
<outline text="Sea"><outline text="Tide log" type="rss" xmlUrl="https://x.org/feed"
  htmlUrl="https://x.org/" description="Daily" category="/sea/tides,log"/></outline>
%s</body></opml>
"""
IDEAS = '<outline text="Trip"><outline text="Pack the lamp"/><outline text="Call Noor"/></outline>'


def test_feeds_are_bookmarks_and_another_outline_is_a_note(owner: Owner) -> None:
    folder = write(owner.home / "export", {"feeds.opml": OPML % "", "ideas.opml": OPML % IDEAS})
    report = owner.bring(folder)
    assert report.count("is read as opml") == 2
    (link,) = [row["data"] for row in owner.rows("bookmarks")]
    assert link == link | {"title": "Tide log", "url": "https://x.org/", "folder": "Sea"}
    assert link["description"] == "Daily" and link["tags"] == ["sea/tides", "log"]
    (note,) = [row["data"] for row in owner.rows("notes")]
    assert note["title"] == "ideas"
    assert note["text"] == "- Sea\n- Trip\n  - Pack the lamp\n  - Call Noor"
    owner.again(folder)


QIF = """\
!Account
NGiro
TBank
^
!Type:Bank
D2026-03-13
T-12.34
PHarbour Café
MTwo coffees
LFood
^
D2026-03-14
T-100.00
PShop
SFood
$-60.00
SLamp
EA light
$-40.00
^
!Type:Cat
NFood
^
"""


def test_payments_of_qif_have_their_account_and_their_splits(owner: Owner) -> None:
    path = write(owner.home / "export", {"giro.qif": QIF}) / "giro.qif"
    report = owner.bring(path)
    assert "giro.qif is read as qif" in report and counts(report)["new"] == 2
    rows = {row["data"]["payee"]: row["data"] for row in owner.rows("payments")}
    cafe, shop = rows["Harbour Café"], rows["Shop"]
    assert cafe == cafe | {"account": "Giro", "date": "2026-03-13", "memo": "Two coffees"}
    assert str(cafe["amount"]) == "-12.34"
    assert shop["splits"] == [
        {"category": "Food", "amount": "-60.00"},
        {"category": "Lamp", "memo": "A light", "amount": "-40.00"},
    ]
    owner.again(path)
