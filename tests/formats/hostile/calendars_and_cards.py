"""Calendars and address books made to stop or swell an import."""

from collections.abc import Iterator

from tests.formats.hostile.files import Hostile, kind, several


def card(*lines: str) -> str:
    cards = ("FN:first\nUID:1", "\n".join(lines), "FN:last\nUID:2")
    return "".join(f"BEGIN:VCARD\nVERSION:3.0\n{one}\nEND:VCARD\n" for one in cards)


@kind
def cards() -> Iterator[Hostile]:
    yield from several(
        ".vcf",
        {
            "parameters": card("FN;" + "a" * 30 + ";a=b" * 60 + "!"),
            "words": card("FN:x", "A" + ";-" * 30_000 + '"'),
            "quoted": card("FN:x", 'NOTE;A="' + "=" * 50_000),
            "groups": card("FN:x", "a." * 50_000 + "NOTE:x"),
            "printable": card("FN:x", "NOTE;ENCODING=QUOTED-PRINTABLE:" + "=\n" * 50_000),
            "photo": card(
                "FN:x", "PHOTO;ENCODING=b:" + "A" * 99_999, "PHOTO:data:image/png;base64,=="
            ),
            "values": card("FN:x", "N:" + ";" * 100_000, "ADR:" + "\\," * 100_000),
            "lines": card("FN:x", *[f"X-{n}:x" for n in range(60_000)]),
            "folded": card("FN:x", "NOTE:x", *[" x"] * 100_000),
            "inner": card("FN:x", "BEGIN:VCARD\n" * 3_000 + "END:VCARD\n" * 3_000),
            "times": card("FN:x", "REV:99999-99-99T99:99:99Z", "BDAY:" + "9" * 5_000),
            "label": card("FN:x", "item1.X-ABLABEL:_$!<" + "_$!<" * 50_000, "item1.TEL:1"),
            "none": "BEGIN:VCARD\n" * 50_000,
            "cut": card("FN:x")[:-30],
        },
    )


def calendar(*lines: str) -> str:
    first, last = ("BEGIN:VEVENT\nUID:{}\nSUMMARY:tide\nEND:VEVENT\n".format(name) for name in "ab")
    middle = "".join(f"{line}\n" for line in lines)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\n{first}{middle}{last}END:VCALENDAR\n"


def event(*lines: str) -> str:
    return calendar("BEGIN:VEVENT", "UID:x", *lines, "END:VEVENT")


def zone(*lines: str) -> str:
    standard = ("TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", *lines, "END:STANDARD", "END:VTIMEZONE")
    uses = ("BEGIN:VEVENT", "UID:x", "DTSTART;TZID=Z:20260303T100000", "END:VEVENT")
    return calendar("BEGIN:VTIMEZONE", "TZID:Z", "BEGIN:STANDARD", *standard, *uses)


@kind
def calendars() -> Iterator[Hostile]:
    yield from several(
        ".ics",
        {
            "secondly": zone("DTSTART:00010101T000000", "RRULE:FREQ=SECONDLY"),
            "until": zone("DTSTART:00010101T000000", "RRULE:FREQ=SECONDLY;UNTIL=99991231T000000Z"),
            "count": zone("DTSTART:19700101T000000", "RRULE:FREQ=MINUTELY;COUNT=999999999999"),
            "offsets": zone("DTSTART:19700101T000000", "TZOFFSETTO:+99999999"),
            "dates": zone("DTSTART:19700101T000000", "RDATE:" + "19700101T000000," * 50_000),
            "rule": event("DTSTART:20260303", "RRULE:" + "FREQ=DAILY;" * 20_000),
            "numbers": event("DTSTART:20260303", f"RRULE:FREQ=DAILY;COUNT={'9' * 5_000}"),
            "duration": event("DTSTART:20260303", f"DURATION:P{'9' * 400}W"),
            "start": event("DTSTART:99999999T999999Z", "DTEND:00000000"),
            "path": event("DTSTART;TZID=../../../etc/passwd:20260303T100000"),
            "attached": event("ATTACH;ENCODING=BASE64;VALUE=BINARY:====", "ATTACH;ENCODING=X:x"),
            "parameters": event("SUMMARY" + ';A="' * 30_000 + ":x"),
            "lists": event("CATEGORIES:" + "," * 200_000, "ATTENDEE;CN=" + "," * 99_999 + ":x"),
            "folded": event("DESCRIPTION:x", *[" x"] * 200_000),
            "escapes": event("DESCRIPTION:" + "\\" * 300_001),
            "properties": event(*[f"X-{n}:x" for n in range(60_000)]),
            "inner": calendar("BEGIN:VEVENT\n" * 3_000 + "END:VEVENT\n" * 3_000),
            "alarms": event(*["BEGIN:VALARM", "END:VALARM"] * 20_000),
            "outer": "BEGIN:VCALENDAR\n" * 20_000,
            "cut": event("SUMMARY:x")[:-30],
        },
    )
