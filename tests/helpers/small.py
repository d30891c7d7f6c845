"""A small owner: two mailboxes, notes and a diary, with every word known to the tests."""

import base64
from collections.abc import Sequence
from typing import Any

from tests.helpers.stores import BODY, OBJECT, RANGE, TEXT, TIME, TITLE, WHOLE, WORD
from tests.helpers.stores import Connection, Stream

FILLER = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. "
FAR, CLOSE = "orchid that stands far from any lily", "orchid and lily"
PIXELS = base64.b64encode(bytes(range(256)) * 4).decode()
LETTER = "Dear all,\nthe attached letter is plain text.\n"

#: A message longer than a document may be, with the phrase far from both ends.
LONG_BODY = f"{FILLER * 300}The invoice number 4711 is due on Friday. {FILLER * 150}The end."
LONG_ID = "mail-work/messages:m_long"

MESSAGES = Stream(
    "messages",
    {
        "thread_id": WORD,
        "subject": TITLE,
        "body": BODY,
        "sender": WORD,
        "folder": WORD,
        "size": WHOLE,
        "received_at": TIME,
    },
    (),
    ("subject", "body"),
    "received_at",
    {
        "exact_filters": ["id", "thread_id", "folder", "sender"],
        "range_filters": {"received_at": RANGE, "size": RANGE},
        "aggregations": {
            "sum": ["size"],
            "min": ["received_at", "size"],
            "max": ["received_at", "size"],
            "group_by": ["folder", "sender"],
            "group_by_time": ["received_at"],
            "count_distinct": ["folder"],
        },
        "expand": [{"name": "attachments", "default_limit": 5, "max_limit": 10}],
    },
    {
        "label": "Mail messages",
        "relationships": [
            {
                "name": "attachments",
                "stream": "attachments",
                "foreign_key": "message_id",
                "cardinality": "has_many",
            }
        ],
        "views": [{"id": "basic", "label": "Subjects", "fields": ["id", "subject"]}],
    },
)


def message(number: int, subject: str, body: str, **more: Any) -> dict[str, Any]:
    """A message; a higher number has a later time."""
    return {
        "id": f"m_{number:03}",
        "thread_id": f"t_{number % 3}",
        "subject": subject,
        "body": body,
        "sender": "Ada Brandt",
        "folder": ("inbox", "archive")[number % 2],
        "size": len(body),
        "received_at": f"2026-04-{1 + number:02}T08:00:00Z",
        **more,
    }


def _attachments(text: str = LETTER) -> Stream:
    def blob(name: str, kind: str, content: str) -> dict[str, Any]:
        return {"blob_id": name, "mime_type": kind, "data_base64": content}

    letter = base64.b64encode(text.encode()).decode()
    records = (
        {
            "id": "a/1.png",
            "message_id": "m_001",
            "filename": "plan.png",
            "blob_ref": blob("plan", "image/png", PIXELS),
        },
        {
            "id": "a/2.txt",
            "message_id": "m_001",
            "filename": "letter.txt",
            "blob_ref": blob("letter", "text/plain", letter),
        },
    )
    properties = {"message_id": WORD, "filename": TITLE, "blob_ref": OBJECT}
    return Stream("attachments", properties, records, ("filename",))


def _mailbox(records: Sequence[dict[str, Any]]) -> Stream:
    known = MESSAGES
    return Stream(
        known.name, known.properties, records, known.searched, known.cursor, known.query, known.more
    )


def _notes() -> Stream:
    records = (
        {"id": "cjk", "title": "会議の記録", "text": "明日の会議は東京で行います。猫は来ません。"},
        {"id": "accents", "title": "Café", "text": "Das Café in der Straße führt Crème brûlée."},
        {
            "id": "emoji",
            "title": "Launch",
            "text": "We launch 🚀 on Monday and celebrate 🎉 after.",
        },
        {"id": "phrase", "title": "Flow", "text": f"control of flow. {FILLER}flow control works."},
        {"id": "apart", "title": "Far", "text": f"control first. {FILLER * 20}then flow at last."},
        {
            "id": "punctuation",
            "title": "Names",
            "text": "Use foo-bar.baz or don't; see C++ and a_b.",
        },
        {"id": "picture", "title": "Picture", "text": "See the drawing.", "image": PIXELS},
        {"id": "nested", "title": "Nested", "text": "Deep.", "outline": {"a/b": [{"c": "marrow"}]}},
        {
            "id": "windows",
            "title": "Beds",
            "text": f"{FAR}. {FILLER * 9}{CLOSE}. {FILLER * 9}orchid lily.",
        },
        {"id": "tags", "title": "Tags", "text": "A stored <mark>tag</mark> stays a word."},
    )
    properties = {"title": TITLE, "text": BODY, "image": WORD, "outline": OBJECT}
    return Stream("notes", properties, records, ("title", "text"))


def _diary() -> Stream:
    """A stream whose manifest gives no roles, with field names that invite guessing."""
    records = tuple(
        {
            "id": f"d{day}",
            "title": f"Entry {day}",
            "body": f"Day {day}: walked to the jetty.",
            "written_at": f"2026-03-{day:02}T20:00:00Z",
        }
        for day in range(1, 8)
    )
    properties = {
        "title": TEXT,
        "body": TEXT,
        "written_at": {"type": "string", "format": "date-time"},
    }
    return Stream("diary", properties, records, ("title", "body"), "written_at")


def connections() -> list[Connection]:
    """The owner's connections."""
    work = [
        message(1, "Quarterly plan", "The plan for the quarter is attached."),
        message(
            2, "Invoice 4711", "Please pay the invoice number 4711 by Friday.", sender="Noor Haddad"
        ),
        message(3, "Re: Invoice 4711", "Paid. The invoice is settled."),
        message(5, "Long read", LONG_BODY, id="m_long"),
        *(
            message(n, f"Standup {n}", f"Standup notes of day {n}: nothing new.")
            for n in range(6, 26)
        ),
    ]
    home = [
        message(1, "Garden", "The invoice of the gardener came today."),
        message(2, "Standup comedy", "Tickets for standup comedy are here."),
    ]
    return [
        Connection("mail-work", (_mailbox(work), _attachments()), "gmail", "Work mail"),
        Connection("mail-home", (_mailbox(home), _attachments(LETTER * 2)), "gmail", "Home mail"),
        Connection("notes", (_notes(), _diary()), "notes", "Notes"),
    ]
