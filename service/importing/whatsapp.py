"""Chats that WhatsApp exports, from Android and iPhone, in any language."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

from service.importing.rows import CHAT_MANIFEST, Chats, decode
from service.importing.source import Format, Item, Source
from service.records.forms import FORMS
from service.records.values import moment

_DATE: Final = (
    r"\d{1,2}[./-] ?\d{1,2}[./-] ?\d{2,4}\.?,? |\d{4}/\d{1,2}/\d{1,2},? |\d{4}-\d\d-\d\d, "
)
_CLOCK: Final = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?: ?[AaPp]\.? ?[Mm]\.?)?"
BEGINS = re.compile(
    rb"(?:\xe2\x80[\x8e\x8f])?\[?(?:"
    + f"{_DATE}){_CLOCK}".replace(" ?[", ".{0,3}?[").encode()
    + rb"(?:\] | - )"
)
_LINE: Final = re.compile(
    rf"\[?({_DATE})({_CLOCK})(?:\] | - )(?:([^:]{{1,100}}): ?)?(.*)", re.DOTALL
)
_SIGNS: Final = "\u200e\u200f\u202a\ufeff"
_CHAT: Final = re.compile(
    r"(?=.*WhatsApp).*?(?: with | mit | con | avec | com | met | - )(.+)", re.I
)
_COPY: Final = re.compile(r" ?\(\d+\)$")
#: The two ways in which a line names a file, whatever the language.
_BRACKETS: Final = re.compile(r"<[^<>:]+: ([^<>]+\.\w+)>")
_WORDS: Final = re.compile(r"^[\u200e\u200f]?(\S.{0,200}?\.\w{2,5}) \([^()\n]{1,60}\)$", re.M)
_ORDERS: Final = ("day-first", "month-first", "year-first")


def read(source: Source) -> Iterator[Item]:
    """The messages of a chat, and the files beside it that they name."""
    order = _order(source)
    chat, chats, people = _chat(source), Chats(source, "WhatsApp"), Counter[str]()
    first, last, place = None, None, 0
    for number, (day, clock, author, text) in _messages(source):
        found = FORMS[order](f"{day} {clock}")
        at = moment(found).removesuffix("Z") if found is not None else None
        place = place + 1 if at == last else 0
        first, last = first or at, at
        text = text.strip(_SIGNS + "\n")
        known = "\n".join((chat, at or day, author, text, str(place)))
        key = hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        people[author] += bool(author)
        yield number, chats.message(
            chat,
            chat,
            id=key,
            author=author,
            text=text,
            sent_at=at,
            position=(found or 0) + place,
            kind="message" if author else "notice",
        )
        files = _BRACKETS.findall(text)
        files += [name for name in _WORDS.findall(text) if source.tree.find(name, source.name)]
        yield from ((number, one) for one in chats.attached.files(key, files, at=at))
    yield 0, chats.conversation(chat, chat, members=list(+people), started_at=first)
    source.notes.append(f"Dates are read as {order}. Times have no zone and are read as UTC.")
    chats.attached.report()


def _messages(source: Source) -> Iterator[tuple[int, tuple[str, str, str, str]]]:
    """(line, (day, clock, author, text)) of each message, which may have several lines."""
    open_, start = None, 0
    for number, raw in enumerate(source.file, start=1):
        line = decode(raw)[0].replace("\r\n", "\n")
        clean = line.lstrip(_SIGNS).replace("\u202f", " ").replace("\u00a0", " ")
        if found := _LINE.match(clean):
            if open_:
                yield start, open_
            day, clock, author, text = found.groups()
            clock = re.sub(r"\.(?=\d)", ":", re.sub(r"(?<=[AaPp])\. ?", "", clock)).rstrip(".")
            day, author = day.replace(" ", "").rstrip(",."), (author or "").strip(_SIGNS + "~ ")
            open_, start = (day, clock, author, text), number
        elif open_:
            open_ = (*open_[:3], open_[3] + line)
        elif line.strip():
            source.notes.append(f"Line {number} is before the first message and is left out.")
    if open_:
        yield start, open_


def _order(source: Source) -> str:
    """The order of day, month and year in which most days follow each other."""
    days: list[str] = []
    half = False
    for _, (day, clock, _, _) in _messages(source):
        half = half or clock[-1] in "mM"
        if not days or days[-1] != day:
            days.append(day)
    source.file.seek(0)
    source.notes.clear()

    def wrong(order: str) -> int:
        known = [time for day in days if (time := FORMS[order](day)) is not None]
        return 2 * (len(days) - len(known)) + sum(a > b for a, b in pairwise(known))

    return min(("month-first", "day-first", "year-first") if half else _ORDERS, key=wrong)


def _chat(source: Source) -> str:
    """The name of a chat: that of its file, or of the archive it is in."""
    stem = PurePosixPath(source.name).stem
    stem = PurePosixPath(source.tree.path).stem if stem.strip("_").lower() == "chat" else stem
    stem = _COPY.sub("", stem)
    found = _CHAT.match(stem)
    return found[1].strip() if found else stem


FORMAT = Format("whatsapp", (), BEGINS, read, CHAT_MANIFEST, any_extension=True)
