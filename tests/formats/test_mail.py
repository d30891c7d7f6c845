"""Mail as files of its own: `.eml` and Maildir, with replies and attachments."""

import base64
from email import message_from_string
from pathlib import Path

import pytest

from service.importing.charsets import POLICY
from tests.formats.owner import Owner, write

QUESTION = """\
Return-Path: <ada@example.org>
From: =?utf-8?q?Ada_K=C3=B6nig?= <ada@example.org>
To: crew@example.org
Message-ID: <q1@example.org>
Date: Tue, 3 Mar 2026 10:00:00 +0100
Subject: Fähre
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=B

--B
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

Wann fährt die Fähre?

From here on, ask the harbourmaster.
--B
Content-Type: text/csv; name="fahrplan.csv"
Content-Disposition: attachment; filename="fahrplan.csv"
Content-Transfer-Encoding: base64

emVpdCx6aWVsCjEwOjAwLExldWNodHR1cm0K
--B--
"""
ANSWER = """\
From: Noor <noor@example.org>\r
Message-ID: <a1@example.org>\r
In-Reply-To: <q1@example.org>\r
Date: Tue, 3 Mar 2026 11:00:00 +0100\r
Subject: Re: =?utf-8?q?F=C3=A4hre?=\r
\r
>From noon on, every hour.\r
"""


def maildir(owner: Owner) -> Path:
    return write(
        owner.home / "Maildir",
        {
            "cur/1772528400.M1P2.host:2,S": QUESTION,
            "new/1772532000.M2P3.host": ANSWER,
            ".Sent.2026/cur/1772532000.M3P4.host:2,S": ANSWER.replace("a1@", "s1@"),
            "dovecot-uidlist": "3 V1\n",
        },
    )


def test_a_maildir_is_mail_with_folders_threads_and_attachments(owner: Owner) -> None:
    folder = maildir(owner)
    report = owner.bring(folder)
    assert "3 as eml" in report or "is read as eml" in report
    assert "dovecot-uidlist" in report
    rows = {row["id"]: row["data"] for row in owner.rows("messages")}
    assert rows["q1@example.org"]["from"] == "Ada König <ada@example.org>"
    assert rows["a1@example.org"]["thread_id"] == "q1@example.org"
    assert rows["a1@example.org"]["body"] == ">From noon on, every hour.\n"
    assert {row["folder"] for row in rows.values()} == {"Maildir", "Sent.2026"}
    page = owner.finds("harbourmaster", "messages:q1@example.org")
    assert "From here on" in page
    owner.finds("Leuchtturm", "attachments:q1@example.org#1")
    words = ("c/messages:q1@example.org", "--expand", "attachments", "--json")
    shown = owner.reader().ok("fetch", *words)
    assert "fahrplan.csv" in shown.stdout
    owner.again(folder)


def test_files_of_mail_have_the_name_of_their_folder(owner: Owner) -> None:
    folder = write(owner.home / "Archive", {"a.eml": QUESTION, "b.eml": ANSWER})
    owner.bring(folder)
    assert {row["data"]["folder"] for row in owner.rows("messages")} == {"Archive"}


def test_a_mail_that_is_one_file_keeps_the_file(owner: Owner) -> None:
    headers = "From: scan@example.org\nMessage-ID: <s1@example.org>\nSubject: Scan\n"
    scan = f"{headers}Content-Type: application/pdf; name=page.pdf\n\n%PDF-1.4 lost\n"
    owner.bring(write(owner.home / "scans", {"a.eml": scan}))
    (file,) = owner.rows("attachments")
    assert file["data"]["filename"] == "page.pdf"
    assert file["data"]["blob_ref"]["size_bytes"] == len("%PDF-1.4 lost\n")


def mail(charset: str, body: bytes, subject: str = "Probe", name: str = "") -> bytes:
    """A mail whose body and headers have a charset."""
    lines = [
        f"From: =?{charset}?B?{base64.b64encode('Ada'.encode()).decode()}?= <ada@example.org>",
        "Date: Tue, 3 Mar 2026 10:00:00 +0100",
        f"Subject: {subject}",
        f'Content-Type: text/plain; charset="{charset}"' + (f"; {name}" if name else ""),
        "Content-Transfer-Encoding: base64",
    ]
    return "\n".join([*lines, "", base64.b64encode(body).decode(), ""]).encode()


@pytest.mark.parametrize(
    "label, encoding, text",
    [
        ("gb2312", "gb18030", "\u6e2f\u53e3\u7684\u706f\u5854\u7531\u9555\u5148\u751f\u7ba1\u7406"),
        ("ks_c_5601-1987", "cp949", "\ub4f1\ub300 \uc606 \ub620\ubc29\uac01\ud558"),
        ("iso-8859-1", "cp1252", "\u201cLeuchtturm\u201d 30 \u20ac"),
        ("us-ascii", "utf-8", "F\u00e4hre"),
        ("shift_jis", "cp932", "\u2460 \u706f\u53f0"),
        ("unknown-8bit", "cp1252", "F\u00e4hre"),
    ],
)
def test_charsets_are_those_of_the_web(owner: Owner, label: str, encoding: str, text: str) -> None:
    raw = text.encode(encoding)
    words = [f"=?{label}?B?{base64.b64encode(part).decode()}?=" for part in (raw[:5], raw[5:])]
    content = mail(label, raw, "\n ".join(words))
    owner.bring(write(owner.home / "box", {"a.eml": content}))
    (row,) = [row["data"] for row in owner.rows("messages")]
    assert row["body"] == text and row["subject"] == text
    assert row["from"] == "Ada <ada@example.org>"


def test_a_stray_byte_does_not_change_the_rest_of_a_text(owner: Owner) -> None:
    body = "F\u00e4hre ".encode() + b"\x96 Pier"
    subject = "=?UTF-8?Q?Boat_=EF=BF=BD_paint?="
    owner.bring(write(owner.home / "box", {"a.eml": mail("utf-8", body, subject)}))
    (row,) = [row["data"] for row in owner.rows("messages")]
    assert row["body"] == "F\u00e4hre \u2013 Pier" and row["subject"] == "Boat \ufffd paint"


def test_the_name_of_a_file_has_the_charset_of_the_web(owner: Owner) -> None:
    name = base64.b64encode("\u9555.txt".encode("gb18030")).decode()
    part = mail("gb2312", b"oyster", name=f'name="=?gb2312?B?{name}?="')
    plain = b"Content-Type: text/plain\n\nHello\n"
    inner = b"".join(b"--C\n" + one for one in (plain, part)) + b"--C--\n"
    middle = b"Content-Type: multipart/mixed; boundary=C\n\n" + inner
    outer = b"".join(b"--B\n" + one for one in (plain, middle)) + b"--B--\n"
    head = b"From: a@x\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=B\n\n"
    owner.bring(write(owner.home / "box", {"a.eml": head + outer}))
    (file,) = owner.rows("attachments")
    assert file["data"]["filename"] == "\u9555.txt" and file["data"]["text"] == "oyster"


PLAN = """\
From - Tue Mar  3 10:00:00 2026
From: Noor <noor@example.org>
Message-ID: <f1@x>
Subject: Plan

From Monday on the ferry leaves at 10:15 from pier 3.
Please bring the oilskins.

From the harbour master 08:30: storm warning.

From - Tue Mar  3 11:00:00 2026
Message-ID: <f2@x>
X-Mozilla-Status: 0009

was deleted
"""


def test_a_line_of_a_body_does_not_split_a_mail(owner: Owner) -> None:
    report = owner.bring(write(owner.home / "Inbox.mbox", {"mbox": PLAN}))
    (row,) = owner.rows("messages")
    assert "storm warning" in row["data"]["body"] and row["data"]["folder"] == "Inbox"
    assert "Messages left out, because they are marked as deleted: 1." in report


def test_lines_above_the_headers_are_no_headers(owner: Owner) -> None:
    mail = PLAN.partition("\n")[2].partition("\n\n")[0] + "\n\nHello\n"
    apple = f"{len(mail)}      \n{mail}<?xml version='1.0'?><plist></plist>\n"
    banner = "Microsoft Mail Internet Headers Version 2.0\r\n" + mail.replace("f1@", "b1@")
    files: dict[str, bytes | str] = {"Sent.mbox/A/Messages/1.emlx": apple, "Old/b.eml": banner}
    owner.bring(write(owner.home / "Mail", files))
    rows = {row["id"]: row["data"] for row in owner.rows("messages")}
    assert {row["subject"] for row in rows.values()} == {"Plan"}
    assert (rows["f1@x"]["folder"], rows["f1@x"]["body"]) == ("Sent", "Hello\n")
    assert rows["b1@x"]["folder"] == "Old"


PLAIN = PLAN.partition("\n")[2].partition("\n\n")[0] + "\n\nHello\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.eml", f">From ada@x.org Tue Mar  3 10:00:00 2026\n{PLAIN}"),
        ("a.eml", f"Saved by a program\nX-Mozilla-Status: 0001\n{PLAIN}"),
        ("a.eml", PLAIN.encode("utf-16")),
        ("a.eml", b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode()),
        ("a.mbox", b"\xef\xbb\xbfFrom a@x Tue Mar  3 10:00:00 2026\n" + PLAIN.encode()),
        ("a.mbox", f"From a@x Tue Mar  3 10:00:00 2026\n{PLAIN}".encode("utf-16")),
        ("a.mbox", f"\r\nFrom a@x Tue Mar  3 10:00:00 2026\r\n{PLAIN}"),
        ("a.mbox", f"From - Tue Mar  3 10:00:00 2026\n{PLAIN}\nFrom Ada at 10:15 to us\nNote: x\n"),
    ],
)
def test_headers_are_read_whatever_comes_before_them(
    owner: Owner, name: str, content: bytes | str
) -> None:
    owner.bring(write(owner.home / "box", {name: content}))
    (row,) = owner.rows("messages")
    assert row["data"]["subject"] == "Plan" and row["data"]["body"].startswith("Hello")


def test_a_header_of_a_mail_is_parsed_once() -> None:
    mail = message_from_string(QUESTION, policy=POLICY)
    assert mail["From"] == "Ada König <ada@example.org>"
    assert all(mail[name] is mail[name] for name in ("From", "To", "Subject", "Content-Type"))
