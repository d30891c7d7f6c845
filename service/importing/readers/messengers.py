"""Messages from all channels of a Slack workspace, and chats that WhatsApp exports.

Chats of WhatsApp come from Android and iPhone, in any language.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from html import unescape
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import dirname, join
from typing import Any, Final

from evidence.errors import InvalidRequest
from service.importing.charsets import decode
from service.importing.rows import CHAT_MANIFEST, CONTACTS, Chats, row, time_of
from service.importing.json_values import loads
from service.importing.source import Format, Item, Source, bounded_lines
from evidence.manifest.forms import FORMS
from evidence.times import moment

#: The files in the folder of an export.
FOLDER = ("channels.json", "users.json")
_CHANNELS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_TEXTS = ("pretext", "title", "text", "fallback", "title_link")
# Without `<` inside, it takes linear time.
_TOKEN = re.compile(r"<([@#!]?)([^|<>]+)(?:\|([^<>]*))?>")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.json")


def read_workspace(source: Source) -> Iterator[Item]:
    """The people, the channels and all their messages, one day at a time."""
    home = dirname(source.name)
    people = {}
    for number, person in enumerate(_load(source, join(home, "users.json")), start=1):
        if isinstance(person, dict):
            data = _person(person)
            people[data["id"]] = str(data["name"])
            yield number, partial(row, source, str(CONTACTS["name"]), data)
        else:
            yield number, (
                person if isinstance(person, str) else "users.json: this entry is not a person."
            )
    workspace = _Workspace(source, people)
    for file in _CHANNELS:
        for number, channel in enumerate(_load(source, join(home, file)), start=1):
            if isinstance(channel, dict) and channel.get("id"):
                yield from workspace.channel(home, number, channel)
            else:
                yield number, (
                    channel if isinstance(channel, str) else f"{file}: this entry has no id."
                )
    workspace.chats.report()
    unread = [name for name in source.tree.files if name.startswith(join(home, ""))]
    unread = [name for name in unread if name not in source.tree.used]
    if unread:
        source.notes.append(
            f"Left out: files without messages ({len(unread)}; first: {unread[0]})."
        )


def _load(source: Source, name: str) -> list[Any]:
    """The list in a file of the export, or one message; empty if there is no such file."""
    if (file := source.tree.files.get(name)) is None:
        return []
    try:
        content = loads(file.read())
    except InvalidRequest as error:
        return [error.message]
    except ValueError as error:
        return [f"{name} is not JSON: {error}."]
    return content if isinstance(content, list) else [f"{name} is not a list."]


def _members(value: Any) -> dict[str, Any]:
    """An object; empty if it is something else."""
    return value if isinstance(value, dict) else {}


def _person(person: dict[str, Any]) -> dict[str, Any]:
    profile = _members(person.get("profile"))
    names = (profile.get("real_name"), person.get("real_name"), profile.get("display_name"))
    nicknames = (profile.get("display_name"), person.get("name"))
    return {
        "id": str(person.get("id")),
        "name": next(filter(None, names), None) or person.get("name") or person.get("id"),
        "nicknames": list(dict.fromkeys(str(name) for name in nicknames if name)),
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
        self._days: dict[str, list[str]] = {}
        for file in source.tree.files:
            folder, _, name = file.rpartition("/")
            if _DAY.fullmatch(name):
                self._days.setdefault(folder, []).append(file)

    def channel(self, home: str, number: int, channel: dict[str, Any]) -> Iterator[Item]:
        """A channel and its messages; a channel of a few people is named after them."""
        key, name, members = str(channel["id"]), channel.get("name"), channel.get("members")
        members = [self._name(member) for member in members] if isinstance(members, list) else []
        title = f"#{name}" if name else ", ".join(members) or key
        texts = (_members(channel.get(name)).get("value") for name in ("topic", "purpose"))
        about = {"members": members, "description": "\n".join(str(text) for text in texts if text)}
        started = time_of(channel.get("created"))
        yield number, partial(self.chats.conversation, key, title, started_at=started, **about)
        folders = [join(home, str(name)) for name in (name, key) if name]
        days = next((self._days[folder] for folder in folders if folder in self._days), [])
        for day in sorted(days):
            for number, message in enumerate(_load(self._source, day), start=1):
                if isinstance(message, dict) and message.get("ts"):
                    yield number, partial(self._message, message, key, title)
                elif isinstance(message, str):
                    yield number, message
                else:
                    yield number, f"{day}: this message has no ts."

    def _message(self, message: dict[str, Any], channel: str, title: str) -> Iterator[Any]:
        ts, thread, members = str(message["ts"]), message.get("thread_ts"), self.chats.members
        key = f"{channel}-{ts}"
        texts = [
            self._text(members.get(message, "text", str)) or self._block(message.get("blocks"))
        ]
        for attachment in members.all(message, "attachments", dict):
            text = {name: members.get(attachment, name, str) for name in _TEXTS}
            parts = [text["pretext"], text["title"], text["text"] or text["fallback"]]
            for field in members.all(attachment, "fields", dict):
                pair = (members.get(field, name, str) for name in ("title", "value"))
                parts.append(": ".join(filter(None, pair)))
            parts.append(text["title_link"])
            texts.append("\n".join(self._text(part) for part in parts if part))
        files = [
            file for file in members.all(message, "files", dict) if members.get(file, "name", str)
        ]
        for file in files:
            texts += dict.fromkeys(filter(None, (file["name"], members.get(file, "title", str))))
        urls = ([members.get(file, n, str) for n in ("permalink", "url_private")] for file in files)
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
            kind=members.get(message, "subtype", str),
            edited_at=time_of(members.get(message, "edited", dict).get("ts")),
            reactions=[
                f":{members.get(reaction, 'name', str)}: "
                + ", ".join(map(self._name, members.all(reaction, "users", str)))
                for reaction in members.all(message, "reactions", dict)
            ],
            links=[url for pair in urls if (url := next(filter(None, pair), None))],
        )
        paths = [path for file in files if (path := self._exported_file(file))]
        yield from self.chats.attached.files(key, paths, at=time_of(ts))

    def _exported_file(self, file: dict[str, Any]) -> str | None:
        """A file that a tool has added to the export; Slack itself exports links only."""
        id, name = file.get("id"), file["name"]
        for path in (f"__uploads/{id}/{name}", f"{id}-{name}"):
            if entry := self._source.tree.find(path, self._source.name):
                return entry.name
        return None

    def _author(self, message: dict[str, Any]) -> str:
        members = self.chats.members
        profile = members.get(message, "user_profile", dict)
        user, name = members.get(message, "user", str), members.get(profile, "real_name", str)
        if user:
            return name if name and user not in self._people else self._name(user)
        return members.get(message, "username", str)

    def _name(self, user: Any) -> str:
        return self._people.get(str(user), str(user))

    def _text(self, text: str) -> str:
        """A text with names instead of ids, and readable links."""
        return unescape(_TOKEN.sub(self._token, text))

    def _block(self, block: Any) -> str:
        """The text of the layout blocks of a message."""
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

    def _token(self, match: re.Match[str]) -> str:
        mark, target, label = match.groups()
        if mark in ("@", "#"):
            return f"{mark}{label or self._people.get(target, target)}"
        if mark == "!":
            return f"@{label or target}".replace("@@", "@")
        return f"{label} <{target}>" if label and label != target else target


#: A folder is recognized by its files.
SLACK = Format("slack", (), re.compile(rb"(?!)"), read_workspace, CHAT_MANIFEST, folder=FOLDER)


_MARKS: Final = r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]*+"
_BETWEEN: Final = rf"{_MARKS}(?:[./-] ?|[年년月월] ?){_MARKS}"
#: Three numbers, and what languages write after them, such as `г.` or ` à`.
_DATE: Final = (
    rf"\d{{1,4}}{_BETWEEN}\d{{1,2}}{_BETWEEN}\d{{1,4}}(?:\.|[日일])?{_MARKS}(?: ?г\.)?"
    rf"[,،]?(?: (?!\d)[^\W\d_]{{1,4}}\.?,?)?? ?{_MARKS}"
)
_EARLY: Final = "上午 凌晨 清晨 早上 오전 午前 ص ق.ظ ÖÖ π.μ. पूर्वाह्न SA PG".split()
_LATE: Final = "下午 中午 晚上 오후 午後 م ب.ظ ÖS μ.μ. अपराह्न CH PTG".split()
_HALF: Final = "|".join((r"[AaPp]\.? ?[Mm]\.?", *map(re.escape, _EARLY + _LATE)))
_CLOCK: Final = rf"(?:(?:{_HALF}) ?)?\d{{1,2}}[:.]\d\d(?:[:.]\d\d)?(?: ?(?:{_HALF}))?(?: ?ч\.)?"
_LINE: Final = re.compile(
    rf"\[?(?:({_DATE})({_CLOCK})|(\d{{1,2}}:\d\d), (\d{{1,2}}/\d{{1,2}}/\d{{4}}))"
    rf"{_MARKS}(?:\] | {_MARKS}[-–] |, (?=[^:\n]{{1,100}} : ))(?:([^:]{{1,100}}): ?)?",
    re.DOTALL,
)
#: A line of a program's log, which has seconds.
_LOG: Final = re.compile(r"\d{4}-\d\d-\d\d[ ,]+\d\d:\d\d:\d\d")
#: Beginnings of files are checked up to this line.
_CHECKED: Final = 50


class _Chat:
    """Recognizes a chat by its first line, and by a second message or an author."""

    def match(self, content: bytes, /) -> bool:
        """Whether a file with these first bytes is a chat."""
        lines = [_plain(line) for line in decode(content)[0].splitlines() if line.strip()]
        first = _LINE.match(lines[0]) if lines and not _LOG.match(lines[0]) else None
        following = any(map(_LINE.match, lines[1:_CHECKED]))
        return first is not None and (following or first[5] is not None)


def _plain(line: str) -> str:
    """A line without signs at its beginning, and with plain spaces."""
    return line.lstrip(_SIGNS).replace("\u202f", " ").replace("\u00a0", " ")


def _day_and_time(day: str, clock: str) -> tuple[str, str]:
    """A day and a time as forms of times have them."""
    numbers = re.findall(r"\d+", day)
    mark = "." if "." in day else "-" if "-" in day else "/"
    digits = re.findall(r"\d+", clock)
    late = re.search("|".join((r"[Pp]\.? ?[Mm]", *map(re.escape, _LATE))), clock)
    half = re.search(_HALF, clock)
    time = ":".join(str(int(part)).zfill(2) for part in digits)
    suffix = (" PM" if late else " AM") if half else ""
    return mark.join(str(int(part)).zfill(len(part)) for part in numbers), time + suffix


_SIGNS: Final = "\u200e\u200f\u202a\ufeff"
_CHAT = re.compile(r"(?=.*WhatsApp).*?(?: with | mit | con | avec | com | met | - )(.+)", re.I)
_COPY: Final = re.compile(r" ?\(\d+\)$")
#: The two ways in which a line can name a file, in any language.
_BRACKETS: Final = re.compile(r"<[^<>:]+: ([^<>]+\.\w+)>")
_WORDS: Final = re.compile(r"^[\u200e\u200f]?(\S.{0,200}?\.\w{2,5}) \([^()\n]{1,60}\)$", re.M)
_ORDERS: Final = ("day-first", "month-first", "year-first")


def read_chat(source: Source) -> Iterator[Item]:
    """The messages of a chat, and the files next to it that they name."""
    order = _order(source)
    chat, chats, people = _chat(source), Chats(source, "WhatsApp"), Counter[str]()
    first, last, offset = None, None, 0
    for number, (day, clock, author, text) in _messages(source):
        microseconds = FORMS[order](f"{day} {clock}")
        at = moment(microseconds).removesuffix("Z") if microseconds is not None else None
        offset = offset + 1 if at == last else 0
        first, last = first or at, at
        text = text.strip(_SIGNS + "\n")
        identity = "\n".join((chat, at or day, author, text, str(offset)))
        key = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        people[author] += bool(author)
        yield number, partial(
            chats.message,
            chat,
            chat,
            id=key,
            author=author,
            text=text,
            sent_at=at,
            position=(microseconds or 0) + offset,
            kind="message" if author else "notice",
        )
        files = _BRACKETS.findall(text)
        files += [name for name in _WORDS.findall(text) if source.tree.find(name, source.name)]
        if files:
            yield number, partial(chats.attached.files, key, files, at=at)
    yield 0, chats.conversation(chat, chat, members=list(+people), started_at=first)
    source.notes.append(f"Dates are read as {order}. Times have no time zone and are read as UTC.")
    chats.report()


def _messages(source: Source) -> Iterator[tuple[int, tuple[str, str, str, str]]]:
    """(line, (day, clock, author, text)) of each message, which may have several lines."""
    open_, texts, start = None, list[str](), 0
    for number, raw in enumerate(bounded_lines(source.file), start=1):
        line = decode(raw)[0].replace("\r\n", "\n")
        clean = _plain(line)
        if match := _LINE.match(clean):
            if open_:
                yield start, (*open_, "".join(texts))
            day, clock, first, last, author = match.groups()
            day, clock = _day_and_time(day or last, clock or first)
            author = (author or "").strip(_SIGNS + "~ ")
            open_, texts, start = (day, clock, author), [clean[match.end() :]], number
        elif open_:
            texts.append(line)
        elif line.strip():
            source.notes.append(f"Line {number} precedes the first message and was skipped.")
    if open_:
        yield start, (*open_, "".join(texts))


def _order(source: Source) -> str:
    """The order of day, month and year that puts most days in sequence."""
    days: list[str] = []
    half = False
    for _, (day, clock, _, _) in _messages(source):
        half = half or clock[-1] in "mM"
        if not days or days[-1] != day:
            days.append(day)
    source.file.seek(0)
    source.notes.clear()

    def wrong(order: str) -> int:
        times = [time for day in days if (time := FORMS[order](day)) is not None]
        return 2 * (len(days) - len(times)) + sum(a > b for a, b in pairwise(times))

    american = half and not any("." in day for day in days)
    return min(("month-first", "day-first", "year-first") if american else _ORDERS, key=wrong)


def _chat(source: Source) -> str:
    """The name of a chat: the name of its file, or of its archive."""
    stem = PurePosixPath(source.name).stem
    stem = PurePosixPath(source.tree.path).stem if stem.strip("_").lower() == "chat" else stem
    stem = _COPY.sub("", stem)
    match = _CHAT.match(stem)
    return match[1].strip() if match else stem


WHATSAPP = Format("whatsapp", (), _Chat(), read_chat, CHAT_MANIFEST, any_extension=True)
