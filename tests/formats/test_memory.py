"""Exports larger than memory: a reader has one entry of a file in memory at a time."""

import base64
import json
import random
import sys
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from openpyxl import Workbook
from openpyxl.xml.constants import ARC_SHARED_STRINGS, SHARED_STRINGS, SHEET_MAIN_NS

from service.importing import tree
from service.importing.process.guard import records
from service.importing.source import Repair, Source
from service.records.intake import Row
from tests.formats.owner import Owner
from tests.helpers.memory import peak_growth, peak_of
from tests.helpers.places import faults
from tests.helpers.stdio import environment

MEGABYTE = 1 << 20
ATTACHED = 16 * MEGABYTE
SIZE = 24 * MEGABYTE
TEXT = "Lighthouse and tide, bollard and pier. " * 200


def mails(number: int) -> str:
    head = f"From a@b Tue Mar  3 10:00:00 2026\nMessage-ID: <{number}@x>\nSubject: {number}\n"
    return f"{head}\n{TEXT}\n\n"


def conversations(number: int) -> str:
    message = {"uuid": f"m{number}", "text": TEXT, "sender": "human"}
    chat = {"uuid": f"c{number}", "name": "Tide", "chat_messages": [message]}
    return ("[" if number == 0 else ", ") + json.dumps(chat)


def objects(number: int) -> str:
    begin = '{"total": 1, "export": {"items": [' if number == 0 else ","
    return begin + json.dumps({"id": number, "text": TEXT})


def chats(number: int) -> str:
    return f"[03.03.26, 10:{number // 60 % 60:02}:{number % 60:02}] Ada: {TEXT}\n"


def written(path: Path, entry: Callable[[int], str], last: str) -> None:
    def pieces() -> Iterator[str]:
        for number in range(SIZE // len(entry(1))):
            yield entry(number)
        yield last

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("export.txt", "w") as file:
            for piece in pieces():
                file.write(piece.encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "entry", "last"),
    [
        ("mbox", mails, ""),
        ("claude", conversations, "]"),
        ("whatsapp", chats, ""),
        ("json", objects, '], "more": [1]}}'),
    ],
)
def test_a_member_of_an_archive_is_read_entry_by_entry(
    tmp_path: Path, form: str, entry: Callable[[int], str], last: str
) -> None:
    written(tmp_path / "export.zip", entry, last)
    (found,) = tree.trees(str(tmp_path / "export.zip"))
    (file,) = found.files.values()
    counted = []

    def work() -> None:
        with file.open() as opened:
            source = Source(file.name, form, opened, Repair(), tree=found)
            counted.append(len(deque(records(source), maxlen=1)))

    growth = peak_growth(work)
    assert growth < SIZE // 2, f"{growth / MEGABYTE:.0f} MB for {SIZE / MEGABYTE:.0f} MB"
    assert counted == [1]


def workbook_of_shared_texts(path: Path, texts: Iterator[str]) -> Path:
    """A sheet with the column `text`, as Excel writes it: cells have the numbers of texts."""
    begin = '<?xml version="1.0"?><{} xmlns="%s">' % SHEET_MAIN_NS
    book = Workbook()
    book.worksheets[0]["A1"] = "text"
    book.save(plain := path.with_suffix(".plain"))
    sheet, types = "xl/worksheets/sheet1.xml", "[Content_Types].xml"
    part = f'<Override PartName="/{ARC_SHARED_STRINGS}" ContentType="{SHARED_STRINGS}"/>'
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in set(old.namelist()) - {sheet, types}:
            new.writestr(name, old.read(name))
        new.writestr(types, old.read(types).decode().replace("</Types>", f"{part}</Types>"))
        count = 0
        with new.open(ARC_SHARED_STRINGS, "w") as file:
            file.write(begin.format("sst").encode())
            for count, text in enumerate(chain(["text"], texts), start=1):
                file.write(f"<si><t>{text}</t></si>".encode())
            file.write(b"</sst>")
        with new.open(sheet, "w") as file:
            file.write(f"{begin.format('worksheet')}<sheetData>".encode())
            for row in range(count):
                cell = f'<c r="A{row + 1}" t="s"><v>{row}</v></c>'
                file.write(f'<row r="{row + 1}" ht="15">{cell}</row>'.encode())
            file.write(b"</sheetData></worksheet>")
    return path


@pytest.mark.slow
def test_a_workbook_is_read_row_by_row(tmp_path: Path) -> None:
    texts = (f"{number} {TEXT}" for number in range(SIZE // len(TEXT)))
    path = workbook_of_shared_texts(tmp_path / "log.xlsx", texts)
    read = []

    def work() -> None:
        with path.open("rb") as opened:
            rows = records(Source(path.name, "xlsx", opened, Repair()))
            read.extend(
                item.data["text"] == f"{number} {TEXT}" for number, (*_, item) in enumerate(rows)
            )

    growth = peak_growth(work)
    assert growth < SIZE // 2, f"{growth / MEGABYTE:.0f} MB for {SIZE / MEGABYTE:.0f} MB"
    assert read == [True] * (SIZE // len(TEXT))


def test_escaped_characters_of_a_workbook_are_themselves(tmp_path: Path) -> None:
    path = workbook_of_shared_texts(tmp_path / "log.xlsx", iter(["a_x0009_b", "_x005F_x0009_"]))
    with path.open("rb") as opened:
        rows = list(records(Source(path.name, "xlsx", opened, Repair())))
    assert [item.data for *_, item in rows] == [{"text": "a\tb"}, {"text": "_x0009_"}]


def test_a_workbook_with_a_broken_part_is_refused(owner: Owner) -> None:
    path = workbook_of_shared_texts(owner.home / "log.xlsx", iter(["a", "b"]))
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(owner.home / "cut.xlsx", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content[:-30] if "sheet1" in name else content)
    report = owner.bring(owner.home / "cut.xlsx", code=1)
    assert "cut.xlsx is not a readable workbook" in report


def chat_of_new_words(path: Path, words: int) -> Path:
    """A conversation whose one message has so many words, each of them once."""
    text = " ".join(f"{number * 2_654_435_761 % (1 << 32):x}" for number in range(words))
    content = {"content_type": "text", "parts": [text]}
    message = {"id": "m", "author": {"role": "user"}, "content": content}
    node = {"id": "m", "message": message, "parent": None, "children": []}
    path.write_text(json.dumps([{"id": "c", "title": "New words", "mapping": {"m": node}}]))
    return path


@pytest.mark.slow
def test_the_words_of_a_long_text_are_not_all_in_memory(tmp_path: Path) -> None:
    peaks = []
    for words in (1_000, 301_000):
        path = chat_of_new_words(tmp_path / f"{words}.json", words)
        store = {"RUNG_STORE": str(tmp_path / f"{words}.db")}
        command = (sys.executable, "-m", "service", "import", str(path))
        peaks.append(peak_of(*command, environ=environment(**store)))
    assert faults(tmp_path / "301000.db") == []
    growth = peaks[1] - peaks[0]
    assert growth < 85 * MEGABYTE, f"{growth / MEGABYTE:.0f} MB for 300,000 words"


@pytest.mark.slow
def test_an_attachment_is_in_memory_a_few_times_only(tmp_path: Path) -> None:
    content = base64.encodebytes(random.Random(7).randbytes(ATTACHED)).decode()
    head = "Message-ID: <1@x>\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n"
    (tmp_path / "mail.mbox").write_text(f"From a@b Tue Mar  3 10:00:00 2026\n{head}{content}\n")
    (found,) = tree.trees(str(tmp_path / "mail.mbox"))
    (file,) = found.files.values()
    sizes = []

    def work() -> None:
        with file.open() as opened:
            for *_, row in records(Source(file.name, "mbox", opened, Repair(), tree=found)):
                assert isinstance(row, Row)
                sizes.append(len(row.data.get("blob_ref", {}).get("data_base64", b"")))

    growth = peak_growth(work)
    assert sizes == [0, ATTACHED]
    assert growth < 12 * ATTACHED, f"{growth / ATTACHED:.1f} times the attachment"
