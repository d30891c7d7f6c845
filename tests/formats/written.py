"""Writes texts into a file of each format, as the program that exports it would."""

import json
import mailbox
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from email.message import EmailMessage
from html import escape
from pathlib import Path

from openpyxl import Workbook

from tests.formats.owner import write, zipped

Texts = Sequence[str]


def letter(number: int, text: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "Zoë <zoe@example.org>", f"Letter {number}"
    mail["Message-ID"], mail["Date"] = f"<{number}@x>", "Tue, 03 Mar 2026 10:00:00 +0100"
    mail.set_content(text, cte="base64")
    mail.add_attachment(text.encode(), "application", "x-tide", filename=f"{number}.tide")
    return mail


def mbox(folder: Path, texts: Texts) -> Path:
    with closing(mailbox.mbox(folder / "letters.mbox")) as box:
        for number, text in enumerate(texts):
            box.add(letter(number, text))
    return folder / "letters.mbox"


def maildir(folder: Path, texts: Texts) -> Path:
    box = mailbox.Maildir(folder / "Mail")
    for number, text in enumerate(texts):
        box.add(letter(number, text))
    return folder / "Mail"


def eml(folder: Path, texts: Texts) -> Path:
    return write(folder / "eml", {f"{n}.eml": bytes(letter(n, t)) for n, t in enumerate(texts)})


def _ical(text: str) -> str:
    for char in "\\;,":
        text = text.replace(char, f"\\{char}")
    return text


def ics(folder: Path, texts: Texts) -> Path:
    events = "".join(
        f"BEGIN:VEVENT\r\nUID:{number}\r\nDTSTART:20260303T1000{number:02}Z\r\n"
        f"SUMMARY:Tide\r\nDESCRIPTION:{_ical(text)}\r\nEND:VEVENT\r\n"
        for number, text in enumerate(texts)
    )
    content = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n"
    return write(folder, {"tides.ics": content}) / "tides.ics"


def vcard(folder: Path, texts: Texts) -> Path:
    cards = "".join(
        f"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{number}\r\nFN:Ada\r\nN:Ada;;;;\r\n"
        f"NOTE:{_ical(text)}\r\nEND:VCARD\r\n"
        for number, text in enumerate(texts)
    )
    return write(folder, {"crew.vcf": cards}) / "crew.vcf"


def notes(folder: Path, texts: Texts) -> Path:
    return write(folder / "Vault", {f"day/n {n}.md": f"# N\n\n{t}\n" for n, t in enumerate(texts)})


def bookmarks(folder: Path, texts: Texts) -> Path:
    links = "".join(
        f'<DT><A HREF="https://x.org/{number}">{escape(text)}</A>\n'
        for number, text in enumerate(texts)
    )
    page = f"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p>\n{links}</DL><p>\n"
    return write(folder, {"marks.html": page}) / "marks.html"


def whatsapp(folder: Path, texts: Texts) -> Path:
    lines = "".join(f"03.03.26, 10:{n:02} - Jörg: {text}\n" for n, text in enumerate(texts))
    return zipped(folder / "chat.zip", {"WhatsApp Chat mit Lotsen.txt": lines})


def slack(folder: Path, texts: Texts) -> Path:
    day = [
        {"type": "message", "user": "U1", "ts": f"177252840{n}.000100"}
        | {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
        for n, text in enumerate(texts)
    ]
    files = {
        "users.json": [{"id": "U1", "name": "ada"}],
        "channels.json": [{"id": "C1", "name": "general", "members": ["U1"]}],
        "general/2026-03-03.json": day,
    }
    return zipped(folder / "slack.zip", {name: json.dumps(found) for name, found in files.items()})


def chatgpt(folder: Path, texts: Texts) -> Path:
    mapping = {}
    for number, text in enumerate(texts):
        content = {"content_type": "text", "parts": [text]}
        message = {"id": f"m{number}", "author": {"role": "user"}, "content": content}
        parent = f"m{number - 1}" if number else None
        mapping[f"m{number}"] = {"message": message, "parent": parent, "children": []}
        if parent:
            mapping[parent]["children"] = [f"m{number}"]
    chats = [{"id": "c", "title": "Tide", "create_time": 1772528400.5, "mapping": mapping}]
    return write(folder, {"conversations.json": json.dumps(chats)}) / "conversations.json"


def claude(folder: Path, texts: Texts) -> Path:
    messages = [
        {"uuid": f"m{n}", "text": text, "sender": "human", "created_at": "2026-03-03T10:00:00Z"}
        for n, text in enumerate(texts)
    ]
    chats = [{"uuid": "c", "name": "Tide", "chat_messages": messages}]
    return write(folder, {"claude.json": json.dumps(chats, ensure_ascii=False)}) / "claude.json"


def sqlite(folder: Path, texts: Texts) -> Path:
    with closing(sqlite3.connect(folder / "log.db")) as db, db:
        db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT, raw BLOB)")
        rows = ((text, text.encode()) for text in texts)
        db.executemany("INSERT INTO entry (text, raw) VALUES (?, ?)", rows)
    return folder / "log.db"


def xlsx(folder: Path, texts: Texts) -> Path:
    book = Workbook()
    for row in (["no", "text"], *([n, f"t {text}"] for n, text in enumerate(texts))):
        book.active.append(row)
    book.save(folder / "log.xlsx")
    return folder / "log.xlsx"


WRITERS: dict[str, Callable[[Path, Texts], Path]] = {
    one.__name__: one
    for one in (
        *(mbox, maildir, eml, ics, vcard, notes, bookmarks),
        *(whatsapp, slack, chatgpt, claude, sqlite, xlsx),
    )
}
