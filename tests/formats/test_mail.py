"""Mail as files of its own: `.eml` and Maildir, with replies and attachments."""

from pathlib import Path

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
    assert "3 files are read as eml" in report or "is read as eml" in report
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
