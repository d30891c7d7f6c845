"""Events and tasks of iCalendar files, people and organizations of vCard files."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from typing import Any, BinaryIO

from service.importing.charsets import decode
from service.importing.rows import CONTACTS, Attached, manifest, record_id, row, stream
from service.importing.source import Format, Item, Source, bounded_lines
from service.records.intake import Row

EVENTS = "events"
_EVENTS = manifest(
    stream(
        EVENTS,
        "id:id series_id:thread kind:group calendar:group summary:title description:text"
        " start:time end:when time_zone:group location:label organizer:actor attendees:list"
        " categories:list status:group url:words recurrence:list links:list other:list"
        " updated_at:when",
        attached=True,
    )
)
_CALENDAR_OF = "BEGIN:VCALENDAR\r\n{}END:VCALENDAR\r\n"
_CALENDAR = re.compile(rb"\s*BEGIN:VCALENDAR", re.IGNORECASE)
#: Where a line continues, even inside a character; a line of quoted-printable text ends with `=`.
_FOLD = re.compile(rb"(?<!=)\r?\n[ \t]")
#: The most kinds of broken lines that are reported.
LISTED = 5
_KINDS = {"VEVENT": "event", "VTODO": "task", "VJOURNAL": "journal"}
_SERIES = ("RRULE", "RDATE", "EXDATE", "EXRULE")
#: Properties that have their own field, and those that change with each export.
_KNOWN = frozenset(
    "UID SUMMARY DESCRIPTION DTSTART DTEND DUE DURATION LOCATION ORGANIZER ATTENDEE CATEGORIES"
    " STATUS URL ATTACH LAST-MODIFIED RECURRENCE-ID DTSTAMP SEQUENCE".split()
) | {*_SERIES}


def components(file: BinaryIO, outer: str = "") -> Iterator[tuple[int, str, str]]:
    """(line, name, text) of each component inside `outer`; lines outside have the name ""."""
    lines: list[bytes] = []
    name, start = "", 0
    for number, line in enumerate(bounded_lines(file), start=1):
        word = line.strip().removeprefix(b"\xef\xbb\xbf").decode("latin-1").upper()
        if not name and word.startswith("BEGIN:") and word != f"BEGIN:{outer}":
            name, start = word.removeprefix("BEGIN:"), number
        if name:
            lines.append(line)
        elif word and word != f"BEGIN:{outer}" and word != f"END:{outer}":
            yield number, "", decode(line.strip())[0]
        if name and word == f"END:{name}":
            yield start, name, decode(_FOLD.sub(b"", b"".join(lines)))[0]
            lines, name = [], ""
    if name:
        yield start, "cut", f"This {name} has no end: the file is cut off."


def read_calendar(source: Source) -> Iterator[Item]:
    """The components of a calendar that people create, one at a time."""
    from icalendar import Calendar, timezone  # imported for calendars only

    attached, name, skipped = Attached(source), source.folder, Counter[str]()
    broken = Counter[str]()
    timezone.tzp.use_default()  # forgets zones with these names from another file
    for line, kind, text in components(source.file, "VCALENDAR"):
        if kind == "cut":
            yield line, text
        elif kind != "VTIMEZONE" and kind not in _KINDS:
            property, _, value = text.partition(":")
            name = value if property == "X-WR-CALNAME" else name
            skipped[kind] += bool(kind)
        elif kind == "VTIMEZONE":
            try:  # here, because the parser remembers every zone for later events
                Calendar.from_ical(_CALENDAR_OF.format(text))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                yield line, f"This time zone cannot be read: {error}."
        else:
            yield line, partial(_events, text, kind, source, name, attached, broken)
    attached.report()
    for problem, count in broken.most_common(LISTED):
        source.notes.append(f"Left out, {count} times: {problem}")
    if skipped := +skipped:
        listed = ", ".join(f"{count} {kind}" for kind, count in skipped.items())
        source.notes.append(f"Left out: {listed}.")


def _events(
    text: str, kind: str, source: Source, calendar: str, attached: Attached, broken: Counter[str]
) -> Iterator[Row]:
    """The rows of a component, and of those inside it."""
    from icalendar import Calendar

    for component in Calendar.from_ical(_CALENDAR_OF.format(text)).walk(kind):
        broken.update(problem for _, problem in component.errors)
        yield from _event(component, source, calendar, attached)


def _event(found: Any, source: Source, calendar: str, attached: Attached) -> Iterator[Row]:
    series = str(found.get("UID", "")) or record_id("", found.to_ical())
    again = found.get("RECURRENCE-ID")
    key = record_id(f"{series}_{again.dt.isoformat()}" if again is not None else series)
    start, end = found.get("DTSTART"), found.get("DTEND") or found.get("DUE")
    finish = end.dt if end is not None else None
    if finish is None and start is not None and (duration := found.get("DURATION")) is not None:
        finish = start.dt + duration.dt
    links = [one for one in _all(found, "ATTACH") if "ENCODING" not in one.params]
    data = {
        "id": key,
        "series_id": series,
        "kind": _KINDS[found.name],
        "calendar": calendar,
        "summary": str(found.get("SUMMARY", "")),
        "description": str(found.get("DESCRIPTION", "")),
        "start": _time((start if start is not None else end).dt) if start or end else None,
        "end": _time(finish) if finish is not None else None,
        "time_zone": start.params.get("TZID") if start is not None else None,
        "location": str(found.get("LOCATION", "")),
        "organizer": "; ".join(map(_person, _all(found, "ORGANIZER"))),
        "attendees": [_person(one) for one in _all(found, "ATTENDEE")],
        "categories": [str(word) for one in _all(found, "CATEGORIES") for word in one.cats],
        "status": str(found.get("STATUS", "")).lower(),
        "url": str(found.get("URL", "")),
        "recurrence": [f"{n}:{_written(one)}" for n in _SERIES for one in _all(found, n)],
        "links": [str(one) for one in links],
        "other": [
            f"{name}: {_written(one)}"
            for name in dict.fromkeys(found)
            if name not in _KNOWN
            for one in _all(found, name)
        ],
        "updated_at": _time(found["LAST-MODIFIED"].dt) if "LAST-MODIFIED" in found else None,
    }
    yield row(source, EVENTS, data)
    inline = [one for one in _all(found, "ATTACH") if "ENCODING" in one.params]
    for number, one in enumerate(inline, start=1):
        name = one.params.get("X-FILENAME") or one.params.get("FILENAME") or f"attachment-{number}"
        kind = one.params.get("FMTTYPE", "")
        content = one.from_ical(one.to_ical())
        yield attached.row(key, number, name, content, at=data["start"], kind=kind)


def _all(found: Any, name: str) -> list[Any]:
    value = found.get(name, [])
    return value if isinstance(value, list) else [value]


def _time(value: date | datetime) -> str:
    """A time, with its offset if it has one, or a day."""
    return value.isoformat().replace("+00:00", "Z")


def _written(value: Any) -> str:
    text = value.to_ical()
    return text.decode() if isinstance(text, bytes) else str(text)


def _person(value: Any) -> str:
    address = re.sub("^mailto:", "", str(value), flags=re.IGNORECASE)
    name, answer = value.params.get("CN", ""), value.params.get("PARTSTAT", "").lower()
    who = f"{name} <{address}>" if name and name != address else address
    return f"{who} ({answer})" if answer else who


ICS = Format("ics", (".ics", ".ical"), _CALENDAR, read_calendar, _EVENTS, any_extension=True)


_CARDS = manifest(CONTACTS)
_CARD = re.compile(rb"\s*BEGIN:VCARD", re.IGNORECASE)
#: Property -> the list of the record that has its values.
_LISTS = {
    "EMAIL": "emails",
    "TEL": "phones",
    "ADR": "addresses",
    "URL": "urls",
    "IMPP": "urls",
    "NICKNAME": "nicknames",
    "CATEGORIES": "groups",
}
_ONES = {"BDAY": "birthday", "TITLE": "role", "NOTE": "note", "ORG": "organization"}
_PICTURES = ("PHOTO", "LOGO")
_SILENT = frozenset({"VERSION", "PRODID", "X-ABLABEL", "UID", "FN", "N", "REV", *_PICTURES})
_PLAIN_TYPES = frozenset({"INTERNET", "PREF", "VOICE"})
#: vobject truncates data URIs.
_DATA_URI = re.compile(r"^(PHOTO|LOGO)[^:\n]*:data:image/([\w.+-]+);base64,", re.M | re.I)
#: The lines that vobject reads; its own pattern takes exponential time for others.
_CARD_LINE = re.compile(
    r"(?:(?P<group>[\w-]++)\.)?(?P<name>[\w-]++)"
    r"(?P<params>;?(?:;[\w-]++(?:[=,](?:\"[^\"]*+\"|[^\";:,]*+))*+)*+):(?P<value>.*)",
    re.DOTALL | re.ASCII,
)
_APPLE_LABEL = re.compile(r"^_\$!<(.*)>!\$_$")


def read_cards(source: Source) -> Iterator[Item]:
    """The cards of an address book, one at a time."""
    attached = Attached(source)
    for line, kind, text in components(source.file):
        if kind == "cut":
            yield line, text
        elif kind == "VCARD":
            yield line, partial(_card, text, source, attached)
    attached.report()


def _card(text: str, source: Source, attached: Attached) -> Iterator[Row]:
    from vobject import base, readOne  # imported for address books only

    base.line_re = _CARD_LINE
    card = readOne(_DATA_URI.sub(r"\1;ENCODING=b;TYPE=\2:", text), allowQP=True)
    found: dict[str, list[str]] = defaultdict(list)
    pictures = []
    labels = {one.group: one.value for one in card.getChildren() if one.name == "X-ABLABEL"}
    for one in card.getChildren():
        if one.name in _PICTURES and isinstance(one.value, bytes):
            pictures.append(one)
        elif field := _LISTS.get(one.name) or _ONES.get(one.name):
            found[field].append(_labelled(one, labels))
        elif one.name not in _SILENT or one.name in _PICTURES:
            found["other"].append(f"{one.name}: {_text(one.value)}")
    names = [_text(one.value) for one in card.contents.get("fn", [])]
    parts = [one.value for one in card.contents.get("n", [])]
    name = next(filter(None, [*names, *map(_name, parts), *found["organization"]]), "")
    name = name or next(iter(found["emails"] + found["phones"]), "")
    uid = _text(card.uid.value) if "uid" in card.contents else ""
    uid = record_id(uid, "\n".join([name, *found["emails"]]).encode())
    data: dict[str, Any] = {"id": uid, "name": name}
    data |= {field: found[field] for field in _LISTS.values()}
    data |= {field: "; ".join(found[field]) for field in _ONES.values()}
    data |= {"other": found["other"]}
    data["updated_at"] = _text(card.rev.value) if "rev" in card.contents else None
    yield row(source, CONTACTS["name"], data)
    for number, one in enumerate(pictures, start=1):
        kind = (_types(one) or ["jpeg"])[0].lower().removeprefix("image/")
        picture = f"{one.name.lower()}.{kind}"
        yield attached.row(uid, number, picture, one.value, kind=f"image/{kind}")


def _labelled(one: Any, labels: dict[str, str]) -> str:
    """A value with its label, such as `ada@example.org (work)`."""
    own = [word.lower() for word in _types(one) if word.upper() not in _PLAIN_TYPES]
    if one.group in labels:
        own.append(_APPLE_LABEL.sub(r"\1", labels[one.group]).lower())
    text = re.sub("^(tel|mailto):", "", _text(one.value))
    return f"{text} ({', '.join(own)})" if own and text and one.name in _LISTS else text


def _types(one: Any) -> list[str]:
    words = one.params.get("TYPE", []) + one.singletonparams
    return [word for text in words for word in text.split(",")]


def _name(value: Any) -> str:
    parts = (value.prefix, value.given, value.additional, value.family, value.suffix)
    return " ".join(" ".join(part) if isinstance(part, list) else part for part in parts if part)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    if isinstance(value, str):
        return value.replace("\r\n", "\n").strip()
    lines = [" ".join(line.split()) for line in str(value).splitlines()]
    return ", ".join(filter(None, lines))


VCARD = Format("vcard", (".vcf",), _CARD, read_cards, _CARDS, any_extension=True)
