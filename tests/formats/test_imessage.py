"""Chats of Apple's Messages: texts that are only in typed streams, reactions, files and times."""

import sqlite3
from contextlib import closing

import pytest

from service.importing.readers.imessage import attributed_text
from tests.formats.owner import Owner, counts, write, zipped

SCHEMA = """
CREATE TABLE handle (ROWID INTEGER PRIMARY KEY, id TEXT, service TEXT);
CREATE TABLE chat (ROWID INTEGER PRIMARY KEY, guid TEXT, chat_identifier TEXT, display_name TEXT);
CREATE TABLE chat_handle_join (chat_id INTEGER, handle_id INTEGER);
CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER, message_date INTEGER);
CREATE TABLE attachment (ROWID INTEGER PRIMARY KEY, guid TEXT, filename TEXT, mime_type TEXT);
CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER);
CREATE TABLE message (
    ROWID INTEGER PRIMARY KEY, guid TEXT, text TEXT, attributedBody BLOB, handle_id INTEGER,
    date INTEGER, date_edited INTEGER, is_from_me INTEGER, associated_message_guid TEXT,
    associated_message_type INTEGER, associated_message_emoji TEXT, thread_originator_guid TEXT
);
INSERT INTO handle VALUES (1, '+4917055555', 'iMessage'), (2, 'noor@x.org', 'iMessage');
INSERT INTO chat VALUES (1, 'iMessage;-;+4917055555', '+4917055555', ''),
    (2, 'iMessage;+;chat7', 'chat7', 'Lotsen');
INSERT INTO chat_handle_join VALUES (1, 1), (2, 1), (2, 2);
INSERT INTO attachment VALUES
    (1, 'A', '~/Library/Messages/Attachments/ab/11/A/IMG_1.jpg', 'image/jpeg'),
    (2, 'B', '/var/mobile/Library/Messages/Attachments/cd/12/B/IMG_1.jpg', 'image/jpeg');
INSERT INTO message_attachment_join VALUES (3, 1), (4, 2);
"""
#: What precedes a length, and its bytes.
LENGTHS = ((b"", 1), (b"\x81", 2), (b"\x82", 4))
#: 2026-03-03T09:15:00Z in nanoseconds since 2001.
AT = (1_772_529_300 - 978_307_200) * 10**9


def typed_stream(text: str, *, mutable: bool = False) -> bytes:
    """The archive in which Messages stores a formatted text."""
    raw = text.encode()
    size = len(raw)
    tag, width = next(entry for entry in LENGTHS if size < 1 << 8 * entry[1] - 1)
    length = tag + size.to_bytes(width, "little")
    name, string = b"\x12NSAttributedString\x00", b"\x84\x84\x84\x08NSString\x01\x94"
    if mutable:
        name = b"\x19NSMutableAttributedString\x00\x84\x84\x12NSAttributedString\x00"
        string = b"\x84\x84\x84\x0fNSMutableString\x01\x84\x84\x08NSString\x01\x95"
    head = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84" + name
    head += b"\x84\x84\x08NSObject\x00\x85\x92" + string
    tail = b"\x86\x84\x02iI\x01\x04\x92\x84\x84\x84\x0cNSDictionary\x00"
    return head + b"\x84\x01+" + length + raw + tail + string[-1:] + b"\x84\x01i\x00\x86\x86"


def database(*messages: tuple[object, ...]) -> bytes:
    """The bytes of a database with chats."""
    with closing(sqlite3.connect(":memory:")) as db, db:
        db.executescript(SCHEMA)
        db.executemany(f"INSERT INTO message VALUES ({', '.join('?' * 12)})", messages)
        for number, *_ in messages:
            chat = 2 if number == 4 else 1
            db.execute("INSERT INTO chat_message_join VALUES (?, ?, ?)", (chat, number, AT))
        db.commit()
        return db.serialize()


LONG = "Die Fähre wartet nicht. 🌊 " * 20
NONE = (None,) * 4
ROWS = (
    (1, "G1", "Kommst du?", None, 1, AT, 0, 0, *NONE),
    (2, "G2", None, typed_stream(LONG, mutable=True), 0, AT + 1, 0, 1, None, 0, None, "G1"),
    (3, "G3", None, typed_stream("\ufffcSiehe Bild"), 1, AT + 2, AT + 3, 0, *NONE),
    (4, "G4", "\ufffc", None, 2, 794_222_100, 0, 0, *NONE),
    (5, "G5", None, None, 1, AT + 5, 0, 0, "p:0/G1", 2001, None, None),
    (6, "G6", None, None, 0, AT + 6, 0, 1, "bp:G1", 2006, "🦀", None),
    (7, "G7", None, None, 2, AT + 7, 0, 0, "p:0/G1", 2000, None, None),
    (8, "G8", None, None, 2, AT + 8, 0, 0, "p:0/G1", 3000, None, None),
    (9, "G9", None, b"\x04\x0bstreamtyped broken", 1, AT + 9, 0, 0, *NONE),
)


def test_messages_whose_text_is_only_formatted_have_it(owner: Owner) -> None:
    picture = {"Attachments/ab/11/A/IMG_1.jpg": b"\xff\xd8\xff"}
    folder = write(owner.home / "Messages", {**picture, "chat.db": database(*ROWS)})
    report = owner.bring(folder)
    assert "chat.db is read as imessage" in report and counts(report)["new"] == 7
    assert "Messages whose formatted text cannot be read: 1." in report
    assert "Attachments that are not next to the database: 1." in report
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows.keys() == {"G1", "G2", "G3", "G4"}
    assert rows["G1"] == {
        **{"id": "G1", "thread_id": "iMessage;-;+4917055555", "conversation": "+4917055555"},
        **{"conversation_id": "iMessage;-;+4917055555", "author": "+4917055555"},
        **{"text": "Kommst du?", "sent_at": "2026-03-03T09:15:00Z", "position": 1},
        **{"app": "Messages", "reactions": ["liked +4917055555", "🦀 Me"]},
    }
    assert rows["G2"]["text"] == LONG.strip() and rows["G2"]["author"] == "Me"
    assert rows["G2"]["reply_to"] == "G1" and rows["G3"]["text"] == "Siehe Bild"
    assert rows["G4"]["conversation"] == "Lotsen" and "text" not in rows["G4"]
    assert rows["G4"]["sent_at"] == "2026-03-03T09:15:00Z", "an old version counts seconds"
    (file,) = [row["data"] for row in owner.rows("attachments")]
    assert file["message_id"] == "G3", "a file with the same name in another folder is not it"
    chats = {row["data"]["title"]: row["data"] for row in owner.rows("conversations")}
    assert chats["Lotsen"]["members"] == ["+4917055555", "noor@x.org"]
    owner.again(folder)


def test_a_backup_in_an_archive_is_recognized_and_can_be_read_as_tables(owner: Owner) -> None:
    path = write(owner.home, {"sms.db": database(*ROWS[:1])}) / "sms.db"
    archive = zipped(owner.home / "backup.zip", {"sms.db": path.read_bytes()})
    assert "sms.db is read as imessage" in owner.bring(archive)
    owner.finds("Kommst", "chat_messages:G1")
    assert "New stream 'message'" in owner.bring(path, "--format", "sqlite")


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 32_767, 32_768, 70_000])
def test_texts_of_any_length_are_read_and_none_that_is_cut(size: int) -> None:
    stream = typed_stream("x" * size)
    assert attributed_text(stream) == "x" * size
    assert attributed_text(stream[: stream.index(b"\x84\x01+") + 3]) is None
    assert not size or attributed_text(stream[: stream.index(b"\x86\x84\x02iI") - 1]) is None
