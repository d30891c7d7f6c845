"""Chats of any program: messages in conversations, with the streams that all of them use."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from service.importing.source import Source, as_text
from service.importing.json_values import JsonReader
from service.importing.rows import CONTACTS, Attached, manifest, row, stream
from service.records.intake import Row
from service.records.forms import FORMS
from service.records.values import moment

MESSAGES: Final = "chat_messages"
CONVERSATIONS: Final = "conversations"
MANIFEST: Final = manifest(
    stream(
        MESSAGES,
        "id:id thread_id:thread conversation:title author:actor text:text sent_at:time"
        " position:position app:group conversation_id:id reply_to:id kind:group model:group"
        " reactions:list links:list edited_at:when",
        attached=True,
    ),
    stream(
        CONVERSATIONS,
        "id:id title:title app:group description:text members:list started_at:time"
        " updated_at:when",
    ),
    CONTACTS,
)


class Chats:
    """The conversations and messages of an app, and the files of these."""

    def __init__(self, source: Source, app: str) -> None:
        self.attached = Attached(source)
        self._source, self._app = source, app

    def conversation(self, key: str, title: str, **about: Any) -> Row:
        """A conversation, by its id."""
        data = {"id": key, "title": title, "app": self._app, **about}
        return row(self._source, CONVERSATIONS, data)

    def message(self, conversation: str, title: str, **data: Any) -> Row:
        """A message of a conversation, which is its thread unless `thread_id` names another."""
        known = {"thread_id": conversation, "conversation_id": conversation}
        known |= {"conversation": title, "app": self._app}
        return row(self._source, MESSAGES, known | data)


def time_of(seconds: Any) -> str | None:
    """The time of seconds since 1970."""
    found = FORMS["unix-seconds"](seconds)
    return None if found is None else moment(found)


def conversations(source: Source) -> Iterator[Any]:
    """The conversations of a file that is one JSON array of them."""
    with as_text(source) as text:
        for content in JsonReader(source, text).elements():
            yield orjson.loads(content)
