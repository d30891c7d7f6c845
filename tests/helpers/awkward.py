"""Files that people really have, and what an import must make of each: the table of a test."""

import gzip
import io
import zipfile
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    """A file and the result of its import.

    `records` are the stored values in the order of the file; `word` finds the first of them, with
    this title and time. `says` is part of the report, `code` is the exit code.
    """

    name: str
    content: bytes
    records: list[Record]
    word: str
    title: str | None = None
    time: str | None = None
    options: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    code: int = 0
    streams: tuple[str, ...] = field(default=())


def text(name: str, content: str, *rest: Any, encoding: str = "utf-8", **more: Any) -> File:
    return File(name, content.encode(encoding), *rest, **more)


def letter(
    headers: str, body: str = "hello harbour\n", line: str = "Thu Jan  1 09:30:00 2026"
) -> bytes:
    return f"From a@b {line}\nMessage-ID: <m@x>\n{headers}\n{body}".encode()


def mail(parts: EmailMessage) -> bytes:
    parts["Message-ID"], parts["Subject"] = "<m@x>", "Parts"
    return b"From a@b Thu Jan  1 09:30:00 2026\n" + parts.as_bytes()


def message(**found: Any) -> Record:
    """A stored mail with default values, except for those given."""
    usual = {
        **{"id": "m@x", "thread_id": "m@x", "subject": "", "from": "", "to": [], "cc": []},
        **{
            "sent_at": "2026-01-01T09:30:00Z",
            "folder": "box",
            "labels": [],
            "body": "hello harbour\n",
        },
    }
    return usual | found


def zipped(**files: str | bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return packed.getvalue()


def rows(columns: str, *lines: tuple[Any, ...]) -> list[Record]:
    return [dict(zip(columns.split(), line)) for line in lines]


GERMAN_BANK = (
    '"Konto";"Girokonto DE12"\n""\n"Kontostand vom 01.03.2026:";"1.234,56 EUR"\n""\n'
    '"Datum";"Empfänger";"Zweck";"Betrag"\n'
    '"03.03.2026";"Müller, GmbH";"Rechnung 4711; Teil 2";"-1.250,00"\n'
    '"04.03.2026";"REWE";"Einkauf";"-12,50"\n'
)
BANK_ROWS = rows(
    "Datum Empfänger Zweck Betrag",
    ("03.03.2026", "Müller, GmbH", "Rechnung 4711; Teil 2", "-1.250,00"),
    ("04.03.2026", "REWE", "Einkauf", "-12,50"),
)
CITIES = rows("name city", ("Jörg", "Köln"), ("Zoë", "Orléans"))
CITY_LINES = "name,city\nJörg,Köln\nZoë,Orléans\n"

NUMBERS = (
    text("tens.csv", "id,price,note\n1,1.10,harbour\n2,-12.50,b\n",
         rows("id price note", (1, "1.10", "harbour"), (2, "-12.50", "b")), "harbour"),
    text("mixed.csv", "id,price\n1,5\n2,1.10\n", rows("id price", (1, "5"), (2, "1.10")), "5"),
    text("big.csv", "n,note\n9223372036854775808,harbour\n1,b\n",
         rows("n note", ("9223372036854775808", "harbour"), ("1", "b")), "harbour"),
    text("zip.csv", "zip,note\n01234,harbour\n99999,b\n",
         rows("zip note", ("01234", "harbour"), ("99999", "b")), "01234"),
    text("comma.csv", "a;b\nharbour;-1.250,00\nx;3,5\n",
         rows("a b", ("harbour", "-1.250,00"), ("x", "3,5")), '"1.250,00"'),
    text("open.csv", "a;b\nharbour;1.250\nx;3.500\n",
         rows("a b", ("harbour", "1.250"), ("x", "3.500")), "harbour", says=("may group digits",)),
    text("swiss.csv", "a,b\nharbour,1'250.50\nx,3.5\n",
         rows("a b", ("harbour", "1'250.50"), ("x", "3.5")), "harbour"),
    text("science.csv", "a,b\nharbour,1e-7\nx,2.5\n",
         rows("a b", ("harbour", "1e-7"), ("x", "2.5")), "harbour"),
    text("tens.ndjson", '{"id":1,"price":1.10,"t":"harbour"}\n{"id":2,"price":9.5,"t":"b"}\n',
         rows("id price t", (1, "1.10", "harbour"), (2, "9.5", "b")), "harbour"),
    text("big.ndjson", '{"id":9223372036854775808,"t":"harbour"}\n{"id":-5,"t":"b"}\n',
         rows("id t", ("9223372036854775808", "harbour"), ("-5", "b")), "harbour"),
    text("deep.json", '[{"t":"harbour","a":{"b":[1.10,0.5,123456789012345678901]}}]',
         [{"t": "harbour", "a": {"b": ["1.10", 0.5, "123456789012345678901"]}}], "harbour"),
    text("plain.ndjson", '{"id":1,"price":1.5,"t":"harbour"}\n', rows("id price t", (1, 1.5,
         "harbour")),
         "harbour"),
    text("longest.json", '[{"t":"harbour","a":1e400,"b":0.30000000000000001}]',
         [{"t": "harbour", "a": "1e400", "b": "0.30000000000000001"}], "harbour"),
)  # fmt: skip

TIMES = (
    text("unix.ndjson", '{"id":1,"ts":1767225600,"t":"harbour"}\n',
         rows("id ts t", (1, 1767225600, "harbour")), "harbour", time="2026-01-01T00:00:00Z"),
    text("millis.ndjson", '{"id":1,"createdAt":1767225600123,"t":"harbour"}\n',
         rows("id createdAt t", (1, 1767225600123, "harbour")), "harbour",
         time="2026-01-01T00:00:00.123000Z"),
    text("unix.csv", "created_at,t\n1767225600,harbour\n", rows("created_at t", (1767225600,
         "harbour")),
         "harbour", time="2026-01-01T00:00:00Z"),
    text("count.csv", "views,t\n1767225600,harbour\n", rows("views t", (1767225600, "harbour")),
         "harbour"),
    text("float.ndjson", '{"created_utc":1767225600.5,"t":"harbour"}\n',
         rows("created_utc t", (1767225600.5, "harbour")), "harbour",
         time="2026-01-01T00:00:00.500000Z"),
    text("mongo.json",
         '[{"_id":{"$oid":"64b"},"at":{"$date":"2026-01-02T03:04:05Z"},"n":'
         '{"$numberDecimal":"1.10"},"t":"harbour"}]',
         rows("_id at n t", ("64b", "2026-01-02T03:04:05Z", "1.10", "harbour")), "harbour",
         time="2026-01-02T03:04:05Z"),
    text("mongo-ms.json", '[{"at":{"$date":{"$numberLong":"1767225600123"}},"t":"harbour"}]',
         rows("at t", ("2026-01-01T00:00:00.123000Z", "harbour")), "harbour",
         time="2026-01-01T00:00:00.123000Z"),
    text("slack.json", '[{"ts":"1767225600.000200","user":"U1","text":"hello harbour"}]',
         rows("ts user text", ("1767225600.000200", "U1", "hello harbour")), "harbour",
         time="2026-01-01T00:00:00.000200Z"),
    text("rfc.csv", 'date,t\n"Thu, 01 Jan 2026 10:00:00 +0200",harbour\n',
         rows("date t", ("Thu, 01 Jan 2026 10:00:00 +0200", "harbour")), "harbour",
         time="2026-01-01T08:00:00Z"),
    text("dotted.csv", "date,t\n03.04.2026,harbour\n", rows("date t", ("03.04.2026", "harbour")),
         "harbour", time="2026-04-03"),
    text("american.csv", "date,t\n3/4/26,harbour\n3/31/26,b\n",
         rows("date t", ("3/4/26", "harbour"), ("3/31/26", "b")), "harbour", time="2026-03-04"),
    text("british.csv", "date,t\n3/4/2026 17:05,harbour\n31/3/2026 08:00,b\n",
         rows("date t", ("3/4/2026 17:05", "harbour"), ("31/3/2026 08:00", "b")), "harbour",
         time="2026-04-03T17:05:00Z"),
    text("unclear.csv", "date,t\n3/4/26,harbour\n", rows("date t", ("3/4/26", "harbour")),
         "harbour",
         says=("date stays text, because '3/4/26' may begin with the day",)),
    text("iso.csv", "day,t\n2026-01-02,harbour\n,b\n",
         rows("day t", ("2026-01-02", "harbour"), ("", "b")), "harbour", time="2026-01-02"),
    text("slashed.csv", "day,t\n2026/1/2,harbour\n", rows("day t", ("2026/1/2", "harbour")),
         "harbour",
         time="2026-01-02"),
    text("twitter.json", '[{"created_at":"Thu Jan 01 10:00:00 +0000 2026","text":"hello harbour"}]',
         rows("created_at text", ("Thu Jan 01 10:00:00 +0000 2026", "hello harbour")), "harbour",
         time="2026-01-01T10:00:00Z"),
    text("timeless.ndjson", '{"id":1,"t":"harbour"}\n', rows("id t", (1, "harbour")), "harbour"),
    text("late.csv", "date,t\n" + "03.04.2026,x\n" * 1000 + "soon,harbour\n",
         rows("date t", *[("03.04.2026", "x")] * 1000, ("soon", "harbour")), "harbour",
         says=("values of date that do not match its type: 1", "line 1002: 'soon'")),
)  # fmt: skip

TABLES = (
    text("bank.csv", GERMAN_BANK, BANK_ROWS, "Rechnung", "Müller, GmbH", time="2026-03-03",
         encoding="cp1252", says=("cp1252", "Lines left out before the table")),
    text("excel.csv", CITY_LINES.replace(",", "\t"), CITIES, "köln", "Jörg", encoding="utf-16",
         says=("utf-16",)),
    text("wide.csv", CITY_LINES, CITIES, "köln", "Jörg", encoding="utf-16-le"),
    text("wider.csv", CITY_LINES, CITIES, "köln", "Jörg", encoding="utf-16-be"),
    text("widest.csv", CITY_LINES, CITIES, "köln", "Jörg", encoding="utf-32"),
    text("mark.csv", CITY_LINES, CITIES, "köln", "Jörg", encoding="utf-8-sig"),
    text("latin.csv", CITY_LINES, CITIES, "köln", "Jörg", encoding="latin-1"),
    text("euro.csv", "name,city\nJörg,5 € „Köln“\n", rows("name city", ("Jörg", "5 € „Köln“")),
         "köln",
         "Jörg", encoding="cp1252"),
    text("russian.csv", "имя,город\nАнна,Санкт-Петербург\nИван,Новосибирск\n",
         rows("имя город", ("Анна", "Санкт-Петербург"), ("Иван", "Новосибирск")), "новосибирск",
         encoding="cp1251", options=("--encoding", "cp1251")),
    text("piped.csv", "name|city\nJörg|Köln\n", CITIES[:1], "köln", "Jörg"),
    text("hint.csv", "sep=;\nname;city\nJörg;Köln\n", CITIES[:1], "köln", "Jörg"),
    text("text.txt", "name;city\nJörg;Köln\n", CITIES[:1], "köln", "Jörg"),
    text("table.tab", "name\tcity\nJörg\tKöln\n", CITIES[:1], "köln", "Jörg"),
    text("colon.csv", "name:city\nJörg:Köln\n", CITIES[:1], "köln", "Jörg",
         options=("--delimiter", ":")),
    text("quoted.csv", 'id,t\n1,"two\nlines, ""harbour"""\n', rows("id t", (1,
         'two\nlines, "harbour"')),
         "harbour"),
    text("bare.csv", "1,harbour,2026-01-02\n2,b,2026-01-03\n",
         rows("column_1 column_2 column_3", (1, "harbour", "2026-01-02"), (2, "b", "2026-01-03")),
         "harbour",
         time="2026-01-02", says=("no header",)),
    text("words.csv", "harbour,ada\nx,y\n", rows("column_1 column_2", ("harbour", "ada"), ("x",
         "y")),
         "harbour", options=("--no-header",)),
    text("years.csv", "name,2024,2025\nharbour,5,6\n", rows("name 2024 2025", ("harbour", 5, 6)),
         "harbour",
         "harbour"),
    text("twice.csv", "a,a,b\nharbour,2,3\n", rows("a a_2 b", ("harbour", 2, 3)), "harbour",
         says=("'a' is stored as the field 'a_2'",)),
    text("trailing.csv", "a;b;\nharbour;2;\n", rows("a b", ("harbour", 2)), "harbour"),
    text("ragged.csv", "a,b\nharbour,2\nx\ny,3\n", rows("a b", ("harbour", 2), ("y", 3)),
         "harbour", code=3,
         says=("line 3: This row does not fit", "not in the store: 1 of 3")),
    text("same.csv", "t,n\nharbour,1.5\nharbour,1.5\nx,1.5\n",
         rows("t n", ("harbour", "1.5"), ("harbour", "1.5"), ("x", "1.5")), "harbour"),
    text("one.csv", "name\nharbour\nAda\n", rows("name", ("harbour",), ("Ada",)), "harbour",
         "harbour"),
    text("crlf.csv", "a,b\r\nharbour,2\r\n", rows("a b", ("harbour", 2)), "harbour"),
    text("logic.csv", "t,ok\nharbour,TRUE\nx,false\n", rows("t ok", ("harbour", True), ("x",
         False)),
         "harbour"),
    text("long.csv", f"{'é' * 40},b\nharbour,2\n", [{"é" * 32: "harbour", "b": 2}], "harbour",
         says=("is stored as the field",)),
    File("nul.csv", b"a,b\nhar\0bour,2\nharbour,3\n", rows("a b", ("har\ufffdbour", 2),
         ("harbour", 3)),
         "harbour", says=("NUL characters replaced with U+FFFD: 1",)),
    File("broken.csv", "a,b\nKöln,2\nÄrger,4\n".encode() + b"\xff,3\n",
         rows("a b", ("Köln", 2), ("Ärger", 4)), "köln", code=3, says=("4: The text contains",)),
    File("replaced.csv", "a,b\nKöln,2\nÄrger,4\n".encode() + b"\xff,3\n",
         rows("a b", ("Köln", 2), ("Ärger", 4), ("\ufffd", 3)), "köln",
         options=("--replace-undecodable",), says=("Undecodable bytes replaced with U+FFFD: 1",)),
)  # fmt: skip

DOCUMENTS = (
    text("nested.json", '{"export":{"n":1,"items":[{"id":"a","user":{"name":"Ada Harbour"}}]}}',
         [{"id": "a", "user": {"name": "Ada Harbour"}}], "harbour",
         says=("are not records: export.n",)),
    text("tags.json", '[{"id":"a","tags":["red","harbour"],"parts":[{"text":"x"}]}]',
         [{"id": "a", "tags": ["red", "harbour"], "parts": [{"text": "x"}]}], "harbour"),
    text("parts.json", '[{"id":"a","text":["see ",{"type":"link","text":"harbour"}]}]',
         [{"id": "a", "text": ["see ", {"type": "link", "text": "harbour"}]}], "harbour"),
    text("several.json",
         '{"users":[{"id":"u","name":"Ada"}],"posts":[{"id":"p","title":"The harbour"}]}',
         [{"id": "p", "title": "The harbour"}], "harbour", "The harbour", streams=("posts",)),
    text("nul.ndjson", '{"t":"har\\u0000bour harbour"}\n', [{"t": "har\ufffdbour harbour"}],
         "harbour",
         says=("NUL characters replaced with U+FFFD: 1",)),
    text("wide.ndjson", '{"t":"Köln harbour"}\n', [{"t": "Köln harbour"}], "köln",
         encoding="utf-16"),
    text("latin.ndjson", '{"t":"Köln harbour"}\n', [{"t": "Köln harbour"}], "köln",
         encoding="latin-1"),
    text("lines.nd", '{"t":"harbour"}\n', [{"t": "harbour"}], "harbour"),
    text("lines.json.txt", '[{"t":"harbour"}]', [{"t": "harbour"}], "harbour"),
    File("packed.csv.gz", gzip.compress(b"a,b\nharbour,2\n"), rows("a b", ("harbour", 2)),
         "harbour"),
    File("packed.zip", zipped(items_dot_csv="a,b\nharbour,2\n", photo_dot_png=b"\x89PNG"),
         rows("a b", ("harbour", 2)), "harbour", streams=("items",), says=("Left out: photo.png",)),
    File("slack.zip",
         zipped(**{"general__2026-01-01_dot_json": '[{"ts":"1767225600.0002","text":"harbour"}]'}),
         rows("ts text", ("1767225600.0002", "harbour")), "harbour", streams=("general",),
         time="2026-01-01T00:00:00.000200Z"),
)  # fmt: skip


def _parts() -> dict[str, bytes]:
    page = EmailMessage()
    page.set_content(
        "<p>Hello</p><table><tr><td>Tea</td><td>harbour</td></tr></table>"
        '<a href="https://x.org/pay">Pay</a> <img alt="Logo" src="x">',
        subtype="html",
    )
    attached = EmailMessage()
    attached.set_content("see attached\n")
    attached.add_attachment("a,b\nharbour,2\n", subtype="csv", filename="a.csv")
    inner = EmailMessage()
    inner["Subject"], inner["From"] = "The first harbour", "ada@x.org"
    inner.set_content("forwarded words\n")
    forwarded = EmailMessage()
    forwarded.set_content("fyi\n")
    forwarded.add_attachment(inner)
    meeting = EmailMessage()
    meeting.set_content("invitation\n")
    meeting.add_alternative(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Meet at the har\n bour\\, pier 2\nLOCATION:Pier\n"
        "END:VEVENT\nEND:VCALENDAR\n",
        subtype="calendar",
    )
    return {
        "page": mail(page),
        "text": mail(attached),
        "forwarded": mail(forwarded),
        "meeting": mail(meeting),
    }


PARTS = _parts()
MAIL = (
    File("box.mbox", letter("Subject: Hi\nDate: Fri, 2 Jan 2026 10:00:00 +0200\n"),
         [message(subject="Hi", sent_at="2026-01-02T08:00:00Z")], "harbour", "Hi",
         "2026-01-02T08:00:00Z",
         streams=("messages",)),
    File("box.mbx", letter("Subject: Hi\n"), [message(subject="Hi")], "harbour", "Hi",
         "2026-01-01T09:30:00Z", streams=("messages",)),
    File("box.mbox", letter("Subject: Hi\nDate: never\n", line="yesterday at 09:30"),
         [message(subject="Hi", sent_at=None)], "harbour", "Hi", streams=("messages",)),
    File("box.mbox", letter("Subject: Hi\nX-Gmail-Labels: Inbox,=?utf-8?q?K=C3=B6ln?=\n"),
         [message(subject="Hi", labels=["Inbox", "Köln"])], "köln", "Hi", "2026-01-01T09:30:00Z",
         streams=("messages",)),
    File("box.mbox", letter("Subject: Gr\xfc\xdfe\n").decode().encode("latin-1"),
         [message(subject="Grüße")], "grüße", "Grüße", "2026-01-01T09:30:00Z",
         streams=("messages",)),
    File("box.mbox", letter("Subject: Hi\nContent-Type: text/plain; charset=utf-8\n", "K\xf6ln\n")
         .decode().encode("latin-1"), [message(subject="Hi", body="Köln\n")], "köln", "Hi",
         "2026-01-01T09:30:00Z", streams=("messages",), says=("not in their declared encoding",)),
    File("one.eml",
         b"Message-ID: <m@x>\nSubject: Hi\nDate: Fri, 2 Jan 2026 10:00:00 +0000\n\nhello harbour\n",
         [message(subject="Hi", sent_at="2026-01-02T10:00:00Z", folder="one")], "harbour", "Hi",
         "2026-01-02T10:00:00Z", streams=("messages",)),
    File("box.mbox", PARTS["page"],
         [message(subject="Parts",
                  body="Hello\n\nTea\tharbour\n\n[Pay](https://x.org/pay) [Logo]")],
         '"tea harbour"', "Parts", "2026-01-01T09:30:00Z", streams=("messages",)),
    File("box.mbox", PARTS["text"], [message(subject="Parts", body="see attached\n")], "harbour",
         "a.csv",
         "2026-01-01T09:30:00Z", streams=("messages",)),
    File("box.mbox", PARTS["forwarded"], [message(subject="Parts", body="fyi\n")],
         '"forwarded words"',
         "The first harbour", "2026-01-01T09:30:00Z", streams=("messages",)),
    File("box.mbox", PARTS["meeting"], [message(subject="Parts", body="invitation\n")],
         '"harbour pier"',
         "attachment-1", "2026-01-01T09:30:00Z", streams=("messages",)),
)  # fmt: skip

FILES = (*NUMBERS, *TIMES, *TABLES, *DOCUMENTS, *MAIL)
