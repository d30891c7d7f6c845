"""Chats of any program: messages in conversations, with the streams that all of them use."""

from codecs import getreader
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from evidence.errors import InvalidRequest
from service.importing.rows import CONTACTS, described, manifest, stream
from service.importing.source import Source
from service.records.intake import Row
from service.records.forms import FORMS
from service.records.values import moment

MESSAGES: Final = "chat_messages"
CONVERSATIONS: Final = "conversations"
MANIFEST: Final = manifest(
    stream(
        MESSAGES,
        {
            **{"id": "id", "thread_id": "thread", "conversation": "title", "author": "actor"},
            **{"text": "text", "sent_at": "time", "position": "position", "app": "group"},
            **{"conversation_id": "id", "reply_to": "id", "kind": "group", "model": "group"},
            **{"reactions": "list", "links": "list", "edited_at": "when"},
        },
        attached=True,
    ),
    stream(
        CONVERSATIONS,
        {
            **{"id": "id", "title": "title", "app": "group", "description": "text"},
            **{"members": "list", "started_at": "time", "updated_at": "when"},
        },
    ),
    CONTACTS,
)
PIECE_CHARS: Final = 1 << 20


def row(source: Source, name: str, data: dict[str, Any]) -> Row:
    return Row(source.repair.value(described(data)), stream=name)


def time_of(seconds: Any) -> str | None:
    """The time of seconds since 1970."""
    found = FORMS["unix-seconds"](seconds)
    return None if found is None else moment(found)


def elements(source: Source) -> Iterator[Any]:
    """The values of a file that is one JSON array of objects, one in memory at a time."""
    decoder, text, place, size = JSONDecoder(), "", 0, PIECE_CHARS
    file = getreader("utf-8-sig")(source.file)
    while True:
        while place < len(text) and text[place] in " \t\r\n,[":
            place += 1
        if text[place : place + 1] == "]":
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except JSONDecodeError as error:
            if not (piece := file.read(size)):
                raise InvalidRequest(f"{source.name} ends within a record: {error}.") from None
            text, place, size = text[place:] + piece, 0, size * 2
        else:
            size = PIECE_CHARS
            yield value
