"""Workspaces of Slack: the messages of all channels, with the names of people and channels."""

import re
from collections.abc import Iterator
from html import unescape
from posixpath import dirname, join
from typing import Any

from evidence.errors import InvalidRequest
from service.importing.rows import CHAT_MANIFEST, CONTACTS, Chats, row, time_of
from service.importing.json_values import loads
from service.importing.source import Format, Item, Source
from service.records.forms import FORMS

#: The files that a folder of an export has.
FOLDER = ("channels.json", "users.json")
_CHANNELS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_TOKEN = re.compile(r"<([@#!]?)([^|>]+)(?:\|([^>]*))?>")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.json")


def read(source: Source) -> Iterator[Item]:
    """The people, the channels, and each message of theirs, a day at a time."""
    home = dirname(source.name)
    people = {}
    for person in _load(source, join(home, "users.json")):
        data = _person(person)
        people[data["id"]] = data["name"]
        yield 0, row(source, str(CONTACTS["name"]), data)
    workspace = _Workspace(source, people)
    for file in _CHANNELS:
        for channel in _load(source, join(home, file)):
            yield from workspace.channel(home, channel)
    workspace.chats.attached.report()
    left = [name for name in source.tree.files if name.startswith(join(home, ""))]
    left = [name for name in left if name not in source.tree.used]
    if left:
        source.notes.append(f"Left out: {len(left)} files that are no messages: {left[0]}, ….")


def _load(source: Source, name: str) -> list[Any]:
    """The list in a file of the export; empty if there is no such file."""
    if (file := source.tree.files.get(name)) is None:
        return []
    content = file.read()
    try:
        found = loads(content)
    except ValueError as error:
        raise InvalidRequest(f"{name} is not JSON: {error}.") from None
    return found if isinstance(found, list) else []


def _person(person: dict[str, Any]) -> dict[str, Any]:
    profile = person.get("profile") or {}
    names = (profile.get("real_name"), person.get("real_name"), profile.get("display_name"))
    nicknames = (profile.get("display_name"), person.get("name"))
    return {
        "id": str(person.get("id")),
        "name": next(filter(None, names), None) or person.get("name") or person.get("id"),
        "nicknames": list(dict.fromkeys(filter(None, nicknames))),
        "role": profile.get("title"),
        "note": profile.get("status_text"),
        "emails": list(filter(None, [profile.get("email")])),
        "phones": list(filter(None, [profile.get("phone")])),
    }


class _Workspace:
    """The names of people, and the messages of channels."""

    def __init__(self, source: Source, people: dict[str, str]) -> None:
        self.chats = Chats(source, "Slack")
        self._source, self._people = source, people

    def channel(self, home: str, channel: dict[str, Any]) -> Iterator[Item]:
        """A channel and its messages; one of a few people has their names."""
        key = str(channel["id"])
        members = [self._name(one) for one in channel.get("members") or []]
        title = f"#{channel['name']}" if channel.get("name") else ", ".join(members) or key
        texts = [(channel.get(name) or {}).get("value") for name in ("topic", "purpose")]
        about = {"members": members, "description": "\n".join(filter(None, texts))}
        started = time_of(channel.get("created"))
        yield 0, self.chats.conversation(key, title, started_at=started, **about)
        folders = [join(home, name, "") for name in (channel.get("name"), key) if name]
        found = ([n for n in self._source.tree.files if n.startswith(one)] for one in folders)
        days = next(filter(None, found), [])
        for day in sorted(name for name in days if _DAY.fullmatch(name.rpartition("/")[2])):
            for number, message in enumerate(_load(self._source, day), start=1):
                if isinstance(message, dict) and message.get("ts"):
                    yield from ((number, one) for one in self._message(message, key, title))
                else:
                    yield number, f"{day}: this message has no ts."

    def _message(self, message: dict[str, Any], channel: str, title: str) -> Iterator[Any]:
        ts, thread = str(message["ts"]), message.get("thread_ts")
        key = f"{channel}-{ts}"
        texts = [self._text(message.get("text") or "") or self._block(message.get("blocks"))]
        for one in message.get("attachments") or []:
            pairs = [(each.get("title"), each.get("value")) for each in one.get("fields") or []]
            parts = [one.get("pretext"), one.get("title"), one.get("text") or one.get("fallback")]
            parts += [*(": ".join(filter(None, pair)) for pair in pairs), one.get("title_link")]
            texts.append("\n".join(self._text(part) for part in parts if part))
        files = [one for one in message.get("files") or [] if one.get("name")]
        for one in files:
            texts += dict.fromkeys(filter(None, (one["name"], one.get("title"))))
        yield self.chats.message(
            channel,
            title,
            id=key,
            thread_id=f"{channel}-{thread}" if thread else channel,
            reply_to=f"{channel}-{thread}" if thread and thread != ts else None,
            author=self._author(message),
            text="\n".join(filter(None, texts)),
            sent_at=time_of(ts),
            position=FORMS["unix-microseconds"](ts.replace(".", "")),
            kind=message.get("subtype"),
            edited_at=time_of((message.get("edited") or {}).get("ts")),
            reactions=[
                f":{one['name']}: {', '.join(map(self._name, one.get('users') or []))}"
                for one in message.get("reactions") or []
            ],
            links=[url for one in files if (url := one.get("permalink") or one.get("url_private"))],
        )
        here = [place for one in files if (place := self._place(one))]
        yield from self.chats.attached.files(key, here, at=time_of(ts))

    def _place(self, file: dict[str, Any]) -> str | None:
        """A file that a tool has added to the export; Slack itself exports links only."""
        id, name = file.get("id"), file["name"]
        for place in (f"__uploads/{id}/{name}", f"{id}-{name}"):
            if found := self._source.tree.find(place, self._source.name):
                return found.name
        return None

    def _author(self, message: dict[str, Any]) -> str:
        profile = message.get("user_profile") or {}
        if (user := message.get("user")) and user not in self._people and profile.get("real_name"):
            return str(profile["real_name"])
        return self._name(user) if user else str(message.get("username") or "")

    def _name(self, user: Any) -> str:
        return self._people.get(str(user), str(user))

    def _text(self, text: str) -> str:
        """A text with names in place of ids, and links as they are read."""
        return unescape(_TOKEN.sub(self._token, text))

    def _block(self, block: Any) -> str:
        """The text of the blocks that a message is laid out with."""
        if isinstance(block, list):
            return "".join(map(self._block, block))
        if not isinstance(block, dict):
            return ""
        if user := block.get("user_id"):
            return f"@{self._name(user)}"
        if block.get("type") == "emoji":
            return f":{block.get('name')}:"
        if channel := block.get("channel_id"):
            return f"#{channel}"
        text = block.get("text") or block.get("url")
        return text if isinstance(text, str) else self._block(text or block.get("elements"))

    def _token(self, found: re.Match[str]) -> str:
        mark, target, label = found.groups()
        if mark in ("@", "#"):
            return f"{mark}{label or self._people.get(target, target)}"
        if mark == "!":
            return f"@{label or target}".replace("@@", "@")
        return f"{label} <{target}>" if label and label != target else target


#: A folder is known by its files.
FORMAT = Format("slack", (), re.compile(rb"(?!)"), read, CHAT_MANIFEST, folder=FOLDER)
