"""Files in the forms that other exporters write, made without regard to the importers."""

import json
import mailbox
from datetime import datetime
from email.message import EmailMessage
from typing import Any

import pytest
from openpyxl import Workbook
from sqlite_utils import Database

from tests.formats.owner import Owner, counts, write, zipped

OUTLOOK = """\
BEGIN:VCALENDAR\r
PRODID:-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN\r
VERSION:2.0\r
METHOD:PUBLISH\r
X-MS-OLK-FORCEINSPECTOROPEN:TRUE\r
BEGIN:VTIMEZONE\r
TZID:W. Europe Standard Time\r
BEGIN:STANDARD\r
DTSTART:16011028T030000\r
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r
TZOFFSETFROM:+0200\r
TZOFFSETTO:+0100\r
END:STANDARD\r
BEGIN:DAYLIGHT\r
DTSTART:16010325T020000\r
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r
TZOFFSETFROM:+0100\r
TZOFFSETTO:+0200\r
END:DAYLIGHT\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
CLASS:PUBLIC\r
CREATED:20260301T080000Z\r
DESCRIPTION:Bitte Unterlagen mitbringen.\\n\\nGrüße\\, Jörg\\n\r
DTEND;TZID="W. Europe Standard Time":20260703T100000\r
DTSTAMP:20260301T080000Z\r
DTSTART;TZID="W. Europe Standard Time":20260703T090000\r
LAST-MODIFIED:20260301T080000Z\r
LOCATION:Besprechungsraum Südpier\r
PRIORITY:5\r
SEQUENCE:0\r
SUMMARY;LANGUAGE=de:Jahresgespräch mit einem sehr langen Titel\\, der über die\r
 Zeile geht\r
TRANSP:OPAQUE\r
UID:040000008200E00074C5B7101A82E00800000000\r
X-ALT-DESC;FMTTYPE=text/html:<html><body>Bitte</body></html>\r
X-MICROSOFT-CDO-BUSYSTATUS:BUSY\r
BEGIN:VALARM\r
TRIGGER:-PT15M\r
ACTION:DISPLAY\r
DESCRIPTION:Reminder\r
END:VALARM\r
END:VEVENT\r
END:VCALENDAR\r
"""


def test_a_calendar_of_outlook(owner: Owner) -> None:
    path = write(owner.home, {"Kalender.ics": OUTLOOK}) / "Kalender.ics"
    owner.bring(path)
    (row,) = [row["data"] for row in owner.rows("events")]
    assert row["start"] == "2026-07-03T09:00:00+02:00" and row["calendar"] == "Kalender"
    assert row["time_zone"] == "W. Europe Standard Time"
    assert row["summary"].endswith("der über dieZeile geht")
    assert any(one.startswith("X-ALT-DESC") for one in row["other"])
    assert "PRIORITY: 5" in row["other"] and "CLASS: PUBLIC" in row["other"]
    owner.again(path)


GOOGLE = """\
BEGIN:VCARD
VERSION:3.0
FN:Søren Ångström
N:Ångström;Søren;;;
item1.ORG:Havn A/S
item1.X-ABLabel:
EMAIL;TYPE=INTERNET;TYPE=HOME:soren@example.org
EMAIL;TYPE=INTERNET:s2@example.org
TEL;TYPE=WORK:+45 12 34
item2.URL:http\\://www.google.com/profiles/1
item2.X-ABLabel:PROFILE
PHOTO:https://lh3.googleusercontent.com/contacts/x
CATEGORIES:Friends,myContacts
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:
N:;;;;
EMAIL;TYPE=INTERNET:nobody@example.org
END:VCARD
"""
ICLOUD = """\
BEGIN:VCARD\r
VERSION:3.0\r
PRODID:-//Apple Inc.//iOS 19.0//EN\r
N:Brønd;Åse;;;\r
FN:Åse Brønd\r
item1.ADR;type=HOME;type=pref:;;Strandvejen 3\\nTh.;Aarhus;;8000;Danmark\r
item1.X-ABADR:dk\r
item2.X-ABDATE;type=pref:2011-05-05\r
item2.X-ABLabel:_$!<Anniversary>!$_\r
BDAY;VALUE=date;X-APPLE-OMIT-YEAR=1604:1604-04-12\r
X-ABUID:1234-5678\\:ABPerson\r
PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQSkZJRgABAQAAAQABAAD/4gIoSUNDX1BST0ZJTEUAAQE\r
 AAAIYAAAAAAIQAABtbnRyUkdCIFhZWiAAAAAAAAAAAAAAAABhY3NwAAAAAAAAAAAAAAAA\r
END:VCARD\r
"""


def test_address_books_of_google_and_apple(owner: Owner) -> None:
    folder = write(owner.home / "books", {"contacts.vcf": GOOGLE, "iCloud vCards.vcf": ICLOUD})
    owner.bring(folder)
    rows = {row["data"]["name"]: row["data"] for row in owner.rows("contacts")}
    assert rows.keys() == {"Søren Ångström", "nobody@example.org", "Åse Brønd"}
    google = rows["Søren Ångström"]
    assert google["emails"] == ["soren@example.org (home)", "s2@example.org"]
    assert google["groups"] == ["Friends, myContacts"] or google["groups"] == [
        "Friends",
        "myContacts",
    ]
    assert any("googleusercontent" in one for one in google["other"])
    assert any("2011-05-05" in one for one in rows["Åse Brønd"]["other"])
    assert len(owner.rows("attachments")) == 1
    owner.again(folder)


def test_mail_that_python_wrote(owner: Owner) -> None:
    box = mailbox.Maildir(owner.home / "box")
    letter = EmailMessage()
    letter["From"], letter["To"] = "Zoë <zoe@example.org>", "crew@example.org"
    letter["Subject"], letter["Date"] = "Öl für die Lampe", "Tue, 03 Mar 2026 10:00:00 +0100"
    letter["Message-ID"] = "<1@example.org>"
    letter.set_content("Bitte bestellen: 3 Kanister Petroleum.\n")
    letter.add_attachment(b"a;b\n1;2\n", maintype="text", subtype="csv", filename="Größe.csv")
    box.add(letter)
    box.add_folder("Archiv").add(mailbox.MaildirMessage(letter))
    assert "emails that an earlier file also contains (1)" in owner.bring(owner.home / "box")
    (row,) = owner.rows("messages")
    assert row["data"]["subject"] == "Öl für die Lampe"
    (attached,) = owner.rows("attachments")
    assert attached["data"]["filename"] == "Größe.csv"
    owner.finds("petroleum", "messages:1@example.org")
    owner.again(owner.home / "box")


WHATSAPP = {
    "Chat de WhatsApp con Marea.txt": """\
13/3/26, 9:05\u202fp.\u00a0m. - Los mensajes y las llamadas están cifrados de extremo a extremo.
13/3/26, 9:05\u202fp.\u00a0m. - José: ¿Dónde está el faro?
13/3/26, 9:06\u202fp.\u00a0m. - Ñusta 🌊: Al final del muelle: 200 metros
14/3/26, 12:01\u202fa.\u00a0m. - José: <Multimedia omitido>
""",
    "WhatsApp Chat mit Lotsen.txt": """\
03.04.26, 07:15 - Du hast die Gruppe „Lotsen“ erstellt
03.04.26, 07:16 - Jörg: Ablösung um 8
04.04.26, 07:16 - Jörg: IMG-1.jpg (Datei angehängt)
""",
    "WhatsApp Chat with US.txt": """\
[4/3/26, 7:15:00 PM] Ann: high water
[12/3/26, 7:15:00 AM] Ann: low water
""",
}


@pytest.mark.parametrize(
    ("name", "texts", "first"),
    [
        (list(WHATSAPP)[0], 4, "2026-03-13T21:05:00"),
        (list(WHATSAPP)[1], 3, "2026-04-03T07:15:00"),
        (list(WHATSAPP)[2], 2, "2026-04-03T19:15:00"),
    ],
)
def test_chats_of_whatsapp_in_other_languages(
    owner: Owner, name: str, texts: int, first: str
) -> None:
    path = write(owner.home, {name: WHATSAPP[name]}) / name
    assert "is read as whatsapp" in owner.bring(path)
    rows = sorted((row["data"] for row in owner.rows("chat_messages")), key=lambda r: r["position"])
    assert len(rows) == texts and rows[0]["sent_at"] == first
    assert rows[0]["conversation"] in ("Marea", "Lotsen", "US")
    owner.again(path)


def test_a_slack_export_with_blocks_groups_and_strangers(owner: Owner) -> None:
    text = {"type": "text", "text": "Nur im Block: Ebbe"}
    section = {"type": "rich_text_section", "elements": [text, {"type": "user", "user_id": "U1"}]}
    messages = [
        {
            **{"type": "message", "user": "U1", "ts": "1772528400.000100", "text": ""},
            "blocks": [{"type": "rich_text", "elements": [section]}],
        },
        {"type": "message", "subtype": "channel_join", "user": "U1", "ts": "1772528401.000100"}
        | {"text": "<@U1> has joined the channel"},
        {
            "type": "message",
            "user": "USLACKBOT",
            "ts": "1772528402.000100",
            "text": "<!here> a <#C2>",
        },
    ]
    files = {
        "users.json": [{"id": "U1", "name": "ada", "deleted": True, "profile": {}}],
        "channels.json": [{"id": "C1", "name": "general", "members": []}],
        "groups.json": [{"id": "G1", "name": "geheim", "members": ["U1"]}],
        "mpims.json": [{"id": "G2", "name": "mpdm-ada--noor-1", "members": ["U1"]}],
        "canvases.json": [],
        "general/2026-03-03.json": messages,
        "geheim/2026-03-03.json": [{"user": "U1", "ts": "1772528400.1", "text": "Schatz"}],
    }
    path = zipped(owner.home / "x.zip", {n: json.dumps(f) for n, f in files.items()})
    report = owner.bring(path)
    assert "canvases.json" in report
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert "Ebbe" in rows["C1-1772528400.000100"]["text"]
    assert rows["C1-1772528401.000100"]["text"] == "@ada has joined the channel"
    owner.finds("Schatz", "chat_messages:G1-1772528400.1")
    owner.again(path)


def newer_chatgpt() -> list[dict[str, Any]]:
    def node(key: str, parent: str | None, children: list[str], message: Any) -> dict[str, Any]:
        return {"id": key, "message": message, "parent": parent, "children": children}

    def message(key: str, role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        author = {"role": role, "name": more.pop("name", None), "metadata": {}}
        usual = {"status": "finished_successfully", "end_turn": True, "weight": 1.0}
        usual |= {"metadata": {}, "recipient": "all", "update_time": None}
        return {"id": key, "author": author, "create_time": 1772528400.1, "content": content} | (
            usual | more
        )

    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Tide", "content": "Neap?"}]}
    audio = {"content_type": "audio_transcription", "text": "Spoken words about kelp"}
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0a1b"}
    mapping = {
        "client-created-root": node("client-created-root", None, ["1"], None),
        "1": node(
            "1",
            "client-created-root",
            ["2"],
            message(
                "1", "user", {"content_type": "multimodal_text", "parts": [audio, pointer, "look"]}
            ),
        ),
        "2": node("2", "1", ["3"], message("2", "assistant", thoughts)),
        "3": node(
            "3",
            "2",
            ["4"],
            message(
                "3",
                "assistant",
                {"content_type": "code", "language": "python", "text": "print('pier')"},
            ),
        ),
        "4": node(
            "4",
            "3",
            [],
            message(
                "4", "tool", {"content_type": "execution_output", "text": "pier"}, name="python"
            ),
        ),
    }
    return [{"title": None, "create_time": 1772528400.0, "mapping": mapping, "id": "x1"}]


def newer_claude() -> list[dict[str, Any]]:
    tool = {"type": "tool_use", "name": "web_search", "input": {"query": "barnacle"}}
    result = {
        "type": "tool_result",
        "name": "web_search",
        "content": [{"type": "text", "text": "Krebs"}],
    }
    return [
        {
            **{"uuid": "k", "name": "", "summary": "", "created_at": "2026-03-03T10:00:00Z"},
            "chat_messages": [
                {
                    **{"uuid": "m", "text": "", "sender": "assistant"},
                    "content": [{"type": "thinking", "thinking": "hm"}, tool, result],
                    **{"created_at": "2026-03-03T10:00:00Z", "attachments": [], "files": []},
                    "parent_message_uuid": "00000000-0000-4000-8000-000000000000",
                }
            ],
        }
    ]


def test_newer_forms_of_chatgpt_and_claude(owner: Owner) -> None:
    folder = write(
        owner.home / "ai",
        {
            "openai/conversations.json": json.dumps(newer_chatgpt()),
            "openai/file_0a1b-sanitized.jpg": b"\xff\xd8\xff",
            "openai/user.json": '{"id": "user-1", "email": "ada@example.org"}',
            "anthropic/conversations.json": json.dumps(newer_claude()),
            "anthropic/users.json": '[{"uuid": "x", "full_name": "Ada"}]',
        },
    )
    owner.bring(folder)
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows.keys() == {"1", "2", "3", "4", "m"}
    assert "kelp" in rows["1"]["text"] and rows["4"]["author"] == "python"
    assert "barnacle" in rows["m"]["text"] and "Krebs" in rows["m"]["text"]
    assert len(owner.rows("attachments")) == 1
    owner.again(folder)


def test_notes_of_notion_and_logseq(owner: Owner) -> None:
    page = "Hafen 0123456789abcdef0123456789abcdef"
    table = f"Boote {page[6:]}"
    path = zipped(
        owner.home / "Export.zip",
        {
            f"Wiki/{page}.md": f"# Hafen\n\n![](Hafen%200123/bild.png)\n[Boote]({table}.csv)\n",
            "Wiki/Hafen 0123/bild.png": b"\x89PNG",
            f"Wiki/{table}.csv": "\ufeffName,Länge\nMöwe,12\n",
            "logseq/journals/2026_03_03.md": "- TODO Boje streichen #hafen\n\t- collapsed:: true\n",
            "logseq/pages/contents.md": "---\n---\n",
        },
    )
    owner.bring(path)
    rows = {row["id"]: row["data"] for row in owner.rows("notes")}
    assert rows[f"Wiki/{page}.md"]["title"] == "Hafen" and len(rows) == 3
    day = rows["logseq/journals/2026_03_03.md"]
    assert day["written_at"] == "2026-03-03" and day["tags"] == ["hafen"]
    assert {row["data"]["filename"] for row in owner.rows("attachments")} >= {"bild.png"}
    owner.finds("Möwe", "Boote:")
    owner.again(path)


def test_bookmarks_of_chrome_and_safari(owner: Owner) -> None:
    chrome = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>
<DL><p>
    <DT><H3 ADD_DATE="1772528400" PERSONAL_TOOLBAR_FOLDER="true">Bookmarks bar</H3>
    <DL><p>
        <DT><H3 ADD_DATE="1">空</H3>
        <DL><p>
        </DL><p>
        <DT><A HREF="https://x.org/a" ADD_DATE="1" ICON="data:image/png;base64,AA">A &amp; B</A>
    </DL><p>
    <DT><A HREF="https://x.org/b">B</A>
</DL><p>
"""
    path = write(owner.home, {"bookmarks_3_3_26.html": chrome}) / "bookmarks_3_3_26.html"
    owner.bring(path)
    rows = {row["data"]["title"]: row["data"].get("folder") for row in owner.rows("bookmarks")}
    assert rows == {"A & B": "Bookmarks bar", "B": None}
    owner.again(path)


def test_a_workbook_with_a_filter_and_dates(owner: Owner) -> None:
    book = Workbook()
    book.active.append(["Datum", "Text", None, "Preis €"])
    for day in range(1, 4):
        book.active.append([datetime(2026, 3, day, 8, 30), f"Zeile {day}", "x", 0.3])
    book.active.auto_filter.ref = "A1:D4"
    book.save(owner.home / "Umsatz.xlsx")
    assert counts(owner.bring(owner.home / "Umsatz.xlsx"))["new"] == 3
    row, *_ = owner.rows("Umsatz")
    assert row["data"]["Preis €"] == "0.3" and "T08:30:00" in row["data"]["Datum"]
    owner.again(owner.home / "Umsatz.xlsx")


def test_a_database_of_a_browser(owner: Owner) -> None:
    database = Database(owner.home / "places.sqlite")
    for statement in (
        "create table moz_places (id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR)",
        "create table moz_historyvisits (id INTEGER PRIMARY KEY, place_id INT, visit_date INTEGER)",
        "create table [odd name; drop] ([a b] TEXT, [select] INT, PRIMARY KEY ([a b], [select]))",
        "insert into moz_places values (1, 'https://x.org', 'Leuchtfeuer'), (2, 'u', NULL)",
        "insert into moz_historyvisits values (1, 1, 1772528400000000)",
        "insert into [odd name; drop] values ('ä', 1)",
    ):
        database.execute(statement)
    database.conn.commit()
    database.close()
    assert counts(owner.bring(owner.home / "places.sqlite"))["new"] == 4
    owner.finds("Leuchtfeuer", "moz_places:1")
    owner.again(owner.home / "places.sqlite")
