"""`rung export`: what is written is what was imported, from every kind of source."""

import csv
import hashlib
import json
from pathlib import Path

import orjson
import pytest
from click.testing import Result

from tests.helpers.archive import BASE64, BYTES, LONG, LONG_ID, NESTED, NOTES, Archive
from tests.helpers.shell import Shell

csv.field_size_limit(1 << 28)


@pytest.fixture(params=["store", "url", "provider"])
def shell(request: pytest.FixtureRequest, archive: Archive, url: str) -> Shell:
    """A shell for each kind of source; all answer alike."""
    if request.param == "store":
        return archive.shell
    return archive.at(**{{"url": "RUNG_URL", "provider": "RUNG_UPSTREAM_URL"}[request.param]: url})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A file to write; in the end nothing lies beside it."""
    return tmp_path / "out"


def alone(out: Path) -> bytes:
    """The bytes of a file beside which nothing was left."""
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return out.read_bytes()


def test_a_field_is_written_to_the_byte(shell: Shell, out: Path) -> None:
    result = shell.ok("export", "field", LONG_ID, "text", "-o", str(out))
    written = alone(out)
    assert written == LONG.encode() and result.stdout == ""
    assert hashlib.sha256(written).hexdigest() in result.stderr
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_field_inside_a_field_is_written_by_its_pointer(archive: Archive, out: Path) -> None:
    archive.shell.ok("export", "field", LONG_ID, "/tree/list/7/say", "-o", str(out))
    assert alone(out) == b'a "b"\n'


def test_a_field_that_is_no_text_is_written_as_json(archive: Archive, out: Path) -> None:
    archive.shell.ok("export", "field", LONG_ID, "tree", "-o", str(out))
    assert json.loads(alone(out)) == NESTED


def test_an_empty_field_makes_an_empty_file(archive: Archive, out: Path) -> None:
    archive.shell.ok("export", "field", "home/notes:n000", "text", "-o", str(out))
    assert alone(out) == b""


def test_a_record_is_written_with_all_its_values_whole(
    shell: Shell, archive: Archive, out: Path
) -> None:
    shell.ok("export", "record", LONG_ID, "-o", str(out))
    found = json.loads(alone(out))
    assert found["id"] == "long" and found["connection_id"] == "home"
    assert found["data"] == archive.data["long"]


def test_bytes_inside_a_record_are_whole_and_blobs_stay_references(
    archive: Archive, out: Path
) -> None:
    archive.shell.ok("export", "record", "home/notes:bytes", "-o", str(out))
    found = json.loads(alone(out))["data"]
    assert found["raw"] == BASE64 and found["file"]["blob_id"] == "scan"


def test_a_stream_is_written_one_record_a_line(shell: Shell, archive: Archive, out: Path) -> None:
    shell.ok("export", "stream", "notes", "-o", str(out))
    rows = [json.loads(line) for line in alone(out).decode().split("\n") if line]
    found = {row["id"]: row["data"] for row in rows}
    assert len(rows) == len(found) == NOTES + 3
    assert found.pop("bytes")["raw"] == BASE64
    assert found == {name: data for name, data in archive.data.items() if name != "bytes"}


def test_a_stream_as_csv_reads_back(shell: Shell, archive: Archive, out: Path) -> None:
    shell.ok("export", "stream", "notes", "--format", "csv", "-o", str(out))
    raw = alone(out)
    assert raw.startswith(b"id,connection_id,emitted_at,data.id,title,text,tree,file,raw,at\r\n")
    rows = list(csv.DictReader(raw.decode().splitlines(keepends=True)))
    assert len(rows) == NOTES + 3
    for row in rows:
        data = archive.data[row["data.id"]]
        assert row["id"] == f"home/notes:{row['data.id']}" and row["title"] == data["title"]
        assert row["text"] == data.get("text", "") and row["at"] == (data["at"] or "")
        assert (json.loads(row["tree"]) if row["tree"] else None) == data.get("tree")


def test_a_view_as_csv_has_the_columns_of_the_view(shell: Shell, out: Path) -> None:
    words = ("--view", "brief", "--format", "csv", "--filter", "id=n001", "-o", str(out))
    shell.ok("export", "stream", "notes", *words)
    head, row, _ = alone(out).split(b"\r\n")
    assert head == b"id,connection_id,emitted_at,title,at"
    assert row.startswith(b"home/notes:n001,home,") and b"Note 1" in row


def test_csv_tells_empty_text_from_no_value(archive: Archive, out: Path) -> None:
    target = out.with_suffix(".CSV")
    words = ("--fields", "title,text", "--filter", "id=bytes", "-o", str(target))
    archive.shell.ok("export", "stream", "notes", *words)
    line = target.read_bytes().split(b"\r\n")[1]
    assert line.endswith(b',"",')


def test_a_stream_is_narrowed_as_a_query_is(archive: Archive, out: Path) -> None:
    words = ("--filter", "at<2026-01-03T00:00:00Z", "--filter", "at>=2026-01-02T00:00:00Z")
    archive.shell.ok(
        "export", "stream", "notes", *words, "--sort", "at", "--fields", "at", "-o", str(out)
    )
    days = [json.loads(line)["data"] for line in out.read_text().splitlines()]
    assert [list(day) for day in days] == [["at"]] * 9 and days == sorted(days, key=str)


@pytest.mark.parametrize("named", [("scan",), ("home/notes:bytes", "file")])
def test_a_blob_is_written_by_its_id_or_its_field(
    shell: Shell, out: Path, named: tuple[str, ...]
) -> None:
    shell.ok("export", "blob", *named, "-o", str(out))
    assert alone(out) == BYTES


def test_bytes_that_stand_in_a_record_are_decoded(archive: Archive, out: Path) -> None:
    archive.shell.ok("export", "blob", "home/notes:bytes", "raw", "-o", str(out))
    assert alone(out) == bytes(range(16)) * 64


def test_a_pipe_gets_the_same_bytes(archive: Archive) -> None:
    command = f"rung export field {LONG_ID} text -o - | sha256sum"
    done = archive.shell.bash(command)
    assert done.stdout.split()[0] == hashlib.sha256(LONG.encode()).hexdigest(), done.stderr


def test_a_device_is_written_and_not_replaced(archive: Archive) -> None:
    archive.shell.ok("export", "field", "home/notes:n001", "text", "-o", "/dev/null")
    assert Path("/dev/null").is_char_device()


@pytest.mark.slow
def test_standard_output_has_several_names_and_none_is_replaced(
    archive: Archive, tmp_path: Path
) -> None:
    names = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-")
    words = "rung export field home/notes:n001 text --force -o"
    for name in names:
        done = archive.shell.bash(f"echo before > {tmp_path}/it; {words} {name} >> {tmp_path}/it")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "it").read_bytes() == b"before\nline\r\n"
    done = archive.shell.bash(f"{words} /dev/fd/7 7> {tmp_path}/other")
    assert (tmp_path / "other").read_bytes() == b"line\r\n", done.stderr
    assert Path("/dev/stdout").is_symlink() and not Path("/dev/stdout.part").exists()


def test_a_part_that_leads_elsewhere_is_not_followed(archive: Archive, tmp_path: Path) -> None:
    """Somebody else may have put it there, where others can write."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("out.part", "out.part.json.new"):
        link = tmp_path / name
        link.symlink_to(precious)
        result = archive.shell.run("export", "record", LONG_ID, "-o", str(tmp_path / "out"))
        assert result.exit_code == 1 and name in result.stderr, result.output
        assert precious.read_text() == "mine"
        link.unlink()


def test_a_file_that_is_there_stays_unless_forced(archive: Archive, out: Path) -> None:
    out.write_text("mine")
    words = ("export", "field", "home/notes:n001", "text", "-o", str(out))
    result = archive.shell.run(*words)
    assert result.exit_code == 1 and "--force" in result.stderr and alone(out) == b"mine"
    archive.shell.ok(*words, "--force")
    assert alone(out) == b"line\r\n"


def test_a_folder_is_no_file(archive: Archive, tmp_path: Path) -> None:
    result = archive.shell.run("export", "record", LONG_ID, "-o", str(tmp_path), "--force")
    assert result.exit_code == 1 and "folder" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "advice"),
    [
        (("record", "home/notes:nobody"), 5, "rung query"),
        (("field", LONG_ID, "nothing"), 4, "nothing"),
        (("field", LONG_ID), 2, "field_path"),
        (("field", "home/notes:bytes", "file"), 1, "rung export blob home/notes:bytes file"),
        (("blob", LONG_ID, "text"), 1, f"rung export field {LONG_ID} text"),
        (("blob", "nobody"), 5, "No such blob"),
        (("stream", "nobody"), 4, "nobody"),
        (("stream", "notes", "--filter", "title=x"), 2, "title"),
        (("stream", "notes", "--limit", "3"), 2, "--limit"),
        (("stream", "notes", "--view", "short", "--format", "csv"), 2, "no view"),
    ],
)
def test_what_cannot_be_exported_says_why_and_leaves_nothing(
    shell: Shell, out: Path, words: tuple[str, ...], code: int, advice: str
) -> None:
    result = shell.run("export", *words, "-o", str(out))
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert advice in result.stderr
    assert not list(out.parent.iterdir())


def test_a_wrong_token_leaves_with_3(shell: Shell, out: Path) -> None:
    result: Result = shell.run("export", "record", LONG_ID, "-o", str(out), "--token", "wrong")
    assert result.exit_code == 3 and not list(out.parent.iterdir())


def test_lines_can_be_imported_again(archive: Archive, tmp_path: Path) -> None:
    """As the how-to says: a line holds what `rung import` takes, under other names."""
    shell = archive.shell
    shell.ok("export", "stream", "notes", "--fields", "title,at", "-o", str(tmp_path / "a.ndjson"))
    rows = map(orjson.loads, (tmp_path / "a.ndjson").read_bytes().splitlines())
    kept = [{"key": row["id"], "data": row["data"]} for row in rows]
    (tmp_path / "notes.ndjson").write_bytes(b"\n".join(map(orjson.dumps, kept)))
    again = Shell({"RUNG_STORE": str(tmp_path / "new.db")})
    result = again.ok("import", str(tmp_path / "notes.ndjson"), "--connection", "copy")
    assert f"{NOTES + 3} new" in result.stderr
