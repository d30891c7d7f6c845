"""Google Takeout as a whole: each part by its own format, the rest is named."""

import json
from typing import Any

from tests.formats.owner import Owner, zipped

SEARCH = {
    "header": "Search",
    "title": "Searched for Gezeiten „Husum“",
    "titleUrl": "https://www.google.com/search?q=Gezeiten",
    "subtitles": [{"name": "Husum", "url": "https://maps.google.com/?q=54.5"}, {}],
    "time": "2026-03-03T09:15:00.123Z",
    "products": ["Search"],
    "activityControls": ["Web & App Activity"],
}
GEMINI = {
    "header": "Gemini Apps",
    "title": "Prompted Wann ist Springflut?",
    "time": "2026-03-04T10:00:00.456Z",
    "products": ["Gemini Apps"],
    "activityControls": ["Gemini Apps Activity"],
    "safeHtmlItem": [{"html": "<p>Bei <b>Neumond</b> &amp; Vollmond 🌕.</p>"}],
    "attachedFiles": ["karte.png", "missing.pdf"],
}
FEEDBACK = {**GEMINI, "title": "Gave feedback: Good response", "safeHtmlItem": []}
ADA = {"name": "Ada König", "email": "ada@x.org", "user_type": "Human"}
NOOR = {"name": "Noor", "email": "noor@x.org", "user_type": "Human"}
WRAPPED = "private_do_not_access_or_else_safe_url_wrapped_value"
MESSAGES: list[dict[str, Any]] = [
    {
        "creator": ADA,
        "created_date": "Tuesday, March 3, 2026 at 9:15:00\u202fAM UTC",
        "text": "Wer hat die Lampe? https://x.org/a",
        "annotations": [{"url_metadata": {"title": "A", "url": {WRAPPED: "https://x.org/a"}}}],
        "topic_id": "T1",
        "message_id": "AAA/T1/T1",
        "reactions": [{"emoji": {"unicode": "👀"}, "reactor_emails": ["noor@x.org"]}],
    },
    {
        "creator": NOOR,
        "created_date": "Tuesday, March 3, 2026 at 9:16:00 AM UTC",
        "text": "Ich!",
        "attached_files": [{"original_name": "lampe.html", "export_name": "File-lampe.html"}],
        "topic_id": "T1",
        "message_id": "AAA/T1/M2",
    },
    {"creator": NOOR, "created_date": "mardi 3 mars", "topic_id": "T2", "message_id": "AAA/T2/T2"},
]
GROUP = {"name": "Hafenmeister", "members": [ADA, NOOR]}
MAIL = """\
From 1@xxx Tue Mar 03 09:15:00 +0000 2026
X-Gmail-Labels: Inbox
Message-ID: <1@x.org>
From: Noor <noor@x.org>
Subject: Boje
Date: Tue, 03 Mar 2026 09:15:00 +0000

Die Boje ist weg.
"""
CARD = "BEGIN:VCARD\nVERSION:3.0\nFN:Noor\nEMAIL:noor@x.org\nEND:VCARD\n"
EVENT = """\
BEGIN:VCALENDAR
X-WR-CALNAME:Hafen
BEGIN:VEVENT
UID:1@google.com
DTSTART:20260703T090000Z
SUMMARY:Regatta
END:VEVENT
END:VCALENDAR
"""
KEEP = {
    "textContent": "Brot, Öl",
    "title": "Liste",
    "userEditedTimestampUsec": 1772529300000000,
    "createdTimestampUsec": 1772529300000000,
}
SPACE = "Takeout/Google Chat/Groups/Space AAA"
FIRST: dict[str, bytes | str] = {
    "Takeout/Mail/All mail Including Spam and Trash.mbox": MAIL,
    "Takeout/Contacts/All Contacts/All Contacts.vcf": CARD,
    "Takeout/Contacts/My Contacts/My Contacts.vcf": CARD,
    "Takeout/Calendar/Hafen.ics": EVENT,
    "Takeout/Keep/Liste.json": json.dumps(KEEP),
    "Takeout/Keep/Liste.html": "<html><body>Brot, Öl</body></html>",
    "Takeout/Fit/Activities/ride.tcx": b"\x00\x01",
}
SECOND: dict[str, bytes | str] = {
    "Takeout/My Activity/Search/MyActivity.json": json.dumps([SEARCH, 5], indent=2),
    "Takeout/My Activity/Gemini Apps/MyActivity.json": json.dumps([GEMINI, FEEDBACK], indent=2),
    "Takeout/My Activity/Gemini Apps/karte.png": b"\x89PNG",
    f"{SPACE}/messages.json": json.dumps({"messages": MESSAGES}, indent=2),
    f"{SPACE}/group_info.json": json.dumps(GROUP),
    f"{SPACE}/File-lampe.html": "<p>Pfahlbau</p>",
}


def test_archives_of_takeout_are_read_part_by_part_and_the_rest_is_named(owner: Owner) -> None:
    parts = (
        zipped(owner.home / "takeout-20260401-001.zip", FIRST),
        zipped(owner.home / "takeout-20260401-002.zip", SECOND),
    )
    report = owner.bring(*parts, code=3)
    for form in ("2 as activity", "1 as google-chat", "1 as mbox", "Files read: 2 as vcard"):
        assert form in report, report
    assert "ride.tcx" in report and "missing.pdf" in report
    assert "Messages whose date is left out, because it is not in English: 1." in report
    for stream in ("messages", "contacts", "events", "notes"):
        assert len(owner.rows(stream)) == 1, stream
    rows = {row["data"]["product"]: row["data"] for row in owner.rows("activity")}
    search, feedback = rows["Search"], rows["Gemini Apps"]
    assert search == {
        "id": search["id"],
        "title": "Searched for Gezeiten „Husum“",
        "url": "https://www.google.com/search?q=Gezeiten",
        "happened_at": "2026-03-03T09:15:00.123Z",
        "product": "Search",
        "products": ["Search"],
        "details": ["Husum: https://maps.google.com/?q=54.5"],
    }
    assert feedback["title"] == "Gave feedback: Good response"
    owner.finds("Springflut", "chat_messages:")
    owner.again(*parts, code=3)


def test_a_question_to_gemini_and_its_answer_are_a_thread(owner: Owner) -> None:
    owner.bring(zipped(owner.home / "takeout.zip", SECOND), code=3)
    rows = [row["data"] for row in owner.rows("chat_messages")]
    question, answer = sorted(
        (row for row in rows if row["app"] == "Gemini"), key=lambda row: row["position"]
    )
    key = question["id"]
    assert question == {
        **{"id": key, "thread_id": key, "conversation_id": "Gemini", "conversation": "Gemini"},
        **{"author": "user", "text": "Prompted Wann ist Springflut?", "app": "Gemini"},
        **{"sent_at": "2026-03-04T10:00:00.456Z", "position": 0},
    }
    assert answer["text"] == "Bei Neumond & Vollmond 🌕." and answer["author"] == "Gemini"
    assert (answer["thread_id"], answer["reply_to"]) == (key, key)
    files = {
        row["data"]["filename"]: row["data"]["message_id"] for row in owner.rows("attachments")
    }
    assert files == {"karte.png": key, "File-lampe.html": "AAA/T1/M2"}


def test_a_space_of_google_chat_has_replies_files_and_links(owner: Owner) -> None:
    owner.bring(zipped(owner.home / "takeout.zip", SECOND), code=3)
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows["AAA/T1/T1"] == {
        **{"id": "AAA/T1/T1", "thread_id": "Space AAA", "conversation_id": "Space AAA"},
        **{"conversation": "Hafenmeister", "author": "Ada König", "app": "Google Chat"},
        **{"text": "Wer hat die Lampe? https://x.org/a", "sent_at": "2026-03-03T09:15:00Z"},
        **{"position": 1772529300000000, "links": ["https://x.org/a"]},
        "reactions": ["👀 noor@x.org"],
    }
    assert rows["AAA/T1/M2"]["reply_to"] == "AAA/T1/T1"
    assert "sent_at" not in rows["AAA/T2/T2"] and "reply_to" not in rows["AAA/T2/T2"]
    chats = {row["id"]: row["data"] for row in owner.rows("conversations")}
    assert chats["Space AAA"]["members"] == ["Ada König", "Noor"]
    owner.finds("Pfahlbau", "attachments:AAA%2FT1%2FM2#1")
