"""Parts of Google Takeout: Google Chat, and My Activity, which includes the chats with Gemini."""

import re
from collections.abc import Iterator
from functools import partial
from posixpath import basename, dirname, join
from typing import Any, Final

import orjson

from evidence.errors import InvalidRequest
from evidence.manifest.forms import FORMS
from evidence.times import moment
from service.importing.json_values import JsonReader, loads
from service.importing.rows import CHAT_MANIFEST, Chats, conversations, row, stream, text_of
from service.importing.source import Content, Format, Item, Source, as_text
from service.records.intake import content_key

ACTIVITY: Final = "activity"
MANIFEST: Final = {
    "streams": [
        stream(
            ACTIVITY,
            "id:id title:title url:words text:text happened_at:time product:group products:list"
            " details:list",
        ),
        *CHAT_MANIFEST["streams"],
    ]
}
_ACTIVITY: Final = re.compile(
    rb'\s*\[\s*\{\s*"header"\s*:\s*"[^"]{0,200}"\s*,\s*"title"\s*:'
    rb'[^\x00]{0,8000}?"products"\s*:'
)
#: Only an activity that is a question to Gemini has this member, the answer.
_ANSWER: Final = "safeHtmlItem"
GEMINI: Final = "Gemini"


def read_activity(source: Source) -> Iterator[Item]:
    """The activities; a question to Gemini and its answer are two messages of a chat."""
    chats, has_chat = Chats(source, GEMINI), False
    for number, content in enumerate(conversations(source), start=1):
        has_chat = has_chat or _ANSWER in content
        yield number, partial(_activity, source, chats, content)
    if has_chat:
        yield 0, chats.conversation(GEMINI, GEMINI)
    chats.report()


def _activity(source: Source, chats: Chats, content: str) -> Iterator[Content]:
    data, members = loads(content.encode()), chats.members
    if not isinstance(data, dict):
        yield "An activity must be a JSON object."
        return
    title, at = members.get(data, "title", str), members.get(data, "time", str)
    header = members.get(data, "header", str)
    identity = {"title": title, "at": at, "header": header, "url": data.get("titleUrl")}
    key = content_key(identity)[:32]
    notes = [*members.all(data, "subtitles", dict), *members.all(data, "details", dict)]
    pairs = [[members.get(note, name, str) for name in ("name", "url")] for note in notes]
    details = [": ".join(filter(None, pair)) for pair in pairs if any(pair)]
    if answers := members.all(data, _ANSWER, dict):
        message = partial(chats.message, GEMINI, GEMINI, thread_id=key, sent_at=at)
        text = "\n\n".join(text_of(members.get(answer, "html", str)) for answer in answers)
        yield message(id=key, text=title, author="user", position=0, links=details)
        yield message(id=f"{key}-1", text=text, author=GEMINI, position=1, reply_to=key)
        files = [*members.all(data, "attachedFiles", str), members.get(data, "imageFile", str)]
        yield from chats.attached.files(key, [file for file in files if file], at=at)
        return
    activity = {
        "id": key,
        "title": title,
        "url": data.get("titleUrl"),
        "text": data.get("description"),
        "happened_at": at,
        "product": header,
        "products": members.all(data, "products", str),
        "details": details,
    }
    # Older versions read an activity as any JSON object.
    yield row(source, ACTIVITY, activity)._replace(former=(source.stream, content_key(data), {}))


_CHAT: Final = re.compile(
    rb'\s*\{\s*"messages"\s*:\s*\[\s*\{\s*"(?:creator|created_date)"[^\x00]{0,4000}?"topic_id"\s*:'
)
_UNREAD: Final = "Messages whose date is left out, because it is not in English: {}."


def read_chat(source: Source) -> Iterator[Item]:
    """The conversation in a folder of Google Chat, and its messages."""
    chats, folder = Chats(source, "Google Chat"), dirname(source.name)
    key = basename(folder) or source.stream
    title, people = _group(source.tree.files.get(join(folder, "group_info.json")))
    title = title or ", ".join(people) or key
    yield 0, chats.conversation(key, title, members=people)
    with as_text(source) as text:
        reader = JsonReader(source, text)
        for name in reader.members():
            if name != "messages":
                reader.value()
                continue
            for number, content in enumerate(reader.elements(), start=1):
                yield number, partial(_message, chats, key, title, number, content)
    chats.report()


def _group(file: Any) -> tuple[str, list[str]]:
    """The name of a group and of its members, from the file that describes it."""
    try:
        group = loads(file.read()) if file is not None else {}
        people = [str(person.get("name") or person["email"]) for person in group.get("members", ())]
        return str(group.get("name") or ""), people
    except (InvalidRequest, ValueError, LookupError, TypeError, AttributeError):
        return "", []


def _message(
    chats: Chats, conversation: str, title: str, number: int, content: str
) -> Iterator[Content]:
    data, members = orjson.loads(content), chats.members
    if not isinstance(data, dict):
        yield "A message must be a JSON object."
        return
    creator, date = members.get(data, "creator", dict), members.get(data, "created_date", str)
    text, key = members.get(data, "text", str), members.get(data, "message_id", str)
    author = members.get(creator, "name", str) or members.get(creator, "email", str)
    key = key or content_key({"at": date, "author": author, "text": text})[:32]
    microseconds = FORMS["month-name"](date)
    at = None if microseconds is None else moment(microseconds)
    chats.attached.problems[_UNREAD] += bool(date) and at is None
    topic = key.rpartition("/")[0]
    first = f"{topic}/{topic.rpartition('/')[2]}"
    previews = (
        members.get(note, "url_metadata", dict) for note in members.all(data, "annotations", dict)
    )
    reactions = [
        f"{members.get(members.get(mark, 'emoji', dict), 'unicode', str)} "
        + ", ".join(members.all(mark, "reactor_emails", str))
        for mark in members.all(data, "reactions", dict)
    ]
    yield chats.message(
        conversation,
        title,
        id=key,
        author=author,
        text=text,
        sent_at=at,
        position=microseconds or number,
        reply_to=first if topic and first != key else None,
        links=[url for note in previews if (url := _url(note.get("url")))],
        reactions=reactions,
        kind=data.get("message_state"),
    )
    files = members.all(data, "attached_files", dict)
    names = [members.get(file, "export_name", str) for file in files]
    yield from chats.attached.files(key, [name for name in names if name], at=at)


def _url(value: Any) -> str:
    """An address, which newer exports wrap."""
    if isinstance(value, dict):
        value = value.get("private_do_not_access_or_else_safe_url_wrapped_value")
    return value if isinstance(value, str) else ""


MY_ACTIVITY = Format("activity", (), _ACTIVITY, read_activity, MANIFEST, any_extension=True)
CHAT = Format("google-chat", (), _CHAT, read_chat, CHAT_MANIFEST, any_extension=True)
