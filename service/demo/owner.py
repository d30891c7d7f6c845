"""An invented owner's mail, chat, notes, calendar and payments: the same 3,000 records each time.

Some long texts have a sentence that occurs nowhere else. `LANDMARKS` lists these sentences with
their positions, so that a reader can be asked for a known answer.
"""

import base64
import struct
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import orjson

from service.demo.words import (
    CHINESE,
    EMOJI,
    ENGLISH,
    GERMAN,
    JAPANESE,
    LANGUAGES,
    PEOPLE,
    choose_language,
    fill,
    prose,
    sentence,
)
from service.records.intake import Row

SIDE = 4


def png(red: int, green: int, blue: int) -> bytes:
    """A valid PNG of 4 x 4 pixels in one colour."""
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    pixels = (b"\0" + bytes((red, green, blue)) * SIDE) * SIDE
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(pixels)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def pdf(text: str) -> bytes:
    """A PDF of one page with one line of text."""
    drawing = f"BT /F1 18 Tf 40 700 Td ({text}) Tj ET".encode("latin-1", "replace")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawing), drawing),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    size = len(objects) + 1
    return data + b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table) + end % (size, len(data))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


MANIFESTS = Path(__file__).with_name("manifests")
SEED = 20260501
FIRST_DAY = datetime(2025, 11, 1, 6, 30, tzinfo=UTC)
MINUTES = 180 * 24 * 60
EMITTED_AT = "2026-05-02T00:00:00Z"

_OWNER = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ODD_IDS: list[str] = _OWNER["odd_ids"]
FOLDERS: list[str] = _OWNER["folders"]
CHANNELS: list[str] = _OWNER["channels"]
CATEGORIES: list[str] = _OWNER["categories"]


@dataclass(frozen=True, slots=True)
class Landmark:
    """A sentence that occurs once in the demo, near a `share` of the length of its field."""

    connection_id: str
    stream: str
    record_id: str
    field: str
    share: float
    sentence: str


LANDMARKS = tuple(Landmark(**one) for one in _OWNER["landmarks"])


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of the demo; `later` are the rows of a second import, a day after."""

    connection_id: str
    connector_key: str
    label: str
    rows: tuple[Row, ...]
    later: tuple[Row, ...] = ()

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of all connections of this kind."""
        document: dict[str, Any] = orjson.loads(
            (MANIFESTS / f"{self.connector_key}.json").read_bytes()
        )
        return document


def build() -> Iterator[Connection]:
    """The owner's connections, one after the other."""
    random = Random(SEED)
    yield _mailbox(random, "gmail-work", "Work mail", threads=210, messages=800)
    yield _mailbox(random, "gmail-home", "Home mail", threads=120, messages=460)
    yield Connection("slack-team", "slack", "Team chat", tuple(_chat(random)))
    yield Connection("notes", "notes", "Notes", tuple(_notes(random)))
    yield Connection("calendar", "calendar", "Calendar", tuple(_calendar(random)))
    yield Connection("bank", "bank", "Giro account", tuple(_payments(random)))


def _row(stream: str, data: dict[str, Any], *, deleted: bool = False) -> Row:
    return Row(data, data["id"], EMITTED_AT, stream, deleted)


def _moment(random: Random) -> str:
    moment = FIRST_DAY + timedelta(minutes=random.randrange(MINUTES))
    return moment.isoformat().replace("+00:00", "Z")


def _plant(text: str, connection_id: str, record_id: str) -> str:
    """The text with its landmarks put in, each at a break between paragraphs."""
    for mark in LANDMARKS:
        if (mark.connection_id, mark.record_id) == (connection_id, record_id):
            place = text.find("\n\n", int(mark.share * len(text)))
            if mark.share == 0:
                text = f"{mark.sentence} {text}"
            elif place < 0:
                text = f"{text} {mark.sentence}"
            else:
                text = f"{text[:place]} {mark.sentence}{text[place:]}"
    return text


def _mailbox(
    random: Random, connection_id: str, label: str, *, threads: int, messages: int
) -> Connection:
    topics = {f"t_{n:04}": sentence(random, choose_language(random))[:70] for n in range(threads)}
    last: dict[str, list[str]] = {thread: [] for thread in topics}
    rows: list[Row] = []
    for number in range(messages):
        message = _message(random, connection_id, number, topics)
        last[message["thread_id"]].append(message["received_at"])
        rows.append(_row("messages", message))
        if number % 25 == 7:
            rows.append(_row("attachments", _attachment(random, message, number)))
    for thread, times in last.items():
        if times:
            counted = {"last_at": max(times), "messages": len(times)}
            rows.append(_row("threads", {"id": thread, "topic": topics[thread], **counted}))
    draft = {"id": "m_draft", "subject": "Draft", "received_at": EMITTED_AT}
    rows.append(_row("messages", draft))
    read = {**rows[0].data, "unread": False, "folder": "archive"}
    later = (_row("messages", read), _row("messages", draft, deleted=True))
    return Connection(connection_id, "gmail", label, tuple(rows), later)


def _message(
    random: Random, connection_id: str, number: int, topics: dict[str, str]
) -> dict[str, Any]:
    language = choose_language(random)
    thread = random.choice(list(topics))
    record_id = f"m_{number:04}"
    sender = random.choice(PEOPLE)
    body = prose(random, language, random.randint(2, 24))
    if number == 42:
        body = fill(random, 210_000, ENGLISH, GERMAN)
    body = f"{body}\n\n{sender.split()[0]}"
    body = _plant(body, connection_id, record_id)
    return {
        "id": record_id,
        "thread_id": thread,
        "subject": ("Re: " if random.random() < 0.6 else "") + topics[thread],
        "body": body,
        "from": sender,
        "to": random.sample(PEOPLE, random.randint(1, 3)),
        "folder": random.choice(FOLDERS),
        "language": language.code,
        "received_at": _moment(random),
        "size": len(body.encode()),
        "unread": random.random() < 0.2,
    }


def _attachment(random: Random, message: dict[str, Any], number: int) -> dict[str, Any]:
    kinds = (
        ("txt", "text/plain", prose(random, choose_language(random), 12).encode()),
        ("png", "image/png", png(random.randrange(256), random.randrange(256), 90)),
        ("pdf", "application/pdf", pdf(f"Receipt {number} from {message['id']}")),
    )
    ending, media_type, content = kinds[number // 25 % len(kinds)]
    return {
        "id": f"{message['id']}/{number}.{ending}",
        "message_id": message["id"],
        "filename": f"receipt {number}.{ending}",
        "mime_type": media_type,
        "received_at": message["received_at"],
        "blob_ref": {
            "blob_id": f"{message['id']}.{ending}",
            "mime_type": media_type,
            "data_base64": base64.b64encode(content).decode(),
        },
    }


def _chat(random: Random) -> Iterator[Row]:
    for channel in CHANNELS:
        topic = sentence(random, ENGLISH)
        yield _row("channels", {"id": channel, "topic": topic, "members": random.randint(3, 40)})
    for number in range(860):
        language = random.choice((choose_language(random), EMOJI))
        message = {
            "id": f"c{number:05}",
            "channel": random.choice(CHANNELS),
            "author": random.choice(PEOPLE),
            "text": prose(random, language, random.randint(1, 3)),
            "language": language.code,
            "sent_at": _moment(random),
            "reactions": min(int(random.paretovariate(1.2)) - 1, 99),
        }
        if number and random.random() < 0.2:
            message["reply_to"] = f"c{random.randrange(number):05}"
        yield _row("messages", message)


def _notes(random: Random) -> Iterator[Row]:
    long = {
        "atlas": fill(random, 300_000, ENGLISH),
        "chronicle": fill(random, 1_100_000, GERMAN, JAPANESE, CHINESE, ENGLISH),
        "log": fill(random, 220_000, *LANGUAGES),
    }
    names = [*long, *ODD_IDS, *(f"n_{number:03}" for number in range(140))]
    for number, name in enumerate(names):
        language = choose_language(random)
        text = long.get(name) or prose(random, language, random.randint(1, 30))
        note = {
            "id": name,
            "title": sentence(random, language)[:60],
            "text": _plant(text, "notes", name),
            "language": "mixed" if name in long else language.code,
            "tags": random.sample(CATEGORIES, random.randint(0, 3)),
            "updated_at": _moment(random),
            "pinned": random.random() < 0.1,
        }
        if name == "log":
            days = {f"day {day:03}": prose(random, ENGLISH, 6) for day in range(250)}
            note["outline"] = {"title": "The log by days", "days": days}
        if number % 20 == 0:
            content = png(number % 256, 120, 200)
            encoded = base64.b64encode(content).decode()
            note["picture"] = {"mime_type": "image/png", "data_base64": encoded}
        yield _row("notes", note)


def _calendar(random: Random) -> Iterator[Row]:
    for number in range(320):
        language = choose_language(random)
        text = prose(random, language, random.randint(0, 6))
        if number == 100:
            text = fill(random, 200_000, ENGLISH, CHINESE)
        name = f"e_{number:04}"
        event = {
            "id": name,
            "summary": sentence(random, language)[:50],
            "description": _plant(text, "calendar", name),
            "place": random.choice(language.places),
            "attendees": random.sample(PEOPLE, random.randint(0, 5)),
            "start": _moment(random),
            "minutes": random.choice((15, 30, 45, 60, 90, 480)),
            "all_day": random.random() < 0.1,
        }
        yield _row("events", event)


def _payments(random: Random) -> Iterator[Row]:
    for number in range(260):
        payment = {
            "id": f"p-{number:04}",
            "payee": random.choice(PEOPLE),
            "purpose": sentence(random, choose_language(random)),
            "category": random.choice(CATEGORIES),
            "currency": random.choice(("EUR", "EUR", "EUR", "JPY", "CHF")),
            "amount": round(random.uniform(-900, 400), 2),
            "booked_at": _moment(random)[:10],
        }
        yield _row("payments", payment)
