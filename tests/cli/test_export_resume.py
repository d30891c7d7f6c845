"""`rung export` that is interrupted: the same command goes on, or says why it cannot."""

import fcntl
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evidence.limits import BUDGETS
from tests.helpers.archive import (
    BYTES,
    LONG,
    LONG_ID,
    MIDDLE,
    MIDDLE_ID,
    NESTED,
    NOTES,
    WINDOW,
    Archive,
    Killer,
    Passed,
    asked_for,
    bent,
)
from tests.helpers.loopback import Asked, Reply, as_json
from tests.helpers.memory import peak_growth
from tests.helpers.server import ROOT
from tests.helpers.shell import Shell
from tests.helpers.stdio import environment

pytestmark = pytest.mark.slow

HALF = WINDOW * 3
FIELD = ("field", MIDDLE_ID, "text")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def part(out: Path) -> Path:
    return out.with_name("out.part")


def kept(out: Path) -> dict[str, Any]:
    """What is known of a part."""
    found: dict[str, Any] = json.loads(out.with_name("out.part.json").read_bytes())
    return found


def alone(out: Path) -> bytes:
    """The bytes of a file beside which nothing was left."""
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return out.read_bytes()


def at_half(asked: Asked) -> bool:
    return asked_for(asked, "offset_chars") == str(HALF)


def in_the_middle(asked: Asked) -> bool:
    """Of the long note."""
    return asked_for(asked, "offset_chars") == str(WINDOW * 60)


def forbidden(asked: Asked, passed: Passed) -> Reply:
    """From its half on, the field is not granted any more."""
    told = {"error": {"code": "grant_revoked", "message": "This grant is revoked. Ask again."}}
    return as_json(told, 403) if at_half(asked) else passed(asked)


def halved(archive: Archive, url: str, out: Path) -> Shell:
    """A shell on `url`, and half an export of the field from there."""
    shell = archive.at(RUNG_URL=url)
    with bent(url, forbidden) as server:
        result = shell.run("export", *FIELD, "-o", str(out), "--url", server.url)
    assert result.exit_code == 3, result.output
    assert "Run the same command again to resume" in result.stderr
    notes = kept(out)
    notes["of"]["source"] = url  # the server that refused is gone
    out.with_name("out.part.json").write_text(json.dumps(notes), encoding="utf-8")
    assert notes["state"]["chars"] == HALF and part(out).stat().st_size == notes["bytes"]
    return shell


def test_a_killed_export_of_a_field_goes_on_to_the_last_byte(
    archive: Archive, url: str, out: Path
) -> None:
    killer = Killer(in_the_middle)
    words = ("field", LONG_ID, "text", "-o", str(out))
    with bent(url, killer) as server:
        shell = archive.at(RUNG_URL=server.url)
        killer.run(shell, *words)
        assert not out.exists() and kept(out)["state"]["chars"] == WINDOW * 60
        with part(out).open("ab") as file:
            file.write(b"a window that was not kept")
        result = shell.ok("export", *words)
        offsets = [asked_for(asked, "offset_chars") for asked in server.asked]
    assert "resuming after" in result.stderr
    assert alone(out) == LONG.encode()
    assert offsets.count("0") == 1, "the beginning was read once"


def test_a_killed_export_of_a_record_goes_on(archive: Archive, url: str, out: Path) -> None:
    killer = Killer(in_the_middle)
    words = ("record", LONG_ID, "-o", str(out))
    with bent(url, killer) as server:
        shell = archive.at(RUNG_URL=server.url)
        killer.run(shell, *words)
        shell.ok("export", *words)
        offsets = [asked_for(asked, "offset_chars") for asked in server.asked]
    assert json.loads(alone(out))["data"] == archive.data["long"]
    assert offsets.count("0") == 1


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_a_killed_export_of_a_stream_goes_on_with_its_next_page(
    archive: Archive, url: str, out: Path, form: str
) -> None:
    pages = []

    def third_page(asked: Asked) -> bool:
        pages.append(asked_for(asked, "cursor"))
        return len([cursor for cursor in pages if cursor]) == 2

    killer = Killer(third_page)
    words = ("stream", "notes", "--format", form, "-o", str(out))
    with bent(url, killer) as server:
        shell = archive.at(RUNG_URL=server.url)
        killer.run(shell, *words)
        assert kept(out)["state"]["records"] == 200
        shell.ok("export", *words)
    whole = out.with_name("whole")
    archive.shell.ok("export", *words[:-1], str(whole))
    written = out.read_bytes()
    assert written == whole.read_bytes() and written.count(b"\r\n" if form == "csv" else b"\n") > 0


def test_a_killed_export_of_a_blob_goes_on_by_range(archive: Archive, url: str, out: Path) -> None:
    words = ("blob", "scan", "-o", str(out))
    cut = len(BYTES) // 2

    def bend(asked: Asked, passed: Passed) -> Reply:
        reply = passed(asked)
        if asked.method != "GET" or asked.headers.get("range") != f"bytes=0-{len(BYTES) - 1}":
            return reply
        told = {"Content-Length": str(len(BYTES)), "Connection": "close"}
        return Reply(206, reply.body[:cut], {**reply.headers, **told})

    with bent(url, bend) as server:
        archive.at(RUNG_URL=server.url).ok("export", *words)
        ranges = [asked.headers.get("range") for asked in server.asked if asked.method == "GET"]
    assert alone(out) == BYTES
    assert ranges[-1] != ranges[0], "what was there was not fetched again"


def test_bytes_that_are_not_those_announced_are_thrown_away(
    archive: Archive, url: str, out: Path
) -> None:
    def bend(asked: Asked, passed: Passed) -> Reply:
        reply = passed(asked)
        wrong = b"x" * len(reply.body) if asked.method == "GET" else reply.body
        return Reply(reply.status, wrong, reply.headers)

    with bent(url, bend) as server:
        shell = archive.at(RUNG_URL=server.url)
        result = shell.run("export", "blob", "scan", "-o", str(out))
    assert result.exit_code == 1 and "SHA-256" in result.stderr
    assert not list(out.parent.iterdir())


def test_a_server_that_fails_for_a_moment_is_asked_again(
    archive: Archive, url: str, out: Path
) -> None:
    failures = iter([429, 503, 503, 503])

    def bend(asked: Asked, passed: Passed) -> Reply:
        status = next(failures, None) if at_half(asked) else None
        if status is None:
            return passed(asked)
        return Reply(status, b"", {"Retry-After": "0"})

    with bent(url, bend) as server:
        archive.at(RUNG_URL=server.url).ok("export", *FIELD, "-o", str(out))
    assert alone(out) == MIDDLE.encode() and next(failures, None) is None


def test_a_wait_that_is_too_long_ends_the_export_and_keeps_the_part(
    archive: Archive, url: str, out: Path
) -> None:
    seconds = int(BUDGETS.export_wait_seconds) + 1

    def bend(asked: Asked, passed: Passed) -> Reply:
        if at_half(asked):
            return Reply(429, b"", {"Retry-After": str(seconds)})
        return passed(asked)

    with bent(url, bend) as server:
        result = archive.at(RUNG_URL=server.url).run("export", *FIELD, "-o", str(out))
    assert result.exit_code == 1 and "to resume" in result.stderr
    assert kept(out)["state"]["chars"] == HALF


def test_a_changed_field_is_written_anew(tmp_path: Path) -> None:
    archive = Archive.small(tmp_path)
    out = tmp_path / "files" / "out"
    out.parent.mkdir()
    new = MIDDLE[:-1] + "!"
    with archive.served() as url:
        shell = halved(archive, url, out)
        archive.change(new)
        result = shell.ok("export", *FIELD, "-o", str(out))
        assert "Starting over" in result.stderr and alone(out) == new.encode()


def test_a_field_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    archive = Archive.small(tmp_path)
    out = tmp_path / "files" / "out"
    out.parent.mkdir()
    new = MIDDLE[5:] + "12345"

    def bend(asked: Asked, passed: Passed) -> Reply:
        if at_half(asked):
            archive.change(new)
        return passed(asked)

    with archive.served() as url, bent(url, bend) as server:
        result = archive.at(RUNG_URL=server.url).ok("export", *FIELD, "-o", str(out))
        assert "Starting over" in result.stderr and alone(out) == new.encode()


def test_what_went_into_a_pipe_cannot_be_taken_back(tmp_path: Path) -> None:
    archive = Archive.small(tmp_path)

    def bend(asked: Asked, passed: Passed) -> Reply:
        if at_half(asked):
            archive.change("short")
        return passed(asked)

    with archive.served() as url, bent(url, bend) as server:
        result = archive.at(RUNG_URL=server.url).run("export", *FIELD, "-o", "-")
    assert result.exit_code == 1 and "pipe" in result.stderr
    assert MIDDLE.encode().startswith(result.stdout_bytes)


def test_a_part_that_was_touched_is_not_gone_on_with(archive: Archive, url: str, out: Path) -> None:
    shell = halved(archive, url, out)
    with part(out).open("r+b") as file:
        file.write(b"other")
    result = shell.ok("export", *FIELD, "-o", str(out))
    assert "changed since the interruption" in result.stderr and alone(out) == MIDDLE.encode()


def test_a_part_of_another_export_is_kept_from_harm(archive: Archive, url: str, out: Path) -> None:
    shell = halved(archive, url, out)
    before = part(out).read_bytes()
    other = ("export", "field", LONG_ID, "tree", "-o", str(out))
    result = shell.run(*other)
    assert result.exit_code == 1 and "--restart" in result.stderr
    assert part(out).read_bytes() == before
    shell.ok(*other, "--restart")
    assert json.loads(alone(out)) == NESTED


def test_two_runs_do_not_write_one_file(archive: Archive, out: Path) -> None:
    with part(out).open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = archive.shell.run("export", *FIELD, "-o", str(out))
    assert result.exit_code == 1 and "Another process" in result.stderr and not out.exists()


def test_a_cursor_the_source_forgot_says_to_start_anew(
    archive: Archive, url: str, out: Path
) -> None:
    def bend(asked: Asked, passed: Passed) -> Reply:
        if not asked_for(asked, "cursor"):
            return passed(asked)
        told = {"error": {"code": "invalid_cursor", "message": "No.", "param": "cursor"}}
        return as_json(told, 400)

    words = ("export", "stream", "notes", "-o", str(out))
    shell = archive.at(RUNG_URL=url)
    with bent(url, bend) as server:
        first = shell.run(*words, "--url", server.url)
        assert first.exit_code == 2 and kept(out)["state"]["records"] == 100
        result = shell.run(*words, "--url", server.url)
        assert result.exit_code == 2 and "--restart" in result.stderr
    shell.ok(*words, "--restart")
    assert alone(out).count(b"\n") == NOTES + 3


def test_a_source_without_a_cursor_is_not_taken_for_whole(
    archive: Archive, url: str, out: Path
) -> None:
    def bend(asked: Asked, passed: Passed) -> Reply:
        reply = passed(asked)
        body = json.loads(reply.body)
        return as_json({**body, "next_cursor": None}) if body.get("next_cursor") else reply

    with bent(url, bend) as server:
        words = ("export", "stream", "notes", "-o", str(out))
        result = archive.at(RUNG_URL=server.url).run(*words)
    assert result.exit_code == 2 and "--connection-id" in result.stderr and not out.exists()


#: Prints by how many kilobytes the second export grows the process.
GROWTH = """
import resource, sys
from service.__main__ import rung
def peak(*words):
    rung(["export", *words], standalone_mode=False)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak("field", "home/notes:middle", "title", "-o", sys.argv[1] + ".title")
print(peak("field", "home/notes:middle", "text", "-o", sys.argv[1]) - before)
"""


def test_a_large_field_costs_little_memory(tmp_path: Path) -> None:
    archive, out = Archive.small(tmp_path), tmp_path / "big"
    archive.change("20 MB of text\n" * 1_500_000)
    # Started by a shell: a process begins with the peak of the one that starts it.
    words = (sys.executable, "-c", GROWTH, str(out))
    with archive.served() as url:
        environ = environment(**archive.at(RUNG_URL=url).environ)
        done = subprocess.run(
            ["sh", "-c", '"$@"; exit $?', "sh", *words],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env=environ,
        )
    assert out.stat().st_size == 21_000_000 and int(done.stdout) < 4_096
    for kind in (("record", MIDDLE_ID), ("stream", "notes"), ("stream", "notes", "--format=csv")):
        more = ("--force", "-o", str(out))
        assert peak_growth(lambda: archive.shell.ok("export", *kind, *more)) < 4 << 20, kind
        assert out.stat().st_size > 21_000_000


def test_a_terminal_shows_a_bar_and_gets_no_data(archive: Archive, out: Path) -> None:
    shown = archive.shell.terminal("export", *FIELD, "-o", str(out))
    assert "━" in shown and f"{len(MIDDLE):,} of {len(MIDDLE):,} characters" in shown
    refused = archive.shell.terminal("export", *FIELD, "-o", "-")
    assert "not write binary data to a terminal" in refused and "🌒" not in refused
