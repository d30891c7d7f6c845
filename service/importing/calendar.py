"""Events, tasks and journal entries of iCalendar files, with their time zones."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

from service.importing.texts import components
from service.importing.rows import Attached, manifest, record_id, row, stream
from service.importing.source import Format, Item, Source
from service.records.intake import Row

EVENTS = "events"
MANIFEST = manifest(
    stream(
        EVENTS,
        "id:id series_id:thread kind:group calendar:group summary:title description:text"
        " start:time end:when time_zone:group location:label organizer:actor attendees:list"
        " categories:list status:group url:words recurrence:list links:list other:list"
        " updated_at:when",
        attached=True,
    )
)
BEGINS = re.compile(rb"\s*BEGIN:VCALENDAR", re.IGNORECASE)
#: So many kinds of broken lines are reported.
LISTED = 5
_KINDS = {"VEVENT": "event", "VTODO": "task", "VJOURNAL": "journal"}
_SERIES = ("RRULE", "RDATE", "EXDATE", "EXRULE")
#: Properties with a field of their own, and those that change with each export.
_KNOWN = frozenset(
    "UID SUMMARY DESCRIPTION DTSTART DTEND DUE DURATION LOCATION ORGANIZER ATTENDEE CATEGORIES"
    " STATUS URL ATTACH LAST-MODIFIED RECURRENCE-ID DTSTAMP SEQUENCE".split()
) | {*_SERIES}


def read(source: Source) -> Iterator[Item]:
    """The components of a calendar that people make, one at a time."""
    from icalendar import Calendar, timezone  # imported for calendars only

    attached, name, skipped = Attached(source), source.folder, Counter[str]()
    broken = Counter[str]()
    timezone.tzp.use_default()  # forgets the zones that another file gave these names
    for line, kind, text in components(source.file, "VCALENDAR"):
        if kind == "cut":
            yield line, text
        elif kind != "VTIMEZONE" and kind not in _KINDS:
            property, _, value = text.partition(":")
            name = value if property == "X-WR-CALNAME" else name
            skipped[kind] += bool(kind)
        else:
            try:
                # What is parsed is remembered, if it is a zone.
                whole = Calendar.from_ical(f"BEGIN:VCALENDAR\r\n{text}END:VCALENDAR\r\n")
                for found in whole.walk(kind) if kind in _KINDS else ():
                    broken.update(problem for _, problem in found.errors)
                    yield from ((line, one) for one in _rows(found, source, name, attached))
            except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
                yield line, f"This {kind} cannot be read: {error}."
    attached.report()
    for problem, count in broken.most_common(LISTED):
        source.notes.append(f"Left out, {count} times: {problem}")
    if skipped := +skipped:
        listed = ", ".join(f"{count} {kind}" for kind, count in skipped.items())
        source.notes.append(f"Left out: {listed}.")


def _rows(found: Any, source: Source, calendar: str, attached: Attached) -> Iterator[Row]:
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
    """A time with its offset, if it has one, or a day."""
    return value.isoformat().replace("+00:00", "Z")


def _written(value: Any) -> str:
    text = value.to_ical()
    return text.decode() if isinstance(text, bytes) else str(text)


def _person(value: Any) -> str:
    address = re.sub("^mailto:", "", str(value), flags=re.IGNORECASE)
    name, answer = value.params.get("CN", ""), value.params.get("PARTSTAT", "").lower()
    who = f"{name} <{address}>" if name and name != address else address
    return f"{who} ({answer})" if answer else who


FORMAT = Format("ics", (".ics", ".ical"), BEGINS, read, MANIFEST, any_extension=True)
