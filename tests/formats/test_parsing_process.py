"""The process that parses files: what it may use, what it cannot reach, and what is lost with it.

A format of another package does what each line of its files names.
"""

import base64
import os
import random
import socket
import subprocess
from pathlib import Path

import pytest

from service.importing.process.parsing import FileReport, Parser
from service.importing.plan import Listener, Plan
from service.importing.run import import_files, replace_stream
from service.records.intake import Counts
from service.records.opening import open_writer
from tests.formats.owner import Owner, counts, write
from tests.helpers.shell import Shell

MODULE = r"""
import ctypes, os, re, resource, signal, socket, struct, subprocess, time
from functools import partial
from service.importing.source import Format
from service.records.intake import Row

def read(source):
    for number, line in enumerate(source.file, start=1):
        name, _, word = line.decode().strip().partition(" ")
        if name.startswith("between-"):
            ACTIONS[name.removeprefix("between-")](word)
        else:
            yield number, partial(parse, name, word)

def parse(name, word):
    yield Row({"id": word or name, "text": str(ACTIONS[name](word))}, stream="lines")

def burn(word):
    while True:
        pass

def unlimited(word):
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    content = b"x" * (600 << 20)
    time.sleep(600)

def flood(word):
    for file in range(3, 32):
        try:
            os.write(file, struct.pack(">Q", 1 << 40))
        except OSError:
            pass
    time.sleep(600)

def garbage(word):
    for file in range(3, 32):
        try:
            os.write(file, struct.pack(">Q", 22) + b'{"rows": [[1, 2, {}]]}')
        except OSError:
            pass
    time.sleep(600)

def connect(word):
    address = struct.pack("=HH4s8s", socket.AF_INET, socket.htons(int(word)), b"\x7f\0\0\1", b"")
    libc = ctypes.CDLL(None)
    return libc.connect(libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0), address, 16)

def forbidden(word):
    reasons = []
    for call in (socket.socket, partial(subprocess.run, ["true"]), os.fork):
        try:
            reasons.append(str(call()))
        except PermissionError as error:
            reasons.append(str(error))
    return reasons

def files(word):
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return sorted(os.readlink(link) for link in links if os.path.lexists(link))

ACTIONS = {
    "row": lambda word: word,
    "burn": burn,
    "sleep": lambda word: time.sleep(600),
    "allocate": lambda word: len(bytearray(600 << 20)),
    "unlimited": unlimited,
    "crash": lambda word: os.kill(os.getpid(), signal.SIGSEGV),
    "raise": lambda word: 1 / 0,
    "recurse": lambda word: ACTIONS["recurse"](word),
    "flood": flood,
    "garbage": garbage,
    "connect": connect,
    "forbidden": forbidden,
    "files": files,
    "environment": lambda word: dict(os.environ),
}
FORMAT = Format("trouble", (".trouble",), re.compile(rb"(?!)"), read)
"""
FILES = {
    "rung_trouble.py": MODULE,
    "rung_trouble-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: rung-trouble\nVersion: 1\n",
    "rung_trouble-1.dist-info/entry_points.txt": "[rung.formats]\ntrouble = rung_trouble:FORMAT\n",
}


class Trouble:
    """An owner with that format, who imports lines."""

    def __init__(self, owner: Owner) -> None:
        site = write(owner.home / "site", FILES)
        environ = {**owner.shell.environ, "PYTHONPATH": str(site), "RUNG_SECRET_KEY": "s" * 40}
        self.owner, self.shell = owner, Shell(environ, owner.home)

    def bring(self, *files: str, command: str = "rung import {} --connection c") -> str:
        """The report of an import of files with these lines."""
        names = [f"{number}.trouble" for number in range(len(files))]
        write(self.owner.home, {name: text for name, text in zip(names, files)})
        done = self.shell.bash(command.format(" ".join(names)))
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr

    @property
    def texts(self) -> dict[str, str]:
        """The text of each record by its id."""
        return {row["data"]["id"]: row["data"]["text"] for row in self.owner.rows("lines")}


@pytest.fixture
def trouble(owner: Owner) -> Trouble:
    return Trouble(owner)


def lines(*words: str) -> str:
    """Each with a row before and after it."""
    rows = [f"row {number}" for number in range(len(words) + 1)]
    return "\n".join([rows[0], *(f"{word}\n{row}" for word, row in zip(words, rows[1:]))])


def test_a_record_that_fails_crashes_or_needs_too_much_memory_is_refused_alone(
    trouble: Trouble,
) -> None:
    report = trouble.bring(lines("raise", "crash", "allocate", "recurse", "crash"))
    assert trouble.texts.keys() == {"0", "1", "2", "3", "4", "5"}
    assert counts(report)["refused"] == 5 and "repeated" not in report
    assert "0.trouble line 2: This record cannot be read: ZeroDivisionError" in report
    assert "line 4: This record crashes the import process (signal 11)." in report
    assert "line 6: This record needs more than 512 MiB of memory." in report
    assert "line 8: This record cannot be read: RecursionError" in report
    assert "line 10: This record crashes" in report


@pytest.mark.slow
def test_a_record_has_ten_seconds(trouble: Trouble) -> None:
    report = trouble.bring(lines("burn", "sleep"))
    assert trouble.texts.keys() == {"0", "1", "2"}
    assert "line 2: This record takes more than " in report
    assert "line 4: This record takes more than 20 s." in report


@pytest.mark.slow
def test_the_import_watches_the_memory_if_the_system_does_not(trouble: Trouble) -> None:
    report = trouble.bring(lines("unlimited"))
    assert trouble.texts.keys() == {"0", "1"}
    assert "line 2: This record needs more than 512 MiB of memory." in report


def test_what_is_no_frame_ends_the_process_and_is_not_read(trouble: Trouble) -> None:
    report = trouble.bring(lines("flood", "garbage"))
    assert trouble.texts.keys() == {"0", "1", "2"}
    assert "line 2: This record is too large." in report
    assert "line 4: This record makes the import process send invalid data." in report


def test_after_twenty_such_records_the_rest_of_the_file_is_refused(trouble: Trouble) -> None:
    report = trouble.bring(lines(*["crash"] * 22), "row other")
    assert trouble.texts.keys() == {*map(str, range(20)), "other"}
    assert counts(report)["refused"] == 20
    assert "(signal 11). Rung stops after 20 such records, so the rest is left out." in report


def test_a_crash_between_records_loses_the_rest_of_its_file(trouble: Trouble) -> None:
    report = trouble.bring("row a\nbetween-crash\nrow b", "row c")
    assert trouble.texts.keys() == {"a", "c"}
    assert "The rest of the file crashes the import process (signal 11), so it" in report


def test_what_follows_a_crash_on_standard_input_is_refused(trouble: Trouble) -> None:
    piped = "cat {} | rung import - --format trouble --connection c"
    report = trouble.bring(lines("crash"), command=piped)
    assert trouble.texts.keys() == {"0"} and "save the input in a file" in report


def test_the_process_has_no_setting_no_secret_no_store_and_no_network(trouble: Trouble) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        trouble.bring("\n".join(("environment", "files", "forbidden", f"connect {port}")))
    texts = trouble.texts
    assert set(eval(texts["environment"])) <= {"TMPDIR", "LC_CTYPE"}
    assert not any(".db" in file or "socket" in file for file in eval(texts["files"]))
    assert all("may not call" in reason for reason in eval(texts["forbidden"]))
    namespaces = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if os.geteuid() == 0 or not namespaces.returncode:
        assert texts[str(port)] == "-1"  # the kernel refuses what Python does not see


@pytest.mark.slow
def test_a_mail_with_an_attachment_of_64_mib_is_imported(owner: Owner) -> None:
    content = base64.encodebytes(random.Random(7).randbytes(64 << 20)).decode()
    start = "From a@b Tue Mar  3 10:00:00 2026\nMessage-ID: <{}>\n"
    part = "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n"
    head = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntide\n--b\n"
    large = f"{start.format('large')}{head}{part}{content}\n--b--\n\n"
    write(owner.home, {"m.mbox": f"{large}{start.format('small')}\ntide\n"})
    assert counts(owner.bring(owner.home / "m.mbox")) == {
        **dict.fromkeys(("changed", "unchanged", "deleted", "refused"), 0),
        "new": 3,
    }
    (attached,) = owner.rows("attachments")
    assert attached["data"]["blob_ref"]["size_bytes"] == 64 << 20


class Files(Listener):
    """The reports of the files, in order."""

    def __init__(self) -> None:
        self.reports = list[FileReport]()

    def file(self, report: FileReport) -> None:
        self.reports.append(report)


@pytest.mark.parametrize("strict", [False, True])
def test_an_import_is_a_function_that_reports_what_it_did(tmp_path: Path, strict: bool) -> None:
    export = write(tmp_path / "export", {"a.ndjson": '{"id": 1}\nx\n', "b.png": b"\x89PNG"})
    (export / "c.png").symlink_to("b.png")
    store, files = tmp_path / "rung.db", Files()
    with Parser([str(export)]) as parser:
        parser.find()
        report = import_files(store, parser, Plan("c", strict=strict), files)
    (file,) = files.reports
    assert (report.counts.new, report.counts.refused, file.rows) == (1, 1, 2)
    assert file.refusals[0][0] == 2 and "not JSON" in file.refusals[0][1]
    assert len(report.left_out) == 2
    assert [manifest.name for manifest in report.manifests] == ["a"]
    with open_writer(store) as writer:
        assert report.undone is strict and len(writer.counts()) == 1 - strict


def test_a_stream_is_replaced_by_a_function_unless_a_row_is_refused(tmp_path: Path) -> None:
    for name, text in (("a", '{"id": 1}\n{"id": 2}\n'), ("b", '{"id": 2}\n'), ("c", "x\n")):
        write(tmp_path, {f"{name}.ndjson": text})
    store, outcomes, changed = tmp_path / "rung.db", list[bool](), list[tuple[int, int]]()

    class Changes(Listener):
        def replaced(self, counts: Counts) -> None:
            changed.append((counts.unchanged, counts.deleted))

    for name in "abc":
        with Parser([str(tmp_path / f"{name}.ndjson")]) as parser:
            parser.find()
            if name == "a":
                import_files(store, parser, Plan("notes", stream="a"))
                continue
            with open_writer(store) as writer:
                plan = Plan("notes", stream="a")
                _, replaced = replace_stream(writer, parser, plan, Changes(), keep_manifest=True)
                outcomes.append(replaced)
                (stream,) = writer.counts()
                assert stream.records == 1
    assert outcomes == [True, False]
    assert changed == [(1, 1)]
