"""Chats: Slack, WhatsApp, ChatGPT and Claude, with people, threads and files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.owner import Owner, counts, write, zipped

SLACK: dict[str, Any] = {
    "users.json": [
        {"id": "U1", "name": "ada", "profile": {"real_name": "Ada König", "email": "ada@x.org"}},
        {"id": "U2", "name": "noor", "real_name": "Noor", "profile": {"display_name": "nn"}},
    ],
    "channels.json": [
        {
            **{"id": "C1", "name": "hafen", "created": 1767225600, "members": ["U1", "U2"]},
            "topic": {"value": "Alles über Gezeiten"},
        }
    ],
    "dms.json": [{"id": "D1", "created": 1767225600, "members": ["U1", "U2"]}],
    "integration_logs.json": [],
    "hafen/2026-03-03.json": [
        {"type": "message", "user": "U1", "ts": "1772528400.000100", "text": "Wer hat die Lampe?"}
        | {"thread_ts": "1772528400.000100", "reactions": [{"name": "eyes", "users": ["U2"]}]},
        {"type": "message", "user": "U2", "ts": "1772528460.000200", "text": "<@U1> in &lt;214&gt;"}
        | {"thread_ts": "1772528400.000100"},
        {
            "type": "message",
            "user": "U9",
            "ts": "1772528500.000300",
            "text": "<https://x.org|Plan> 🌊",
        }
        | {
            "user_profile": {"real_name": "Gast"},
            "files": [{"id": "F1", "name": "plan.txt", "permalink": "https://slack/F1"}],
        },
        {"type": "message", "text": "no time"},
    ],
    "hafen/2026-03-04.json": [
        {"type": "message", "subtype": "bot_message", "username": "Wetter", "text": "Sturmflut"}
        | {
            "ts": "1772614800.000000",
            "attachments": [{"title": "Warnung", "fallback": "Pegel 3 m"}],
        },
    ],
    "D1/2026-03-04.json": [{"user": "U2", "ts": "1772614801.000000", "text": "Nur für dich"}],
    "__uploads/F1/plan.txt": "Pfahlbau",
}


def slack() -> dict[str, bytes | str]:
    return {n: f if isinstance(f, str) else json.dumps(f) for n, f in SLACK.items()}


def test_a_slack_export_has_the_names_of_people_channels_and_threads(owner: Owner) -> None:
    path = zipped(owner.home / "Hafenamt Slack export.zip", slack())
    report = owner.bring(path, code=3)
    assert "channels.json is read as slack." in report and "this message has no ts" in report
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    first, answer = rows["C1-1772528400.000100"], rows["C1-1772528460.000200"]
    assert (first["author"], first["conversation"]) == ("Ada König", "#hafen")
    assert first["sent_at"] == "2026-03-03T09:00:00.000100Z" and first["reactions"] == [
        ":eyes: Noor"
    ]
    assert answer["text"] == "@Ada König in <214>" and answer["reply_to"] == first["id"]
    assert answer["thread_id"] == first["thread_id"] == "C1-1772528400.000100"
    assert first["position"] < answer["position"]
    assert rows["C1-1772528500.000300"]["author"] == "Gast"
    assert rows["D1-1772614801.000000"]["conversation"] == "Ada König, Noor"
    owner.finds("Sturmflut", "chat_messages:C1-1772614800.000000")
    owner.finds("Pfahlbau", "attachments:C1-1772528500.000300#1")
    owner.finds("ada@x.org", "contacts:U1")
    owner.finds("Gezeiten", "conversations:C1")
    owner.again(path, code=3)
    folder = write(owner.home / "Hafenamt Slack export", slack())
    owner.again(folder, code=3)


IPHONE = """\
\ufeff[13.03.26, 22:11:12] Hafen: \u200eNachrichten sind Ende-zu-Ende-verschlüsselt.
[13.03.26, 22:11:12] Ada König: Kommst du?
Die Fähre wartet nicht.
[13.03.26, 22:11:12] Ada König: Kommst du?
\u200e[13.03.26, 22:12:00] ~ Noor: \u200e<Anhang: 00000004-PHOTO.jpg>
[14.03.26, 08:00:00] Noor: \u200e<Anhang: 00000005-AUDIO.opus>
[14.03.26, 08:01:00] Noor: 🌊 Treffpunkt: Mole 3
"""
ANDROID = """\
3/13/26, 9:05\u202fPM - Messages and calls are end-to-end encrypted.
3/13/26, 9:05\u202fPM - Ada: IMG-20260313-WA0001.jpg (file attached)
the lighthouse
3/13/26, 9:06\u202fPM - +49 170 555: <Media omitted>
4/1/26, 7:00\u202fAM - Ada changed the subject to "Pier"
"""


def test_a_whatsapp_chat_of_an_iphone_keeps_lines_people_and_files(owner: Owner) -> None:
    files: dict[str, bytes | str] = {"_chat.txt": IPHONE, "00000004-PHOTO.jpg": b"\xff\xd8\xff"}
    path = zipped(owner.home / "WhatsApp Chat - Familie König.zip", files)
    report = owner.bring(path)
    assert "_chat.txt is read as whatsapp." in report and "00000005-AUDIO.opus" in report
    assert "PHOTO.jpg cannot be read" not in report
    rows = [row["data"] for row in owner.rows("chat_messages")]
    assert len(rows) == 6 and {row["conversation"] for row in rows} == {"Familie König"}
    rows.sort(key=lambda row: int(row["position"]))
    assert rows[1]["text"] == "Kommst du?\nDie Fähre wartet nicht."
    assert rows[1]["sent_at"] == "2026-03-13T22:11:12" and rows[3]["author"] == "Noor"
    (conversation,) = owner.rows("conversations")
    assert set(conversation["data"]["members"]) == {"Hafen", "Ada König", "Noor"}
    assert len(owner.rows("attachments")) == 1
    assert "Treffpunkt" in owner.finds("Treffpunkt", "chat_messages:")
    owner.again(path)


def test_a_whatsapp_chat_of_android_in_english(owner: Owner) -> None:
    name = "WhatsApp Chat with Pier crew.txt"
    folder = {name: ANDROID, "IMG-20260313-WA0001.jpg": b"\xff\xd8\xff"}
    path = write(owner.home / "chat", folder)
    owner.bring(path)
    rows = sorted((row["data"] for row in owner.rows("chat_messages")), key=lambda r: r["position"])
    assert [row["sent_at"] for row in rows] == [
        *("2026-03-13T21:05:00", "2026-03-13T21:05:00", "2026-03-13T21:06:00"),
        "2026-04-01T07:00:00",
    ]
    assert rows[0]["kind"] == "notice" and rows[2]["author"] == "+49 170 555"
    assert rows[1]["text"].endswith("the lighthouse") and len(owner.rows("attachments")) == 1
    owner.again(path)


def node(key: str, parent: str | None, *children: str, **message: Any) -> dict[str, Any]:
    return {"id": key, "parent": parent, "children": children, "message": message or None}


def said(key: str, role: str, *parts: Any, at: float | None = None, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": parts}
    return {"id": key, "author": {"role": role}, "create_time": at, "content": content, **more}


CHATGPT = [
    {
        **{"title": "Gezeiten erklären", "create_time": 1772528400.5, "update_time": 1772528500.0},
        "mapping": {
            "r": node("r", None, "s"),
            "s": node("s", "r", "q", **said("s", "system", "")),
            "q": node("q", "s", "a", "b", **said("q", "user", "Warum Flut?", at=1772528401.25)),
            "a": node("a", "q", **said("a", "assistant", "Der Mond 🌕 zieht.", at=1772528402.0)),
            "b": node(
                "b",
                "q",
                **said(
                    *("b", "assistant", {"asset_pointer": "file-service://file-AB1"}, "Bild dazu"),
                    metadata={"model_slug": "gpt-5"},
                ),
            ),
        },
        "conversation_id": "conv-1",
    },
    {"title": "no mapping"},
]
CLAUDE = [
    {
        **{"uuid": "k1", "name": "Harbour poem", "created_at": "2026-03-03T10:00:00.123456Z"},
        "account": {"uuid": "x"},
        "chat_messages": [
            {
                **{"uuid": "m1", "text": "old text", "sender": "human"},
                "content": [{"type": "text", "text": "Write about the bollard."}],
                "created_at": "2026-03-03T10:00:01Z",
                "attachments": [{"file_name": "notes.txt", "extracted_content": "Rust, Salz, 春"}],
                "files": [{"file_name": "photo.png"}],
            },
            {
                **{"uuid": "m2", "text": "Iron stump", "sender": "assistant", "content": []},
                "created_at": "2026-03-03T10:00:02Z",
            },
        ],
    }
]


def test_conversations_with_chatgpt_keep_branches_and_pictures(owner: Owner) -> None:
    files: dict[str, bytes | str] = {
        "conversations.json": json.dumps(CHATGPT),
        "file-AB1-flut.png": b"\x89PNG",
        "chat.html": "<html><body></body></html>",
    }
    path = zipped(owner.home / "chatgpt.zip", files)
    report = owner.bring(path, code=3)
    assert "conversations.json is read as chatgpt." in report and "no mapping" in report
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows.keys() == {"q", "a", "b"}
    assert rows["b"]["reply_to"] == rows["a"]["reply_to"] == "q" and rows["b"]["model"] == "gpt-5"
    assert rows["q"]["sent_at"] == "2026-03-03T09:00:01.250000Z"
    (picture,) = owner.rows("attachments")
    assert picture["data"]["filename"] == "file-AB1-flut.png"
    owner.finds("Mond", "chat_messages:a")
    owner.again(path, code=3)


@pytest.mark.parametrize("folder", [True, False])
def test_conversations_with_claude_keep_the_texts_of_files(owner: Owner, folder: bool) -> None:
    files: dict[str, bytes | str] = {"conversations.json": json.dumps(CLAUDE, indent=1)}
    path: Path = write(owner.home / "claude", files)
    report = owner.bring(path if folder else path / "conversations.json")
    assert "is read as claude." in report and "(first: photo.png)" in report
    assert counts(report)["new"] == 4
    owner.finds("bollard", "chat_messages:m1")
    owner.finds("Salz", "attachments:m1#1001")
    assert {row["data"]["thread_id"] for row in owner.rows("chat_messages")} == {"k1"}
    owner.again(path)


def test_conversations_that_are_cut_off_are_refused_with_the_place(owner: Owner) -> None:
    text = json.dumps(CLAUDE)[:-20]
    path = write(owner.home / "claude", {"conversations.json": text})
    assert "conversations.json is not JSON: The text ends within a value" in owner.bring(
        path, code=1
    )


LOCALES = {
    "31/10/2024 \u00e0 15:50 - {}: phare": "15:50:00",
    "2024-10-31 15:50 - {}: fyr": "15:50:00",
    "2024/10/31 \u4e0b\u53483:50 - {}: \u706f": "15:50:00",
    "2024\ub144 10\uc6d4 31\uc77c \uc624\ud6c4 3:50, {} : \ub4f1\ub300": "15:50:00",
    "[2024. 10. 31. \uc624\ud6c4 3:50:12] {}: \ub4f1\ub300": "15:50:12",
    "\u200f\u0663\u0661\u200f/\u0661\u0660\u200f/\u0662\u0660\u0662\u0664\u060c "
    "\u0663:\u0665\u0660 \u0645 - {}: x": "15:50:00",
    "31.10.2024 klo 15.50 - {}: majakka": "15:50:00",
    "31.10.2024 \u0433., 15:50 \u0447. - {}: \u0444\u0430\u0440": "15:50:00",
    "15:50, 31/10/2024 - {}: \u0111\u00e8n": "15:50:00",
    "31/10/24, 3:50 \u03bc.\u03bc. - {}: \u03c6\u03ac\u03c1\u03bf\u03c2": "15:50:00",
    "31/10/24, 3:50 \u0905\u092a\u0930\u093e\u0939\u094d\u0928 - {}: x": "15:50:00",
    "31/10/2024, 3:50 CH - {}: \u0111\u00e8n": "15:50:00",
    "[31.10.24, 3:50:12 PM] {}: Leuchtturm": "15:50:12",
}


@pytest.mark.parametrize("line", LOCALES)
def test_whatsapp_chats_of_any_locale(owner: Owner, line: str) -> None:
    content = "\n".join(line.format(name) for name in ("Luc", "Eve")) + "\n"
    owner.bring(write(owner.home / "x", {"WhatsApp Chat with Pier.txt": content}))
    rows = [row["data"] for row in owner.rows("chat_messages")]
    assert {row["author"] for row in rows} == {"Luc", "Eve"}
    assert {row["sent_at"] for row in rows} == {f"2024-10-31T{LOCALES[line]}"}


@pytest.mark.parametrize(
    "text",
    ["2024-10-31 15:50:12 - INFO: up\n2024-10-31 15:50:13 - INFO: on\n", "3.3.26 9:00 - Pier\nx\n"],
)
def test_a_log_and_a_dated_note_are_no_chats(owner: Owner, text: str) -> None:
    owner.bring(write(owner.home / "x", {"pier.txt": text}))
    assert len(owner.rows("notes")) == 1
