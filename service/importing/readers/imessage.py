"""Chats from Apple's Messages, in a Mac's `chat.db` or a backup's `sms.db`.

Newer versions store the text of a message only in an archive of its formatted form.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from posixpath import dirname, join
from typing import Any, Final

from evidence.manifest.forms import FORMS
from evidence.times import moment
from service.importing.databases import open_database
from service.importing.rows import CHAT_MANIFEST, Chats
from service.importing.source import Content, Format, Item, Source

#: The first string of an archive of formatted text, with its length in 1, 2 or 4 bytes.
_STRING: Final = re.compile(
    rb"NSString\x01[\x84-\xff]\x84\x01\+(?:([\x00-\x7f])|\x81(..)|\x82(....))", re.DOTALL
)
#: What a text has for a file.
_FILE: Final = "\ufffc"
_EPOCH_SECONDS: Final = 978_307_200
#: Times above this are in nanoseconds, others, of old versions, in seconds.
_MOST_SECONDS: Final = 1 << 36
_REACTIONS: Final = ("loved", "liked", "disliked", "laughed at", "emphasized", "questioned")
_ADDED, _REMOVED = 2_000, 3_000
#: The folder of files, in their paths.
_FOLDER: Final = "/Messages/Attachments"
_UNREAD: Final = "Messages whose formatted text cannot be read: {}."
_EMPTY: Final = "Messages left out, because they have neither text nor files: {}."
_MISSING: Final = (
    "Attachments that are not next to the database: {}. To attach them, import the Messages folder."
)
_CHATS: Final = "SELECT ROWID AS number, * FROM chat ORDER BY ROWID"
#: A message belongs to the first chat that refers to it.
_MESSAGES: Final = """
    SELECT m.*, h.id AS person, (
        SELECT chat_id FROM chat_message_join WHERE message_id = m.ROWID ORDER BY chat_id LIMIT 1
    ) AS chat
    FROM message m LEFT JOIN handle h ON h.ROWID = m.handle_id ORDER BY m.date, m.ROWID
"""
_PEOPLE: Final = """
    SELECT chat_id, id FROM chat_handle_join JOIN handle h ON h.ROWID = handle_id ORDER BY handle_id
"""
_FILES: Final = """
    SELECT message_id, filename FROM message_attachment_join
    JOIN attachment a ON a.ROWID = attachment_id WHERE filename IS NOT NULL ORDER BY attachment_id
"""


def read(source: Source) -> Iterator[Item]:
    """The chats, then the messages with their reactions and files, in the order of their times."""
    chats, titles = Chats(source, "Messages"), dict[Any, tuple[str, str]]()
    people, files = defaultdict[Any, list[str]](list), defaultdict[Any, list[str]](list)
    with open_database(source) as database:
        for owner, person in database.execute(_PEOPLE):
            people[owner].append(str(person))
        for owner, path in database.execute(_FILES):
            files[owner].append(str(path))
        database.row_factory = sqlite3.Row
        for number, chat in enumerate(database.execute(_CHATS), start=1):
            members, key = people[chat["number"]], str(chat["guid"])
            title = str(chat["display_name"] or ", ".join(members) or chat["chat_identifier"])
            titles[chat["number"]] = key, title
            yield number, chats.conversation(key, title, members=members)
        reactions = _reactions(map(dict, database.execute(_MESSAGES)))
        for number, message in enumerate(database.execute(_MESSAGES), start=1):
            data = dict(message)
            if not data.get("associated_message_type"):
                marks = [f"{mark} {who}" for who, mark in reactions[data["guid"]].items()]
                chat = titles.get(data["chat"], ("", data["person"] or "Unknown"))
                paths = files[data["ROWID"]]
                yield number, partial(_message, source, chats, chat, data, marks, paths)
    chats.report()


def _reactions(messages: Iterator[dict[str, Any]]) -> dict[Any, dict[str, str]]:
    """The reactions to each message, by person, without those that were removed."""
    reactions = defaultdict[Any, dict[str, str]](dict)
    for message in messages:
        kind, target = message.get("associated_message_type"), message["associated_message_guid"]
        if not isinstance(kind, int) or not isinstance(target, str) or kind < _ADDED:
            continue
        marks, person = reactions[re.split("[/:]", target)[-1]], _author(message)
        emoji = message.get("associated_message_emoji")
        marks[person] = str(emoji or dict(enumerate(_REACTIONS, _ADDED)).get(kind, "reacted"))
        if kind >= _REMOVED:
            del marks[person]
    return reactions


def _author(message: dict[str, Any]) -> str:
    return "Me" if message["is_from_me"] else str(message["person"] or "")


def _message(
    source: Source,
    chats: Chats,
    chat: tuple[str, str],
    data: dict[str, Any],
    reactions: list[str],
    paths: list[str],
) -> Iterator[Content]:
    archive = data.get("attributedBody")
    text = data["text"] or (attributed_text(archive) if isinstance(archive, bytes) else "")
    if text is None:
        chats.attached.problems[_UNREAD] += 1
    text = str(text or "").replace(_FILE, "").strip()
    if not text and not paths:
        chats.attached.problems[_EMPTY] += 1
        return
    key, at = str(data["guid"]), _time(data["date"])
    yield chats.message(
        *chat,
        id=key,
        author=_author(data),
        text=text,
        sent_at=at,
        position=data["ROWID"],
        reply_to=data.get("thread_originator_guid"),
        reactions=reactions,
        edited_at=_time(data.get("date_edited")),
    )
    home = join(dirname(source.name), "Attachments")
    # Many files have the same name, so another folder must not be searched for one.
    inside = [f"{home}{path.partition(_FOLDER)[2]}" for path in paths]
    present = [path for path in inside if path in source.tree.files]
    chats.attached.problems[_MISSING] += len(inside) - len(present)
    yield from chats.attached.files(key, present, at=at)


def attributed_text(archive: bytes) -> str | None:
    """The text in an archive of formatted text, a typed stream; None if it has none.

    The string follows its class `NSString`: the type `+`, the length, and so many bytes of UTF-8.
    """
    if (begin := _STRING.search(archive)) is None:
        return None
    count = int.from_bytes(begin[1] or begin[2] or begin[3], "little")
    text = archive[begin.end() : begin.end() + count]
    return text.decode("utf-8", "replace") if len(text) == count else None


def _time(value: Any) -> str | None:
    """A time since 2001, in nanoseconds, or in seconds in old versions; 0 is none."""
    if not isinstance(value, int) or not value:
        return None
    microseconds = value // 1_000 if abs(value) > _MOST_SECONDS else value * 1_000_000
    at = FORMS["unix-microseconds"](microseconds + _EPOCH_SECONDS * 1_000_000)
    return None if at is None else moment(at)


TABLES: Final = ("message", "handle", "chat", "chat_message_join", "chat_handle_join")
FORMAT = Format("imessage", (), re.compile(rb"(?!)"), read, CHAT_MANIFEST, tables=TABLES)
