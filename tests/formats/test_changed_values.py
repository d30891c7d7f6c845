"""No change of one value or a few bytes of any sample ends an import with an exception."""

import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from evidence.errors import EvidenceError
from service.importing.finding import find
from service.importing.process.frames import decode, encode
from service.importing.process.guard import Received, header, records
from service.importing.importer import Import
from service.importing.plan import Plan
from service.importing.source import Reading, Repair, Source
from evidence.names import Refused
from service.records.opening import open_writer
from service.records.writing.streams import connect
from service.records.writing import Writing
from tests.formats.compound import compound
from tests.formats.exports import VALUES, chatgpt, claude, slack
from tests.formats.owner import write
from tests.formats.test_imessage import ROWS, database
from tests.formats.test_outlook import SENT
from tests.formats.test_references import BIBTEX, RIS
from tests.formats.test_statements import CAMT, MT940
from tests.formats.test_takeout import GEMINI, MESSAGES, SEARCH, SECOND, SPACE
from tests.formats.test_twitter import ARCHIVE, CONVERSATION, NOTE, TWEETS, part
from tests.formats.written import WRITERS
from tests.helpers.scale import times

TEXTS = ("Ebbe, *und* Flut: <a@b.org> #x [[y]]", 'Zweiter; Text \\n mit "Zitat"\n- 3,5')
TABLES = {
    "a.csv": 'id;day;text;n\n1;03.03.2026;"Ebbe; Flut";3,5\n2;04.03.2026;Priel;-4\n',
    "b.tsv": "id\tday\ttext\n1\t2026-03-03\tEbbe\n2\t2026-03-04\tFlut\n",
    "c.ndjson": '{"id": 1, "at": "2026-03-03T10:00:00Z", "a": {"b": [1.5]}}\n{"id": 2}\n',
    "d.json": '{"x": [{"id": 1, "t": "ebb", "b": {"data_base64": "AA==", "mime_type": "a/b"}}]}',
    "e.enex": '<?xml version="1.0"?><en-export><note><title>Ebbe</title><created>20260303T091500Z'
    "</created><content><![CDATA[<en-note>Flut <en-todo/>Priel</en-note>]]></content><resource>"
    '<data encoding="base64">AAAA</data><mime>image/png</mime></resource></note></en-export>\n',
    "f.opml": '<opml version="2.0"><body><outline text="Ebbe"><outline text="Flut" '
    'xmlUrl="https://x.org/f" category="a,b"/><outline text="Priel"/></outline></body></opml>\n',
    "g.qif": "!Account\nNGiro\n^\n!Type:Bank\nD03/13'26\nT-12.34\nPEbbe\nSFlut\n$-12.34\n^\n",
    "h.js": part("tweets", TWEETS[1:3]),
    "i.js": ARCHIVE["data/direct-messages.js"],
    "k.bib": BIBTEX,
    "l.ris": RIS,
    "m.msg": compound(SENT),
    "n.sta": MT940,
    "o.xml": CAMT % ("02", "<Nm>", "</Nm>"),
    "chat.db": database(*ROWS),
    "MyActivity.json": SECOND["Takeout/My Activity/Gemini Apps/MyActivity.json"],
    "messages.json": SECOND[f"{SPACE}/messages.json"],
}


def imported(writer: Writing, path: Path) -> Import:
    """Imports what is at a path as `import_files` does, in this process."""
    task = Import(writer, Plan("c"))
    files, listing = find([str(path)], None, lambda: None)
    for file, entry in zip(files, listing.files):
        with file.open() as opened:
            source = Source(file.name, entry.format, opened, Repair(), Reading(), file.tree)
            task.read(header(source), sent(source))
    return task


def sent(source: Source) -> Iterator[Received]:
    """The rows of a file after their way through a pipe."""
    for number, line, content in records(source):
        blobs: list[bytes] = []
        try:
            text = encode(content, blobs)
        except Refused as refused:
            text = encode(str(refused), blobs)
        yield number, line, decode(orjson.loads(text), blobs)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writing]:
    with open_writer(tmp_path / "rung.db") as opened:
        connect(opened, "c")
        yield opened


def changes(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced by each of `VALUES`."""
    yield from VALUES
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: other} for other in changes(inner))
            yield {key: other for key, other in value.items() if key != name}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in changes(inner))


@pytest.mark.parametrize("export", [chatgpt, claude])
def test_a_changed_value_costs_at_most_its_own_part_of_a_chat(
    writer: Writing, tmp_path: Path, export: Callable[[], Any]
) -> None:
    (chat,) = export()
    chats = list(changes(chat))
    path = write(tmp_path / "x", {"chats.json": json.dumps([chat, *chats, chat])})
    task = imported(writer, path)
    assert not errors(task)
    assert task.counts.rows > 2 * len(chats)


def test_a_changed_value_costs_at_most_its_own_part_of_a_workspace(
    writer: Writing, tmp_path: Path
) -> None:
    export, files, count = slack(), {}, 0
    for name, content in export.items():
        for other in changes(content):
            count += 1
            folder = {**export, name: other}
            files |= {f"{count}/{key}": json.dumps(value) for key, value in folder.items()}
    task = imported(writer, write(tmp_path / "x", files))
    assert not errors(task)
    assert task.counts.rows > 3 * count


#: What is before and after the entries of a file, and an entry.
ENTRIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tweets.js": ("window.YTD.tweets.part0 = [", "]", TWEETS[2]),
    "note-tweet.js": ("window.YTD.note_tweet.part0 = [", "]", {"noteTweet": NOTE}),
    "direct-messages.js": ("window.YTD.direct_messages.part0 = [", "]", CONVERSATION),
    "MyActivity.json": ("[", "]", GEMINI),
    "Activity.json": ("[", "]", SEARCH),
    "messages.json": ('{"messages": [', "]}", MESSAGES[0]),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_changed_value_costs_at_most_its_own_entry(
    writer: Writing, tmp_path: Path, name: str
) -> None:
    begin, end, entry = ENTRIES[name]
    entries = list(changes(entry))
    text = ", ".join(map(json.dumps, [entry, *entries, entry]))
    task = imported(writer, write(tmp_path / "x", {name: f"{begin}{text}{end}"}))
    assert not errors(task), errors(task)
    assert task.counts.rows > len(entries) // 2


@pytest.mark.parametrize("form", [*WRITERS, *TABLES])
def test_flipped_bytes_never_end_an_import_with_an_exception(
    writer: Writing, tmp_path: Path, form: str
) -> None:
    (tmp_path / "sample").mkdir()
    sample = (
        WRITERS[form](tmp_path / "sample", TEXTS)
        if form in WRITERS
        else write(tmp_path / "sample", {form: TABLES[form]})
    )
    draw = random.Random(form)
    for number in range(times(100, 6)):
        copy = tmp_path / str(number)
        for name, content in contents(sample):
            write(copy, {name: flipped(content, draw)})
        try:
            imported(writer, copy)
        except EvidenceError:
            pass  # with one line for its owner


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a folder or of an archive, by name."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
    elif path.is_file():
        yield path.name, path.read_bytes()
    else:
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield str(file.relative_to(path)), file.read_bytes()


def flipped(content: bytes, draw: random.Random) -> bytes:
    """Bytes of which a few are others, missing, or there twice."""
    for _ in range(draw.randrange(1, 4)):
        place = draw.randrange(len(content) + 1)
        more = draw.choice(
            (b"", draw.randbytes(1), b"\0", b'"', b"\n", b"<", content[place : place + 9])
        )
        content = content[:place] + more + content[place + draw.randrange(3) :]
    return content


def errors(task: Import) -> list[str]:
    """The reasons that are only the names of exceptions."""
    return [
        reason
        for _, reason in task.counts.refusals
        if "Error" in reason and "surrogate" not in reason
    ]
