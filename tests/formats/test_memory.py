"""Exports larger than memory: a reader has one entry of a file in memory at a time."""

import json
import sys
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.importing import tree
from service.importing.formats import FORMATS
from service.importing.source import Source
from service.importing.text_repair import Repair
from service.records.sqlite.check import check
from tests.helpers.memory import peak_growth, peak_of
from tests.helpers.stdio import environment

MEGABYTE = 1 << 20
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
            rows = ((number, item) for number, item in FORMATS[form].read(source))
            counted.append(len(deque(enumerate(rows), maxlen=1)))

    growth = peak_growth(work)
    assert growth < SIZE // 2, f"{growth / MEGABYTE:.0f} MB for {SIZE / MEGABYTE:.0f} MB"
    assert counted == [1]


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
    assert check(tmp_path / "301000.db") == []
    growth = peaks[1] - peaks[0]
    assert growth < 85 * MEGABYTE, f"{growth / MEGABYTE:.0f} MB for 300,000 words"
