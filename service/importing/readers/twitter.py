"""The Twitter (X) archive: posts with their threads and pictures, likes, and messages."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from html import unescape
from typing import Any, Final, TextIO

import orjson

from evidence.errors import InvalidRequest
from service.importing.json_values import JsonReader
from service.importing.rows import CHAT_MANIFEST, Chats, row, stream
from service.importing.source import Content, Format, Item, Source, as_text, seekable

POSTS: Final = "posts"
MANIFEST: Final = {
    "streams": [
        stream(
            POSTS,
            "id:id thread_id:thread author:actor text:text written_at:time position:position"
            " kind:group reply_to:id reply_to_author:label tags:list mentions:list links:list"
            " likes:number reposts:number",
            attached=True,
        ),
        *CHAT_MANIFEST["streams"],
    ]
}
_PARTS: Final = rb"tweets?|deleted_tweets?|note_tweet|like|direct_messages?(?:_groups?)?"
BEGINS: Final = re.compile(rb"\s*window\.YTD\.(?:%b)\.part\d+\s*=" % _PARTS)
#: What a post that is no tweet is called in its file, by the kind of the file.
_WRAPPERS: Final = {"like": "like", "note_tweet": "noteTweet"}
NO_ID: Final = "This entry has no id, so it is not a Twitter post, message or conversation."
#: The bits of an id below its time.
_SEQUENCE_BITS: Final = 22
_NOTICES: Final = "Notices (such as a new name or member) left out of conversations: {}."
_HEADER_CHARS: Final = 100
_MEDIA: Final = re.compile(r"_media/(\d+)-[^/]+$")
#: The time of a post, such as `Tue Mar 03 09:15:00 +0000 2026`, in UTC.
_TIME: Final = "%a %b %d %H:%M:%S +0000 %Y"


def read(source: Source) -> Iterator[Item]:
    """The records of a part of the archive."""
    with seekable(source), as_text(source) as text:
        archive, kind = _Archive(source), _header(text)
        if kind.startswith(("tweet", "deleted")):
            for content in JsonReader(source, text).elements():
                archive.add_parent(content)
            text.seek(0)
            _header(text)
        parse = archive.conversation if kind.startswith("direct") else partial(archive.post, kind)
        for number, content in enumerate(JsonReader(source, text).elements(), start=1):
            yield number, partial(parse, content)
    archive.chats.report()


def _header(text: TextIO) -> str:
    """Reads `window.YTD.KIND.part0 =`; returns the kind."""
    header = ""
    while not header.endswith("=") and len(header) < _HEADER_CHARS:
        header += text.read(1) or "="
    return (header.split(".") + [""] * 2)[2]


class _Archive:
    """Whose archive it is, the posts that others reply to, and the pictures of each post."""

    def __init__(self, source: Source) -> None:
        self.chats, self._source = Chats(source, "Twitter"), source
        self._account, self._name = self._owner()
        self._parents = dict[str, str]()
        self._media: dict[str, list[str]] = {}
        for name in source.tree.files:
            if match := _MEDIA.search(name):
                self._media.setdefault(match[1], []).append(name)

    def _owner(self) -> tuple[str, str]:
        """The id and the name of the owner, from the file next to this one, if it is there."""
        file = self._source.tree.find("account.js", self._source.name)
        try:
            content = file.read().partition(b"=")[2] if file is not None else b"[]"
            (account,) = (entry["account"] for entry in orjson.loads(content))
            return str(account["accountId"]), str(account["username"])
        except (InvalidRequest, ValueError, LookupError, TypeError):
            return "", ""

    def add_parent(self, content: str) -> None:
        """Remembers which post another one replies to."""
        with suppress(ValueError):
            post = _inner(orjson.loads(content), "tweet")
            if parent := _parent(post):
                self._parents[_key(post)] = parent

    def _thread(self, key: str) -> str:
        """The first post of the thread of a post, as far as the archive has it."""
        visited = {key}
        while (parent := self._parents.get(key)) and parent not in visited:
            visited.add(key := parent)
        self._parents |= dict.fromkeys(visited - {key}, key)  # long threads take linear time
        return key

    def post(self, kind: str, content: str) -> Iterator[Content]:
        """A post with its files, the full text of a long post, or a post that was liked."""
        data = _inner(orjson.loads(content), _WRAPPERS.get(kind, "tweet"))
        get = self.chats.members.get
        if not (key := _key(data)):
            yield NO_ID
            return
        if kind in _WRAPPERS:
            yield row(self._source, POSTS, self._wrapped(kind.removesuffix("_tweet"), key, data))
            return
        entities, reply = get(data, "entities", dict), _parent(data)
        text = unescape(get(data, "full_text", str) or get(data, "text", str))
        form = "repost" if text.startswith("RT @") else "reply" if reply else "post"
        post = {
            "id": key,
            "thread_id": self._thread(key),
            "author": self._name,
            "text": text,
            "written_at": _time(get(data, "created_at", str)),
            "position": _position(key),
            "kind": "deleted" if kind.startswith("deleted") else form,
            "reply_to": reply,
            "reply_to_author": data.get("in_reply_to_screen_name"),
            "tags": self._each(entities, "hashtags", "text"),
            "mentions": self._each(entities, "user_mentions", "screen_name"),
            "links": self._each(entities, "urls", "expanded_url"),
            "likes": _number(data.get("favorite_count")),
            "reposts": _number(data.get("retweet_count")),
        }
        yield row(self._source, POSTS, post)
        yield from self.chats.attached.files(key, self._media.get(key, []), at=post["written_at"])

    def _wrapped(self, kind: str, key: str, data: dict[str, Any]) -> dict[str, Any]:
        """The fields of a long post, which has a `core`, or of a post that was liked."""
        get = self.chats.members.get
        core = get(data, "core", dict)
        links = self._each(core, "urls", "expandedUrl") or [get(data, "expandedUrl", str)]
        return {
            "id": f"{kind}-{key}",
            "author": self._name if core else None,
            "text": unescape(get(core, "text", str) or get(data, "fullText", str)),
            "written_at": data.get("createdAt"),
            "kind": kind,
            "tags": self._each(core, "hashtags", "text"),
            "mentions": self._each(core, "mentions", "screenName"),
            "links": [link for link in links if link],
        }

    def conversation(self, content: str) -> Iterator[Content]:
        """A conversation and its messages. Except for the owner, people have only a number."""
        data, members = _inner(orjson.loads(content), "dmConversation"), self.chats.members
        if not (key := members.get(data, "conversationId", str)):
            yield NO_ID
            return
        events = members.all(data, "messages", dict)
        renamed = (members.get(event, "conversationNameUpdate", dict) for event in events)
        names = (members.get(event, "name", str) for event in renamed)
        title = next(filter(None, names), None) or ", ".join(map(self._person, key.split("-")))
        yield self.chats.conversation(key, title)
        for event in events:
            if message := members.get(event, "messageCreate", dict):
                yield partial(self._message, key, title, message)
            else:
                self.chats.attached.problems[_NOTICES] += 1

    def _message(self, conversation: str, title: str, data: dict[str, Any]) -> Iterator[Content]:
        if not (key := _key(data)):
            yield NO_ID
            return
        at, members = data.get("createdAt"), self.chats.members
        yield self.chats.message(
            conversation,
            title,
            id=key,
            author=self._person(data.get("senderId")),
            text=unescape(members.get(data, "text", str)),
            sent_at=at,
            position=_position(key),
            links=self._each(data, "urls", "expanded"),
            reactions=[
                f"{mark.get('reactionKey')} {self._person(mark.get('senderId'))}"
                for mark in members.all(data, "reactions", dict)
            ],
        )
        yield from self.chats.attached.files(key, self._media.get(key, []), at=at)

    def _person(self, number: Any) -> str:
        """The name of the owner, or the number of somebody else."""
        return self._name if number == self._account and self._name else str(number or "")

    def _each(self, data: dict[str, Any], name: str, member: str) -> list[str]:
        """A member of each object in a list."""
        entries = self.chats.members.all(data, name, dict)
        return list(filter(None, (self.chats.members.get(entry, member, str) for entry in entries)))


def _inner(data: Any, name: str) -> dict[str, Any]:
    """The object in an entry; old archives have posts without the object around them."""
    inner = data.get(name, data) if isinstance(data, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _key(data: dict[str, Any]) -> str:
    values = map(data.get, ("id_str", "id", "noteTweetId", "tweetId"))
    return next((str(value) for value in values if isinstance(value, (str, int)) and value), "")


def _parent(post: dict[str, Any]) -> str | None:
    """The id of the post that a post replies to."""
    parent = post.get("in_reply_to_status_id_str") or post.get("in_reply_to_status_id")
    return str(parent) if parent else None


def _number(value: Any) -> int | None:
    """The number that a text of digits stands for."""
    digits = str(value)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def _position(key: str) -> int:
    """Where an id is in the order of ids: by the milliseconds in its upper bits."""
    return (_number(key) or 0) >> _SEQUENCE_BITS


def _time(text: str) -> str | None:
    try:
        return f"{datetime.strptime(text, _TIME).isoformat()}Z"
    except ValueError:
        return None


FORMAT = Format("twitter", (), BEGINS, read, MANIFEST, any_extension=True)
