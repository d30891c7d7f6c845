import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from service.upstreams.store.grants import find
from service.upstreams.store.writer import open_writer

ROWS = [{"id": f"m{n}", "title": f"Message number {n}", "folder": "in"} for n in range(30)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with mail.ndjson, which is also where the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNG_STORE", "store/rung.db")
    write(tmp_path / "mail.ndjson", ROWS)
    return tmp_path


def write(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def run(*words: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(rung, words, input=stdin)


def bring(*words: str, stdin: bytes | None = None) -> Result:
    return run("import", *words, "--connection", "c", stdin=stdin)


def count(home: Path) -> int:
    with open_writer(home / "store/rung.db") as writer:
        found = writer.db.execute("SELECT count(*) FROM record WHERE deleted = 0").fetchone()
    return int(found[0])


def test_importing_again_updates_and_never_doubles(home: Path) -> None:
    assert "30 new, 0 changed, 0 unchanged" in bring("mail.ndjson").stderr
    changed = [{**ROWS[0], "title": "Another one"}, *ROWS[1:]]
    write(home / "mail.ndjson", [*changed, {"key": "m29", "op": "delete"}])
    again = bring("mail.ndjson")
    assert "0 new, 1 changed, 28 unchanged, 1 deleted, 0 refused, 1 repeated" in again.stderr
    assert again.stdout == ""
    assert count(home) == 29


def test_a_new_stream_shows_the_manifest_it_is_given(home: Path) -> None:
    first = bring("mail.ndjson")
    assert "Inferred a manifest for 'mail'" in first.stderr
    assert '"lexical_fields"' in first.stderr
    assert "x_pdpp_role" not in first.stderr
    assert "Inferred" not in bring("mail.ndjson").stderr


def test_roles_are_proposed_only_when_asked_for(home: Path) -> None:
    assert '"x_pdpp_role": "primary-title"' in bring("mail.ndjson", "--suggest-roles").stderr


def test_bad_lines_are_named_and_the_rest_goes_in(home: Path) -> None:
    bad = '{"id": "a\\u0000"}\nnonsense\n{"title": "no id"}\n'
    (home / "bad.ndjson").write_text(bad, encoding="utf-8")
    bring("mail.ndjson", "--stream", "s")
    result = bring("bad.ndjson", "mail.ndjson", "--stream", "s")
    assert result.exit_code == 0
    assert "line 1: The line holds a NUL" in result.stderr
    assert "line 2: This line is not JSON" in result.stderr
    assert "line 3: The primary key field 'id' is missing" in result.stderr
    assert "30 unchanged, 0 deleted, 3 refused" in result.stderr


def test_the_first_twenty_bad_lines_are_listed_with_the_total(home: Path) -> None:
    (home / "bad.ndjson").write_text("x\n" * 50, encoding="utf-8")
    result = bring("bad.ndjson")
    assert result.stderr.count("not JSON") == 20
    assert "and 30 more refused rows" in result.stderr


def test_strict_imports_nothing_when_a_row_is_refused(home: Path) -> None:
    write(home / "mixed.ndjson", [*ROWS, "not an object"])
    result = bring("mixed.ndjson", "--strict")
    assert result.exit_code == 1
    assert "line 31" in result.stderr and "nothing was imported" in result.stderr
    with open_writer(home / "store/rung.db") as writer:
        assert writer.db.execute("SELECT count(*) FROM connection").fetchone() == (0,)
    assert bring("mail.ndjson", "--strict").exit_code == 0


def test_standard_input_needs_a_stream(home: Path) -> None:
    line = b'{"id": "a"}\n'
    assert "--stream NAME" in bring("-", stdin=line).stderr
    assert "1 new" in bring("-", "--stream", "s", stdin=line).stderr
    assert "1 new" in bring("-", stdin=b'{"key": "b", "data": {"id": "b"}, "stream": "s"}').stderr


def test_a_manifest_of_ones_own_is_used(home: Path) -> None:
    manifest = {
        "streams": [
            {
                "name": "mail",
                "primary_key": ["title"],
                "schema": {"properties": {"title": {"type": "string"}}},
            }
        ]
    }
    (home / "m.json").write_text(json.dumps(manifest), encoding="utf-8")
    result = bring("mail.ndjson", "--manifest", "m.json")
    assert "Inferred" not in result.stderr
    assert "2 fields are not in the manifest and cannot be read: folder, id" in result.stderr
    with open_writer(home / "store/rung.db") as writer:
        keys = [row[0] for row in writer.db.execute("SELECT record_key FROM record ORDER BY seq")]
    assert keys[0] == "Message number 0"


def test_rows_without_a_key_are_known_by_their_content(home: Path) -> None:
    write(home / "log.ndjson", [{"said": "hello there"}, {"said": "good bye"}])
    assert "known by a hash" in bring("log.ndjson").stderr
    assert "2 unchanged" in bring("log.ndjson").stderr


def test_a_broken_manifest_names_the_place(home: Path) -> None:
    (home / "m.json").write_text('{"streams": [{"name": ""}]}', encoding="utf-8")
    result = bring("mail.ndjson", "--manifest", "m.json")
    assert result.exit_code == 1
    assert "manifest.streams[0].name" in result.stderr


@pytest.mark.parametrize("connection", ["", ".", "x" * 257])
def test_a_connection_id_that_cannot_be_one_is_refused(home: Path, connection: str) -> None:
    result = run("import", "mail.ndjson", "--connection", connection)
    assert result.exit_code == 1
    assert "cannot identify a connection" in result.stderr


def test_files_that_cannot_be_read_exit_with_advice(home: Path) -> None:
    assert bring("nothing.ndjson").exit_code == 1
    (home / "mail.xyz").touch()
    assert "--format" in bring("mail.xyz").stderr
    assert run("import", "mail.ndjson").exit_code == 2


def test_several_formats_go_into_one_connection(home: Path) -> None:
    (home / "t.csv").write_text("id,name\n1,Ada\n2,Noor\n", encoding="utf-8")
    (home / "t.json").write_text('{"rows": [{"id": "x"}]}', encoding="utf-8")
    mail = "From a@b Thu Jan  1 00:00:00 2026\nMessage-ID: <a@b>\nSubject: Hi\n\nbody\n"
    (home / "in.mbox").write_text(mail, encoding="utf-8")
    assert "4 new" in bring("t.csv", "t.json", "in.mbox").stderr
    shown = run("stats").stdout
    assert "c/messages: 1 records" in shown and "c/attachments: 0 records" in shown


def test_a_grant_prints_its_token_once_and_works_until_revoked(home: Path) -> None:
    bring("mail.ndjson")
    made = run("grant", "create", "--connection", "c", "--fields", "id,title", "--label", "pc")
    token = made.stdout.strip()
    assert "not shown again" in made.stderr
    with open_writer(home / "store/rung.db") as writer:
        (stream,) = find(writer.db, token).streams
    assert (stream.stream, stream.fields) == ("mail", ("id", "title"))
    listed = run("grant", "list")
    assert "active 'pc'" in listed.stdout and token not in listed.stdout
    assert run("grant", "revoke", "pc").exit_code == 0
    assert "revoked 'pc'" in run("grant", "list").stdout
    assert run("grant", "revoke", "pc").exit_code == 1


def test_a_grant_can_come_from_a_file(home: Path) -> None:
    bring("mail.ndjson")
    document = {"streams": [{"connection_id": "c", "stream": "mail", "resources": ["m1"]}]}
    (home / "g.json").write_text(json.dumps(document), encoding="utf-8")
    made = json.loads(
        run("grant", "create", "--file", "g.json", "--expires", "30d", "--json").stdout
    )
    assert made["token"].startswith("rung_")
    assert made["expires_at"].endswith("Z")
    assert run("grant", "create", "--file", "g.json", "--stream", "mail").exit_code == 2


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("--connection", "d"), "not in the store"),
        (("--stream", "male"), "'male'"),
        (("--fields", "body"), "'body'"),
        (("--expires", "soon"), "30d"),
        (("--since", "2026-01-01"), "no time field"),
    ],
)
def test_a_grant_that_cannot_be_made_says_why(
    home: Path, words: tuple[str, ...], advice: str
) -> None:
    bring("mail.ndjson")
    result = run("grant", "create", *words)
    assert result.exit_code == 1
    assert advice in result.stderr
    assert result.stdout == ""


def test_looking_at_no_store_makes_none(home: Path) -> None:
    result = run("stats")
    assert result.exit_code == 1
    assert "rung import" in result.stderr
    assert not (home / "store").exists()


def test_the_command_runs_as_a_module(home: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "service", "import", "-", "--connection", "c", "--stream", "s"],
        input=b'{"id": "a", "text": "hello"}\n',
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"1 new" in done.stderr


@pytest.mark.parametrize("name", ["nowhere.csv", "mail.strange"])
def test_a_file_that_cannot_be_read_leaves_no_trace_of_its_connection(
    home: Path, name: str
) -> None:
    bring("mail.ndjson")
    (home / "mail.strange").write_text("x", encoding="utf-8")
    assert run("import", name, "--connection", "other").exit_code == 1
    assert run("grant", "create").exit_code == 0
