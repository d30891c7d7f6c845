"""Chats that Telegram, Messenger and Instagram export as JSON objects with lists of messages."""

import hashlib
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

import orjson

from service.importing.json_values import JsonReader
from service.importing.rows import CHAT_MANIFEST, CONTACTS, Chats, row, time_of
from service.importing.source import Format, Item, Source, as_text
from service.records.intake import Row

Members = dict[str, Any]
_KINDS = rb"personal_chat|bot_chat|saved_messages|(?:private|public)_(?:group|supergroup|channel)"
_TELEGRAM: Final = re.compile(
    rb'\s*\{(?:[^\x00]{0,1000}?"type"\s*:\s*"(?:%b)"' % _KINDS
    + rb'|\s*"about"\s*:[^\x00]*?"(?:personal_information|contacts|chats|left_chats)"\s*:\s*\{)'
)
_MESSENGER = re.compile(rb'\s*\{\s*"participants"\s*:\s*\[[^\x00]*?"(?:messages|threadName)"\s*:')
#: Telegram's word for a file that was not exported.
_ABSENT: Final = "("
_FILES: Final = ("photos", "videos", "audio_files", "files", "gifs", "media")
_DIGITS: Final = re.compile(r"_\d+$")


def _threads(reader: JsonReader) -> Iterator[Members]:
    """The members of each object with messages, only the first of these, in their order."""
    about: Members | None = None
    members: Members = {}
    for name in reader.members():
        if reader.next() == "{":
            yield from _threads(reader)
        elif name == "messages" and reader.next() == "[":
            about, contents = members, reader.elements()
            members[name] = [orjson.loads(first) for first in islice(contents, 1)]
            for _ in contents:
                pass
        elif name == "list" and reader.next() == "[":
            for _ in reader.inside("[]"):
                if reader.next() == "{":
                    yield from _threads(reader)
                else:
                    reader.value()
        else:
            members[name] = orjson.loads(reader.value())
    if about is not None:
        yield about


def _messages(reader: JsonReader, name: str = "") -> Iterator[tuple[str, str]]:
    """(name, JSON) of each message and contact; ("", "") before the messages of each thread."""
    for inner in reader.members():
        if reader.next() == "{":
            yield from _messages(reader, inner)
        elif inner == "messages" and reader.next() == "[":
            yield "", ""
            yield from (("messages", content) for content in reader.elements())
        elif inner == "list" and reader.next() == "[":
            for _ in reader.inside("[]"):
                if name == "contacts" or reader.next() != "{":
                    yield name, reader.value()
                else:
                    yield from _messages(reader, inner)
        else:
            reader.value()


def read_threads(source: Source) -> Iterator[Item]:
    """The conversations of a file with their messages, and people."""
    app = _Telegram(source) if source.format == TELEGRAM.name else _Messenger(source)
    start = source.file.tell()
    with as_text(source) as text:
        threads = list(_threads(JsonReader(source, text)))
    source.file.seek(start)
    source.notes.clear()
    index = -1
    with as_text(source) as text:
        for number, (name, content) in enumerate(_messages(JsonReader(source, text)), start=1):
            if not content:
                index += 1
                key, title = app.begin(threads[index])
                yield number, partial(app.conversation, key, title, threads[index])
            elif name == "messages":
                yield number, partial(app.message, key, title, content)
            elif name == "contacts":
                yield number, partial(_contact, source, content)
    app.chats.report()


def _contact(source: Source, content: str) -> Row | str:
    data = orjson.loads(content)
    names = " ".join(filter(None, (_text(data.get(f"{part}_name")) for part in ("first", "last"))))
    phone = _text(data.get("phone_number"))
    if not names and not phone:
        return "This contact has neither a name nor a number."
    key = str(data.get("user_id") or phone or names)
    return row(source, str(CONTACTS["name"]), {"id": key, "name": names, "phones": [phone]})


def _text(value: Any) -> str:
    """A text, or the texts in a list of texts and objects that have one."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    if isinstance(value, dict):
        text, link = _text(value.get("text")), value.get("href")
        return f"{text} <{link}>" if isinstance(link, str) and link != text else text
    return value if isinstance(value, str) else ""


def _objects(value: Any) -> list[Members]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


class _Telegram:
    """Telegram's form: ids are those of messages in their chat."""

    def __init__(self, source: Source) -> None:
        self.chats, self._source = Chats(source, "Telegram"), source

    def begin(self, about: Members) -> tuple[str, str]:
        """The key and the title of a chat."""
        name = _text(about.get("name"))
        return str(about.get("id") or name), name or "Saved messages"

    def conversation(self, key: str, title: str, about: Members) -> Row:
        """The conversation of a chat."""
        conversation = self.chats.conversation(key, title, description=_text(about.get("type")))
        first = _objects(about.get("messages"))
        return conversation._replace(former=self._former(first[0])) if first else conversation

    def _former(self, message: Members) -> tuple[str, str, Members]:
        """Where older versions, which read a chat as any JSON document, stored a message."""
        same: Members = {key: message[key] for key in ("date", "from", "text") if key in message}
        return self._source.stream, str(message.get("id")), same

    def message(self, chat: str, title: str, content: str) -> Iterator[Row]:
        """A message with its files."""
        data = orjson.loads(content)
        number = data["id"]
        key, reply = f"{chat}-{number}", data.get("reply_to_message_id")
        poll, location = data.get("poll"), data.get("location_information")
        texts = [_text(data.get("text")), _text(data.get("action")).replace("_", " ")]
        texts += [_text(data.get(name)) for name in ("title", "sticker_emoji", "file_name")]
        if isinstance(poll, dict):
            texts += [_text(poll.get("question")), *map(_text, _objects(poll.get("answers")))]
        if isinstance(location, dict):
            texts.append(f"{location.get('latitude')}, {location.get('longitude')}")
        at = time_of(data.get("date_unixtime")) or data.get("date")
        edited = time_of(data.get("edited_unixtime")) or data.get("edited")
        message = self.chats.message(
            chat,
            title,
            id=key,
            author=_text(data.get("from")) or _text(data.get("actor")),
            text="\n".join(filter(None, texts)),
            sent_at=at,
            position=number if isinstance(number, int) else None,
            kind=data.get("type"),
            reply_to=f"{chat}-{reply}" if reply else None,
            edited_at=edited,
            reactions=[
                f"{_text(reaction.get('emoji'))} {reaction.get('count', '')}".strip()
                for reaction in _objects(data.get("reactions"))
            ],
        )
        yield message._replace(former=self._former(data))
        files = [_text(data.get(name)) for name in ("photo", "file")]
        files = [file for file in files if file and not file.startswith(_ABSENT)]
        yield from self.chats.attached.files(key, files, at=at)


class _Messenger:
    """The form of Messenger and Instagram: messages have no ids, and UTF-8 is read as Latin-1."""

    def __init__(self, source: Source) -> None:
        instagram = "instagram" in f"{source.tree.path}/{source.name}".lower()
        self.chats = Chats(source, "Instagram" if instagram else "Messenger")

    def begin(self, about: Members) -> tuple[str, str]:
        """The key and the title of a thread."""
        title = _utf_8(_text(about.get("title")))
        name = _text(about.get("threadName"))
        people = ", ".join(self._people(about))
        return _text(about.get("thread_path")) or name or title or people, (
            title or _DIGITS.sub("", name) or people
        )

    def _people(self, about: Members) -> list[str]:
        people = about.get("participants")
        if not isinstance(people, list):
            return []
        names = (person.get("name") if isinstance(person, dict) else person for person in people)
        return [_utf_8(name) for name in names if isinstance(name, str)]

    def conversation(self, key: str, title: str, about: Members) -> Row:
        """The conversation of a thread."""
        return self.chats.conversation(key, title, members=self._people(about))

    def message(self, thread: str, title: str, content: str) -> Iterator[Row]:
        """A message with its files."""
        data = orjson.loads(content)
        member = self.chats.members.get
        milliseconds = member(data, "timestamp_ms", int) or member(data, "timestamp", int)
        author = _utf_8(_text(data.get("sender_name") or data.get("senderName")))
        share = data.get("share")
        shared = [share.get("share_text"), share.get("link")] if isinstance(share, dict) else []
        texts = [_utf_8(_text(part)) for part in (data.get("content"), data.get("text"), *shared)]
        text = "\n".join(dict.fromkeys(filter(None, texts)))
        files = [_text(file.get("uri")) for name in _FILES for file in _objects(data.get(name))]
        identity = orjson.dumps([thread, milliseconds, author, text, files])
        key = hashlib.sha256(identity).hexdigest()[:32]
        at = time_of(milliseconds / 1_000)
        yield self.chats.message(
            thread,
            title,
            id=key,
            author=author,
            text=text,
            sent_at=at,
            position=milliseconds,
            reactions=[
                f"{_utf_8(_text(mark.get('reaction')))} {_utf_8(_text(mark.get('actor')))}".strip()
                for mark in _objects(data.get("reactions"))
            ],
        )
        yield from self.chats.attached.files(key, list(filter(None, files)), at=at)


def _utf_8(text: str) -> str:
    """A text whose bytes in UTF-8 were read as Latin-1, as it was."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


TELEGRAM = Format("telegram", (), _TELEGRAM, read_threads, CHAT_MANIFEST, any_extension=True)
MESSENGER = Format("messenger", (), _MESSENGER, read_threads, CHAT_MANIFEST, any_extension=True)
