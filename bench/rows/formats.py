"""Imports of mail, of tables, and of many streams: rates, and a file that grew by one message."""

import csv
import mailbox
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import corpus, stores
from bench.corpus import Record
from bench.findings import Finding, Line
from bench.plan import Plan
from bench.rows.imports import PYTHON, run

#: Mails and rows are this share of the middle size; the streams, this many and ten times as many.
MAILS_SHARE, ROWS_SHARE, FEW_STREAMS = 0.2, 0.3, 200
ATTACHED_EVERY, ATTACHED = 10, b"\x00\xff" * 1_000


def measure(plan: Plan) -> Iterator[Line]:
    """Imports each kind as `rung import` does, on all cores of the machine."""
    mails = list(corpus.records(int(plan.middle * MAILS_SHARE)))
    with TemporaryDirectory(dir=stores.HOME) as folder:
        path, store = Path(folder) / "all.mbox", Path(folder) / "mails.db"
        _write_mails(path, mails[:-1])
        first = _seconds(path, store)
        yield Finding("import-mails", (len(mails) / first,))
        _write_mails(path, mails[-1:])
        yield Finding("import-grown", (_seconds(path, store) / first,))
    rows = list(corpus.records(int(plan.middle * ROWS_SHARE)))
    yield Finding("import-rows", (len(rows) / _imported("rows.csv", rows, _write_rows),))
    few, many = (
        _imported("streams", list(corpus.records(count)), _write_streams)
        for count in (FEW_STREAMS, 10 * FEW_STREAMS)
    )
    yield Finding("import-streams", (many / few,))


def _seconds(path: Path, store: Path) -> float:
    return run([*PYTHON, "-m", "service", "import", f"{path}", "--store", f"{store}"]).seconds


def _imported(name: str, records: Sequence[Record], write: Callable[..., None]) -> float:
    """The seconds of an import of these records into a new store."""
    with TemporaryDirectory(dir=stores.HOME) as folder:
        write(Path(folder) / name, records)
        return _seconds(Path(folder) / name, Path(folder) / "store.db")


def _write_mails(path: Path, records: Sequence[Record]) -> None:
    """Adds mails with an ordinary head to a mailbox; one in ten has an attachment."""
    box = mailbox.mbox(path)
    for place, record in enumerate(records):
        mail = EmailMessage()
        mail["From"] = f"Somebody <{record.kind}@example.org>"
        mail["To"] = "Ada <ada@example.com>, Noor <noor@example.com>"
        mail["Date"] = datetime.fromisoformat(record.sent_at)
        mail["Subject"] = record.title.replace("\n", " ")
        mail["Message-ID"] = f"<{record.stream}.{record.id}@example.org>"
        for hop in range(4):
            mail["Received"] = f"from relay-{hop}.example.net by mx.example.org with ESMTPS"
        mail.set_content(record.body)
        if place % ATTACHED_EVERY == 0:
            mail.add_attachment(ATTACHED, "application", "octet-stream", filename="data.bin")
        box.add(mail)
    box.close()


def _write_rows(path: Path, records: Sequence[Record]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("number", "date", "amount", "payee", "purpose", "kind"))
        for number, each in enumerate(records):
            purpose, amount = each.body[:80], f"{number % 997 / 7:.2f}"
            table.writerow((number, each.sent_at[:10], amount, each.title, purpose, each.kind))


def _write_streams(path: Path, records: Sequence[Record]) -> None:
    """A folder with a file for each record; each becomes a stream."""
    path.mkdir()
    for number, each in enumerate(records):
        name = f"{chr(97 + number // 676)}{chr(97 + number // 26 % 26)}{chr(97 + number % 26)}.csv"
        head, row = f"id,{name[:3]}_text", f"1,{each.title.replace(',', ' ')}"
        (path / name).write_text(f"{head}\n{row}\n")
