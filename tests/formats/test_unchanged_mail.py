"""Mail that is in the store as the same bytes were parsed before: it is not parsed again.

That nothing is parsed is visible in the commands' CPU time alone, so a format of another package
writes down what it parses.
"""

import inspect
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service.importing.formats import FORMATS
from service.importing.unchanged import parsing_files
from tests.formats.owner import Owner, counts, write
from tests.helpers.shell import Shell

MODULE = r"""
import re
from functools import partial
from service.importing.rows import manifest, stream
from service.importing.source import Format, Raw
from service.records.intake import Row

def read(source):
    for number, line in enumerate(source.file, start=1):
        yield number, Raw(partial(parse, source, line), line, "")

def parse(source, line):
    key, *words = line.decode().split()
    with open(source.name + ".log", "a") as log:
        log.write(key + " ")
    for number, word in enumerate(words):
        if word == "odd":
            source.problems["Odd words: {}."] += 1
        row = Row({"id": f"{key}{number}", "text": word}, stream="lines")
        yield "refused" if word == "bad" else row

STREAMS = manifest(stream("lines", "id:id text:text"))
FORMAT = Format("logged", (".logged",), re.compile(rb"(?!)"), read, STREAMS)
"""
FILES = {
    "rung_logged.py": MODULE,
    "rung_logged-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: rung-logged\nVersion: 1\n",
    "rung_logged-1.dist-info/entry_points.txt": "[rung.formats]\nlogged = rung_logged:FORMAT\n",
}


class Log:
    """An owner with that format."""

    def __init__(self, owner: Owner) -> None:
        site = write(owner.home / "site", FILES)
        self.home = owner.home
        self.shell = Shell({**owner.shell.environ, "PYTHONPATH": str(site)}, owner.home)

    def bring(self, text: str, options: str = "", *, code: int = 0) -> tuple[str, dict[str, int]]:
        """(the keys of the lines that are parsed, the counts of the report)."""
        log = self.home / "a.logged.log"
        log.write_text("")
        write(self.home, {"a.logged": text})
        done = self.shell.bash(f"rung import a.logged --connection c {options}")
        assert done.returncode == code, done.stderr
        return log.read_text().strip(), counts(done.stderr)


@pytest.fixture
def log(owner: Owner) -> Log:
    return Log(owner)


def test_only_new_and_changed_records_are_parsed(log: Log) -> None:
    assert log.bring("a x y\nb x\nc x\n")[0] == "a b c"
    parsed, counted = log.bring("a x y\nb x\nc x\nd x y\n")
    assert (parsed, counted["new"], counted["unchanged"]) == ("d", 2, 4)
    parsed, counted = log.bring("a x y\nb z\nc x\nd x y\n")
    assert (parsed, counted["changed"], counted["unchanged"]) == ("b", 1, 5)
    assert log.bring("a x y\nb x\n")[1]["changed"] == 1


def test_other_choices_and_connections_parse_again(log: Log) -> None:
    log.bring("a x\n")
    assert log.bring("a x\n", "--replace-undecodable")[0] == "a"
    assert log.bring("a x\n")[0] == ""
    assert log.bring("a x\n", "--connection other")[0] == "a"


def test_what_was_reported_is_reported_again(log: Log) -> None:
    log.bring("a odd\nb x bad\nc x\n", code=3)
    parsed, counted = log.bring("a odd\nb x bad\nc x\n", code=3)
    assert (parsed, counted["refused"], counted["unchanged"]) == ("a b", 1, 3)


def test_a_record_that_another_one_replaces_meanwhile_is_parsed(log: Log) -> None:
    log.bring("a x y\nb x\n")
    parsed, counted = log.bring("a z\na x y\nb x\n")
    assert (parsed, counted["changed"], counted["unchanged"]) == ("a a b", 0, 3)
    # In different batches, each is stored.
    many = "".join(f"{number}- {'w' * 60_000}\n" for number in range(40))
    parsed, counted = log.bring(f"a z\n{many}a x y\nb x\n")
    assert parsed.startswith("a 0- ") and parsed.endswith("39- a b") and counted["changed"] == 2
    assert log.bring(f"a x y\nb x\n{many}")[0] == ""


def test_a_store_from_before_is_parsed_once_more(log: Log, owner: Owner) -> None:
    log.bring("a x\n")
    with closing(sqlite3.connect(owner.home / "store/rung.db", isolation_level=None)) as db:
        db.execute("DROP TABLE parsed")
    assert [log.bring("a x\n")[0] for _ in range(2)] == ["a", ""]


MAIL = "From a@b Tue Mar  3 10:00:00 2026\nMessage-ID: <{0}@x>\nSubject: {1}\n"
BODY = "Content-Type: text/plain\n\n{0}\n\n"
PARTS = (
    "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n{0}\n--b\n"
    "Content-Disposition: attachment; filename=a.txt\nContent-Type: text/plain\n\n{1}\n--b--\n\n"
)


def mailbox(owner: Owner, *mails: str) -> Path:
    return write(owner.home, {"m.mbox": "".join(mails)}) / "m.mbox"


def mail(key: str, text: str, attached: str = "") -> str:
    return MAIL.format(key, text) + (PARTS if attached else BODY).format(text, attached)


def test_a_mailbox_that_grew_adds_only_what_is_new(owner: Owner) -> None:
    first, second = mail("1", "low tide", "pier"), mail("2", "high tide")
    owner.bring(mailbox(owner, first, second))
    before = owner.rows("messages"), owner.rows("attachments")
    grown = mailbox(owner, mail("3", "spring tide"), first, second)
    counted = counts(owner.bring(grown))
    assert (counted["new"], counted["changed"], counted["unchanged"]) == (1, 0, 3)
    rows = [row for row in owner.rows("messages") if row["data"]["id"] != "3@x"]
    assert (rows, owner.rows("attachments")) == before


def test_a_mail_that_another_import_changed_is_changed_back(owner: Owner) -> None:
    box, changed = mailbox(owner, mail("1", "low tide", "pier")), mail("1", "no tide", "quay")
    owner.bring(box)
    owner.bring(write(owner.home, {"b.mbox": changed}) / "b.mbox")
    counted = counts(owner.bring(box))
    assert (counted["changed"], counted["unchanged"]) == (2, 0)
    (row,), (attached,) = owner.rows("messages"), owner.rows("attachments")
    assert row["data"]["body"].strip() == "low tide" and attached["data"]["text"] == "pier"
    owner.again(box)


def test_a_change_of_any_reader_parses_the_mail_again() -> None:
    readers = {Path(str(inspect.getsourcefile(form.read))) for form in FORMATS.values()}
    assert readers <= {*parsing_files()}
