"""Calendars and address books."""

import pytest

from tests.formats.owner import Owner, counts, write

CALENDAR = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//EN
X-WR-CALNAME;VALUE=TEXT:Büro
BEGIN:VTIMEZONE
TZID:Harbour Time
BEGIN:STANDARD
DTSTART:19701025T030000
TZOFFSETFROM:+0545
TZOFFSETTO:+0545
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:standup@example.org
DTSTAMP:20260301T000000Z
DTSTART;TZID=Europe/Berlin:20260703T093000
DURATION:PT45M
RRULE:FREQ=WEEKLY;BYDAY=FR
EXDATE;TZID=Europe/Berlin:20260710T093000
SUMMARY:Besprechung\\, Gezeitenkraftwerk
DESCRIPTION:Zuerst die Turbinen.\\nDann der Haushalt für das nächste Jahr\\; a
 lle Zahlen.
LOCATION:Raum 214
ORGANIZER;CN="König, Ada":mailto:ada@example.org
ATTENDEE;CN=Noor;PARTSTAT=DECLINED:mailto:noor@example.org
ATTENDEE;PARTSTAT=ACCEPTED:mailto:li@example.org
ATTACH;FMTTYPE=text/plain;ENCODING=BASE64;VALUE=BINARY;X-FILENAME=agenda.txt:Qm9qZW4=
ATTACH:https://example.org/plan.pdf
CATEGORIES:Work,Tide
GEO:54.3;10.1
BEGIN:VALARM
ACTION:DISPLAY
TRIGGER:-PT15M
END:VALARM
END:VEVENT
BEGIN:VEVENT
UID:standup@example.org
RECURRENCE-ID;TZID=Europe/Berlin:20260717T093000
DTSTART;TZID=Harbour Time:20260717T110000
SUMMARY:Besprechung (verschoben)
END:VEVENT
BEGIN:VEVENT
UID:holiday
DTSTART;VALUE=DATE:20260401
DTEND;VALUE=DATE:20260403
SUMMARY:春休み
END:VEVENT
BEGIN:VTODO
UID:todo
DUE:20260305T120000Z
SUMMARY:Order lamps
STATUS:NEEDS-ACTION
END:VTODO
BEGIN:VFREEBUSY
UID:busy
END:VFREEBUSY
BEGIN:VEVENT
UID:bad
DTSTART:someday
SUMMARY:Bad
END:VEVENT
BEGIN:VEVENT
UID:cut
"""
CARDS = """\
BEGIN:VCARD
VERSION:3.0
UID:ada
FN:Ada König
N:König;Ada;;Dr.;
ORG:Hafenamt\\, Kiel;Lotsen
item1.EMAIL;type=INTERNET;type=pref:ada@example.org
item1.X-ABLabel:_$!<Work>!$_
TEL;TYPE=CELL:+49 170 555
ADR;TYPE=HOME:;;Mole 1;Kiel;;24103;Germany
BDAY:1980-04-12
NOTE:Knows the tides.\\nSpeaks Dänisch.
PHOTO;ENCODING=b;TYPE=PNG:iVBORw0KGgo=
X-SOCIALPROFILE;type=mastodon:https://example.org/@ada
REV:2026-03-01T10:00:00Z
END:VCARD
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;
TEL;CELL;PREF:+49 171 666
NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Zeile eins=0D=0A=
Zeile zwei
END:VCARD
BEGIN:VCARD
VERSION:4.0
FN:李雷
EMAIL:li@example.org
PHOTO:data:image/jpeg;base64,/9j/4AAQ
BDAY:--0412
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Cut
"""


def test_a_calendar_keeps_its_time_zones_series_people_and_attachments(owner: Owner) -> None:
    path = write(owner.home, {"calendar.ics": CALENDAR.replace("\n", "\r\n")}) / "calendar.ics"
    report = owner.bring(path, code=3)
    assert "calendar.ics is read as ics." in report and "Left out: 1 VFREEBUSY." in report
    assert "(1 ×): DTSTART: " in report and "line 62: This VEVENT" in report
    rows = {row["id"].removeprefix("Büro/"): row["data"] for row in owner.rows("events")}
    assert "start" not in rows["bad"]
    first = rows["standup@example.org"]
    assert (first["start"], first["end"]) == (
        "2026-07-03T09:30:00+02:00",
        "2026-07-03T10:15:00+02:00",
    )
    assert first["time_zone"] == "Europe/Berlin" and first["calendar"] == "Büro"
    assert first["organizer"] == "König, Ada <ada@example.org>"
    assert first["attendees"] == ["Noor <noor@example.org> (declined)", "li@example.org (accepted)"]
    assert first["recurrence"][0] == "RRULE:FREQ=WEEKLY;BYDAY=FR" and "20260710" in str(first)
    assert first["links"] == ["https://example.org/plan.pdf"] and "GEO: 54.3;10.1" in first["other"]
    assert first["description"].endswith("nächste Jahr; alle Zahlen.")
    moved = next(row for id, row in rows.items() if id.startswith("standup@example.org_"))
    assert moved["start"] == "2026-07-17T11:00:00+05:45"
    assert moved["series_id"] == first["series_id"]
    assert (rows["holiday"]["start"], rows["holiday"]["end"]) == ("2026-04-01", "2026-04-03")
    assert (rows["todo"]["kind"], rows["todo"]["start"]) == ("task", "2026-03-05T12:00:00Z")
    owner.finds("Turbinen", "events:Büro%2Fstandup@example.org")
    owner.finds("Bojen", "attachments:Büro%2Fstandup@example.org#1")
    owner.finds("春休み", "events:Büro%2Fholiday")
    owner.again(path, code=3)


def test_an_address_book_of_three_versions_is_people_with_pictures(owner: Owner) -> None:
    path = write(owner.home, {"people.vcf": CARDS}) / "people.vcf"
    report = owner.bring(path, code=3)
    assert counts(report)["new"] == 5 and counts(report)["refused"] == 1
    rows = {row["data"]["name"]: row["data"] for row in owner.rows("contacts")}
    assert rows.keys() == {"Ada König", "Jörg Müller", "李雷"}
    ada = rows["Ada König"]
    assert ada["emails"] == ["ada@example.org (work)"] and ada["phones"] == ["+49 170 555 (cell)"]
    assert ada["organization"] == "Hafenamt, Kiel, Lotsen" and ada["birthday"] == "1980-04-12"
    assert ada["addresses"] == ["Mole 1, Kiel, 24103, Germany (home)"]
    assert ada["other"] == ["X-SOCIALPROFILE: https://example.org/@ada"]
    assert rows["Jörg Müller"]["note"] == "Zeile eins\nZeile zwei"
    pictures = {row["data"]["mime_type"] for row in owner.rows("attachments")}
    assert pictures == {"image/png", "image/jpeg"}
    owner.finds("dänisch", "contacts:ada")
    owner.again(path, code=3)


def zoned(offset: str, begin: str = "DTSTART:19700101T000000") -> str:
    zone = f"TZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\nEND:STANDARD\nEND:VTIMEZONE\n"
    zone = f"BEGIN:VTIMEZONE\nTZID:Customized Time Zone\nBEGIN:STANDARD\n{begin}\n{zone}"
    event = "DTSTART;TZID=Customized Time Zone:20260703T090000\nSUMMARY:Ebb\nEND:VEVENT\n"
    event = f"BEGIN:VEVENT\nUID:{offset}{begin}\n{event}"
    return f"BEGIN:VCALENDAR\n{zone}{event}END:VCALENDAR\n"


def test_a_zone_is_what_its_own_calendar_says(owner: Owner) -> None:
    files = {"east.ics": zoned("+0530"), "west.ics": zoned("-0330")}
    owner.bring(write(owner.home / "calendars", files))
    starts = {row["data"]["start"] for row in owner.rows("events")}
    assert starts == {"2026-07-03T09:00:00+05:30", "2026-07-03T09:00:00-03:30"}


def test_a_broken_zone_is_reported_and_its_events_keep_the_time_they_show(owner: Owner) -> None:
    path = write(owner.home, {"x.ics": zoned("+0530", "DTSTART:once")}) / "x.ics"
    assert "line 2: This time zone cannot be read" in owner.bring(path, code=3)
    (row,) = owner.rows("events")
    assert row["data"]["start"] == "2026-07-03T09:00:00"
    assert row["data"]["time_zone"] == "Customized Time Zone"


def test_a_line_may_continue_inside_a_character(owner: Owner) -> None:
    text = "Die Fähre fährt täglich".encode()
    cut = text.replace("äh".encode() + b"rt", b"\xc3\r\n \xa4hrt")
    head = b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260703T090000Z\r\nSUMMARY:"
    end = b"\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    card = b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:" + cut + b"\r\nEND:VCARD\r\n"
    owner.bring(write(owner.home / "x", {"a.ics": head + cut + end, "b.vcf": card}))
    assert owner.rows("events")[0]["data"]["summary"] == text.decode()
    assert owner.rows("contacts")[0]["data"]["name"] == text.decode()


ODD = """\
BEGIN:VCALENDAR
BEGIN:VEVENT
UID:odd
SUMMARY:Probe
DTSTART;TZID=Nowhere/Else:20260703T090000
DURATION:PT1W
DTEND:20260230T110000Z
LAST-MODIFIED:yesterday
ATTENDEE;CN=Noor:mailto:noor@example.org
GEO:north
END:VEVENT
END:VCALENDAR
"""


def test_a_property_that_cannot_be_read_costs_no_event(owner: Owner) -> None:
    report = owner.bring(write(owner.home, {"odd.ics": ODD}) / "odd.ics")
    (event,) = [row["data"] for row in owner.rows("events")]
    assert event["start"] == "2026-07-03T09:00:00" and "end" not in event
    assert event["attendees"] == ["Noor <noor@example.org>"]
    for name in ("DURATION", "DTEND", "LAST-MODIFIED", "GEO"):
        assert f"Left out (1 ×): {name}: " in report
    assert "the time zone 'Nowhere/Else', which is unknown" in report


def test_times_and_links_of_cards_without_separators_and_with_escapes(owner: Owner) -> None:
    card = "BEGIN:VCARD\nVERSION:3.0\nFN:Ada\nREV:{}\nitem1.URL:https\\://x.org/a\nEND:VCARD\n"
    cards = card.format("20260303T100000Z") + card.replace("Ada", "Bo").format("lately")
    report = owner.bring(write(owner.home, {"a.vcf": cards}) / "a.vcf")
    ada, bo = sorted((row["data"] for row in owner.rows("contacts")), key=lambda row: row["name"])
    assert ada["updated_at"] == "2026-03-03T10:00:00Z" and ada["urls"] == ["https://x.org/a"]
    assert bo["other"] == ["REV: lately"] and "do not match its type" not in report


@pytest.mark.parametrize(
    "content",
    [
        b"N;QUOTED-PRINTABLE:K=F6nig;Ada\nFN;CHARSET=ISO-8859-1;QUOTED-PRINTABLE:Ada K=F6=\nnig\n",
        "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:K=C3=B6nig;Ada\nFN:Ada König\n".encode(),
        "N:König;Ada\nFN:Ada König\n".encode("cp1252"),
    ],
)
def test_names_of_old_cards_are_read_in_any_charset(owner: Owner, content: bytes) -> None:
    card = b"BEGIN:VCARD\nVERSION:2.1\n" + content + b"END:VCARD\n"
    owner.bring(write(owner.home, {"a.vcf": card}) / "a.vcf")
    assert [row["data"]["name"] for row in owner.rows("contacts")] == ["Ada König"]


def test_cards_and_calendars_in_utf_16_and_quoted_printable_are_read(owner: Owner) -> None:
    card = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada König\r\nEND:VCARD\r\n".encode("utf-16")
    event = "UID:1\nSUMMARY;ENCODING=QUOTED-PRINTABLE:t=C3=A4g=\nlich\nDTSTART:20260303T100000Z\n"
    calendar = f"BEGIN:VCALENDAR\nBEGIN:VEVENT\n{event}END:VEVENT\nEND:VCALENDAR\n"
    owner.bring(write(owner.home / "x", {"a.vcf": card, "a.vcs": calendar}))
    assert owner.rows("contacts")[0]["data"]["name"] == "Ada König"
    assert owner.rows("events")[0]["data"]["summary"] == "täglich"
