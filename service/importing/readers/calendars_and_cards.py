"""Events and tasks from iCalendar files, and people and organizations from vCard files."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import partial
from quopri import decodestring
from typing import Any, BinaryIO

from service.importing.charsets import decode
from service.importing.rows import CONTACTS, Attached, manifest, record_id, row, stream
from service.importing.source import Format, Item, Source, bounded_lines
from service.records.intake import Row
from evidence.times import microseconds

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
PROBLEMS_MOST = 5
_KINDS = {"VEVENT": "event", "VTODO": "task", "VJOURNAL": "journal"}
_SERIES = ("RRULE", "RDATE", "EXDATE", "EXRULE")
#: Properties that have their own field, and those that change with each export.
_OWN_FIELDS = frozenset(
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
        yield start, "cut", f"This {name} is incomplete: the file is cut off."


def read_calendar(source: Source) -> Iterator[Item]:
    """The components of a calendar that people create, one at a time."""
    from icalendar import Calendar, timezone  # imported for calendars only

    attached, name, skipped = Attached(source), "", Counter[str]()
    broken = Counter[str]()
    timezone.tzp.use_default()  # forgets zones with these names from another file
    for line, kind, text in components(source.file, "VCALENDAR"):
        if kind == "cut":
            yield line, text
        elif kind != "VTIMEZONE" and kind not in _KINDS:
            property, _, value = text.partition(":")
            name = value if property.partition(";")[0] == "X-WR-CALNAME" else name
            skipped[kind] += bool(kind)
        elif kind == "VTIMEZONE":
            try:  # here, because the parser remembers every zone for later events
                Calendar.from_ical(_CALENDAR_OF.format(text))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                yield line, f"This time zone cannot be read: {error}."
        else:
            yield line, partial(_events, text, kind, source, name, attached, broken)
    attached.report()
    for problem, count in broken.most_common(PROBLEMS_MOST):
        source.notes.append(f"Left out ({count} ×): {problem}")
    if skipped := +skipped:
        summary = ", ".join(f"{count} {kind}" for kind, count in skipped.items())
        source.notes.append(f"Left out: {summary}.")


def _events(
    text: str, kind: str, source: Source, calendar: str, attached: Attached, broken: Counter[str]
) -> Iterator[Row]:
    """The rows of a component, and of those inside it."""
    from icalendar import Calendar

    text = _QUOTED.sub(_unquoted, text)
    for component in Calendar.from_ical(_CALENDAR_OF.format(text)).walk(kind):
        broken.update(f"{name}: {problem}" for name, problem in component.errors)
        yield from _event(_Properties(component, broken), source, calendar, attached)


def _event(
    properties: "_Properties", source: Source, calendar: str, attached: Attached
) -> Iterator[Row]:
    series = properties.first("UID") or record_id("", properties.component.to_ical())
    again = properties.first("RECURRENCE-ID", _moment)
    own = f"{series}_{again.isoformat()}" if again is not None else series
    key = record_id(f"{calendar}/{own}" if calendar else own)
    start, end = properties.first("DTSTART", _moment), properties.first("DTEND", _moment)
    end = end or properties.first("DUE", _moment)
    finish = end or properties.first("DURATION", lambda duration: start and start + duration.dt)
    links, inline = properties.all("ATTACH", _link), properties.all("ATTACH", _inline)
    data = {
        "id": key,
        "series_id": series,
        "kind": _KINDS[properties.component.name],
        "calendar": calendar or source.folder,
        "summary": properties.first("SUMMARY"),
        "description": properties.first("DESCRIPTION"),
        "start": _time(start or end) if start or end else None,
        "end": _time(finish) if finish else None,
        "time_zone": properties.zone("DTSTART"),
        "location": properties.first("LOCATION"),
        "organizer": "; ".join(properties.all("ORGANIZER", _person)),
        "attendees": properties.all("ATTENDEE", _person),
        "categories": [word for words in properties.all("CATEGORIES", _words) for word in words],
        "status": (properties.first("STATUS") or "").lower(),
        "url": properties.first("URL"),
        "recurrence": [f"{n}:{text}" for n in _SERIES for text in properties.all(n, _written)],
        "links": [link for link in links if link],
        "other": [
            f"{name}: {text}"
            for name in dict.fromkeys(properties.component)
            if name not in _OWN_FIELDS
            for text in properties.all(name, _written)
        ],
        "updated_at": properties.first("LAST-MODIFIED", lambda modified: _time(modified.dt)),
    }
    event = row(source, EVENTS, data)
    if calendar:  # older versions used the UID alone
        event = event._replace(former=(EVENTS, record_id(own), {"calendar": calendar}))
    yield event
    for number, (name, kind, content) in enumerate(filter(None, inline), start=1):
        name = name or f"attachment-{number}"
        yield attached.row(key, number, name, content, at=data["start"], kind=kind)


class _Properties:
    """The properties of a component. A value that cannot be read is left out and counted."""

    def __init__(self, component: Any, broken: Counter[str]) -> None:
        self.component, self._broken = component, broken

    def all(self, name: str, of: Callable[[Any], Any] = str) -> list[Any]:
        """What a function makes of the values of a property."""
        values = self.component.get(name, [])
        results = []
        for value in values if isinstance(values, list) else [values]:
            try:
                results.append(of(value))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                if not any(name == broken for broken, _ in self.component.errors):
                    self._broken[f"{name}: its value cannot be read"] += 1
        return results

    def first(self, name: str, of: Callable[[Any], Any] = str) -> Any:
        """The first of them, if any."""
        return next(iter(self.all(name, of)), None)

    def zone(self, name: str) -> str | None:
        """The time zone of a time, which is reported if its offset is unknown."""
        zone: str | None = self.first(name, lambda start: start.params.get("TZID"))
        at = self.first(name, _moment)
        if zone and isinstance(at, datetime) and at.tzinfo is None:
            self._broken[f"the offset of the time zone {zone!r}, which is unknown"] += 1
        return zone


def _moment(value: Any) -> Any:
    return value.dt


def _words(value: Any) -> list[str]:
    return [str(word) for word in value.cats]


def _link(value: Any) -> str | None:
    return None if "ENCODING" in value.params else str(value)


def _inline(value: Any) -> tuple[str, str, bytes] | None:
    """(file name, media type, bytes) of a file inside the calendar."""
    if "ENCODING" not in value.params:
        return None
    name = value.params.get("X-FILENAME") or value.params.get("FILENAME") or ""
    return name, value.params.get("FMTTYPE", ""), value.from_ical(value.to_ical())


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
#: A time without separators, and characters that some programs escape without need.
_COMPACT = re.compile(r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)")
_ESCAPED = re.compile(r"\\([:;,])")
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


_QUOTED = re.compile(
    r"^([\w.-]++)(?=[^:\n]*;(?:ENCODING=)?QUOTED-PRINTABLE[;:])((?:;[^:;\n]*+)++):"
    r"((?:[^\n]*=\r?\n)*[^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_CHARSET = re.compile(r';CHARSET="?([\w-]+)"?', re.IGNORECASE)
_QUOTING = re.compile(r";(?:ENCODING=)?QUOTED-PRINTABLE", re.IGNORECASE)


def _unquoted(match: re.Match[str]) -> str:
    """A property in quoted-printable as one in plain text."""
    name, parameters, value = match.groups()
    charset = _CHARSET.search(parameters)
    raw = decodestring(value.rstrip("\r").encode("utf-8", "surrogatepass"))
    text = decode(raw, charset[1] if charset else "utf-8")[0]
    parameters = _QUOTING.sub("", _CHARSET.sub("", parameters))
    return f"{name}{parameters}:" + text.replace("\r\n", "\n").replace("\n", "\\n")


def _card(text: str, source: Source, attached: Attached) -> Iterator[Row]:
    from vobject import base, readOne  # imported for address books only

    base.line_re = _CARD_LINE
    text = _DATA_URI.sub(r"\1;ENCODING=b;TYPE=\2:", text)
    try:
        card = readOne(text, allowQP=True)
    except UnicodeError:  # of quoted text, which vobject reads as UTF-8
        card = readOne(_QUOTED.sub(_unquoted, text), allowQP=True)
    fields: dict[str, list[str]] = defaultdict(list)
    pictures = []
    labels = {line.group: line.value for line in card.getChildren() if line.name == "X-ABLABEL"}
    for line in card.getChildren():
        if line.name in _PICTURES and isinstance(line.value, bytes):
            pictures.append(line)
        elif field := _LISTS.get(line.name) or _ONES.get(line.name):
            fields[field].append(_labelled(line, labels))
        elif line.name not in _SILENT or line.name in _PICTURES:
            fields["other"].append(f"{line.name}: {_text(line.value)}")
    names = [_text(line.value) for line in card.contents.get("fn", [])]
    parts = [line.value for line in card.contents.get("n", [])]
    name = next(filter(None, [*names, *map(_name, parts), *fields["organization"]]), "")
    name = name or next(iter(fields["emails"] + fields["phones"]), "")
    uid = _text(card.uid.value) if "uid" in card.contents else ""
    uid = record_id(uid, "\n".join([name, *fields["emails"]]).encode())
    revised = _text(card.rev.value) if "rev" in card.contents else ""
    revised = _COMPACT.sub(r"\1-\2-\3T\4:\5:\6", revised)
    if revised and microseconds(revised) is None:
        fields["other"].append(f"REV: {revised}")
        revised = ""
    data: dict[str, Any] = {"id": uid, "name": name}
    data |= {field: fields[field] for field in _LISTS.values()}
    data |= {field: "; ".join(fields[field]) for field in _ONES.values()}
    data |= {"other": fields["other"]}
    data["updated_at"] = revised
    yield row(source, CONTACTS["name"], data)
    for number, line in enumerate(pictures, start=1):
        kind = (_types(line) or ["jpeg"])[0].lower().removeprefix("image/")
        picture = f"{line.name.lower()}.{kind}"
        yield attached.row(uid, number, picture, line.value, kind=f"image/{kind}")


def _labelled(line: Any, labels: dict[str, str]) -> str:
    """A value with its label, such as `ada@example.org (work)`."""
    own = [word.lower() for word in _types(line) if word.upper() not in _PLAIN_TYPES]
    if line.group in labels:
        own.append(_APPLE_LABEL.sub(r"\1", labels[line.group]).lower())
    text = re.sub("^(tel|mailto):", "", _ESCAPED.sub(r"\1", _text(line.value)))
    return f"{text} ({', '.join(own)})" if own and text and line.name in _LISTS else text


def _types(line: Any) -> list[str]:
    words = line.params.get("TYPE", []) + line.singletonparams
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
