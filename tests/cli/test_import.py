import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from service.access.grants import find
from service.access.registry import Registry
from service.records.sqlite.writer import open_writer
from tests.helpers.shell import Shell

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


def test_a_new_stream_is_shown_in_a_few_lines(home: Path) -> None:
    first = bring("mail.ndjson").stderr
    assert "New stream 'mail': 3 fields, id: id; primary-title title." in first
    assert len(first.splitlines()) <= 5
    assert "New stream" not in bring("mail.ndjson").stderr


def test_a_dry_run_shows_fields_types_roles_and_samples_and_leaves_no_trace(home: Path) -> None:
    (home / "t.csv").write_text("id,price,on,odd\n1,1.10,3.4.2026,3/4/26\n2,9.5,5.4.2026,4/5/26\n")
    shown = run("import", "t.csv", "mail.ndjson", "--dry-run").stderr
    assert "Importing into the connection 't'" in shown and "t.csv is read as csv." in shown
    assert re.search(r"price +decimal +searched +'1.10'", shown)
    assert re.search(r"on +day-first +event-time +'3.4.2026'", shown)
    assert "odd stays text, because '3/4/26' may begin with the day or with the month" in shown
    assert "t: 32 new" in shown and "Nothing was imported (--dry-run)." in shown
    assert not (home / "store").exists()
    bring("mail.ndjson")
    assert run("import", "t.csv", "--dry-run").exit_code == 0
    assert count(home) == 30


def test_a_dry_run_of_mail_shows_its_streams(home: Path) -> None:
    mail = "From ada Mon Mar  2 08:00:00 2026\nSubject: Elm\nMessage-ID: <1@x>\n\nIn bloom.\n"
    (home / "mail.mbox").write_text(mail)
    shown = run("import", "mail.mbox", "--dry-run").stderr
    assert "mail.mbox is read as mbox." in shown and "New stream 'messages': " in shown
    assert re.search(r"subject +string +primary-title +'Elm'", shown)


def test_roles_are_proposed_unless_nobody_wants_them(home: Path) -> None:
    plain = bring("mail.ndjson", "--no-roles")
    assert "primary-title" not in plain.stderr
    assert "c/mail has a role" in run("stats").stderr
    bring("mail.ndjson", "--stream", "again")
    assert "again" not in run("stats").stderr


def test_bad_lines_are_named_and_the_rest_goes_in(home: Path) -> None:
    bad = '{"id": ""}\nnonsense\n{"title": "no id"}\n'
    (home / "bad.ndjson").write_text(bad, encoding="utf-8")
    bring("mail.ndjson", "--stream", "s")
    result = bring("bad.ndjson", "mail.ndjson", "--stream", "s")
    assert result.exit_code == 3
    assert "bad.ndjson line 1: '' is not a valid record id" in result.stderr
    assert "line 2: This line is not JSON" in result.stderr
    assert "line 3: The primary key field 'id' is missing" in result.stderr
    assert "30 unchanged, 0 deleted, 3 refused" in result.stderr
    assert "not in the store: 3 of 33." in result.stderr


def test_the_first_twenty_bad_lines_are_listed_with_the_total(home: Path) -> None:
    (home / "bad.ndjson").write_text("x\n" * 50, encoding="utf-8")
    result = bring("bad.ndjson")
    assert result.stderr.count("not JSON") == 20
    assert "and 30 more refused rows" in result.stderr


def test_strict_imports_nothing_when_a_row_is_refused(home: Path) -> None:
    write(home / "mixed.ndjson", [*ROWS, "not an object"])
    result = bring("mixed.ndjson", "--strict")
    assert result.exit_code == 1
    assert "line 31" in result.stderr and "Nothing was imported" in result.stderr
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
    assert "2 fields cannot be read without a manifest entry: folder, id" in result.stderr
    with open_writer(home / "store/rung.db") as writer:
        keys = [row[0] for row in writer.db.execute("SELECT record_key FROM record ORDER BY seq")]
    assert keys[0] == "Message number 0"


def test_rows_without_a_key_are_known_by_their_content(home: Path) -> None:
    write(home / "log.ndjson", [{"said": "hello there"}, {"said": "good bye"}])
    for counted in ("2 new", "2 unchanged"):
        result = bring("log.ndjson")
        assert counted in result.stderr
        assert "log has no id field, so the whole row is the id" in result.stderr
        assert "--key FIELD" in result.stderr
    assert "no id field" not in bring("mail.ndjson").stderr


def test_rows_with_a_key_of_their_own_need_no_id_field(home: Path) -> None:
    write(home / "log.ndjson", [{"key": "a", "data": {"said": "hello"}}])
    assert "no id field" not in bring("log.ndjson").stderr


def test_a_table_without_an_id_column_is_brought_up_to_date_by_the_key_it_is_given(
    home: Path,
) -> None:
    (home / "t.csv").write_text("isbn,title\n978a,Dune\n978b,Emma\n", encoding="utf-8")
    first = bring("t.csv", "--key", "isbn")
    assert "2 new" in first.stderr and "no id field" not in first.stderr
    (home / "t.csv").write_text("isbn,title\n978a,Dune\n978b,Persuasion\n", encoding="utf-8")
    assert "0 new, 1 changed, 1 unchanged" in bring("t.csv").stderr
    assert "2 unchanged" in bring("t.csv", "--key", "isbn").stderr
    assert count(home) == 2


def test_several_keys_make_one_id(home: Path) -> None:
    rows = [{"year": year, "no": no} for year in (2025, 2026) for no in (1, 2)]
    write(home / "log.ndjson", rows)
    assert "4 new" in bring("log.ndjson", "--key", "year", "--key", "no").stderr
    with open_writer(home / "store/rung.db") as writer:
        keys = [row[0] for row in writer.db.execute("SELECT record_key FROM record ORDER BY seq")]
    assert keys[0] == '["2025","1"]'


@pytest.mark.parametrize(
    ("key", "advice"),
    [("titel", "Did you mean 'title'?"), ("zz", "Its fields: folder, id, title.")],
)
def test_a_key_that_no_row_has_is_refused_before_anything_goes_in(
    home: Path, key: str, advice: str
) -> None:
    result = bring("mail.ndjson", "--key", key)
    assert result.exit_code == 1 and advice in result.stderr
    assert count(home) == 0


def test_the_key_of_a_stream_that_is_there_stays(home: Path) -> None:
    bring("mail.ndjson")
    result = bring("mail.ndjson", "--key", "title")
    assert result.exit_code == 1
    assert "identified by id" in result.stderr and "--stream NAME" in result.stderr
    assert "30 new" in bring("mail.ndjson", "--key", "title", "--stream", "other").stderr


def test_the_manifest_that_is_written_can_be_given_back(home: Path) -> None:
    write(home / "log.ndjson", [{"id": "a", "said": "hello there"}])
    bring("mail.ndjson", "log.ndjson", "--write-manifest", "m.json")
    manifest = json.loads((home / "m.json").read_text(encoding="utf-8"))
    assert [stream["name"] for stream in manifest["streams"]] == ["log", "mail"]
    assert "30 unchanged" in bring("mail.ndjson", "--manifest", "m.json").stderr
    fresh = run("import", "mail.ndjson", "--connection", "d", "--manifest", "m.json")
    assert "30 new" in fresh.stderr and "New stream" not in fresh.stderr


def test_the_manifest_is_written_to_a_new_file_and_given_back(home: Path) -> None:
    first = bring("mail.ndjson", "--write-manifest", "m.json")
    assert "m.json" in first.stderr and '"streams"' not in first.stderr
    manifest = json.loads((home / "m.json").read_text(encoding="utf-8"))
    manifest["streams"][0]["schema"]["properties"]["title"]["x_pdpp_role"] = "primary-title"
    (home / "m.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert bring("mail.ndjson", "--manifest", "m.json").exit_code == 0
    assert bring("mail.ndjson", "--write-manifest", "again.json").exit_code == 0
    assert json.loads((home / "again.json").read_text(encoding="utf-8")) == manifest
    refused = bring("mail.ndjson", "--write-manifest", "m.json")
    assert refused.exit_code == 1 and "already" in refused.stderr
    assert json.loads((home / "m.json").read_text(encoding="utf-8")) == manifest


def test_an_import_that_takes_nothing_of_what_there_is_fails(home: Path) -> None:
    (home / "bad.ndjson").write_text("x\n" * 3, encoding="utf-8")
    result = bring("bad.ndjson")
    assert result.exit_code == 1 and "Refused rows: 3." in result.stderr


def test_an_import_of_files_without_rows_names_them(home: Path) -> None:
    (home / "empty.ndjson").touch()
    (home / "header.csv").write_text("id,title\n", encoding="utf-8")
    result = bring("empty.ndjson", "header.csv", "mail.ndjson")
    assert result.exit_code == 0 and "mail.ndjson has no rows" not in result.stderr
    for name in ("empty.ndjson", "header.csv"):
        assert f"{name} has no rows, so nothing was imported from it." in result.stderr


def test_short_words_of_a_table_are_found_and_grouped_by(home: Path) -> None:
    (home / "t.csv").write_text("id,title,kind\n1,Dune,novel\n2,Emma,classic\n", "utf-8")
    bring("t.csv")
    token = run("grant", "create").stdout.strip()
    asked = {"RUNG_TOKEN": token, "RUNG_STORE": str(home / "store/rung.db")}
    shell = Shell(asked)
    assert "all=1 some=1 complete=true" in shell.ok("search", "emma").stdout
    assert "classic" in shell.ok("aggregate", "t", "count", "--group-by", "kind").stdout


def test_a_broken_manifest_names_the_place(home: Path) -> None:
    (home / "m.json").write_text('{"streams": [{"name": ""}]}', encoding="utf-8")
    result = bring("mail.ndjson", "--manifest", "m.json")
    assert result.exit_code == 1
    assert "manifest.streams[0].name" in result.stderr


@pytest.mark.parametrize("connection", ["", ".", "x" * 257])
def test_a_connection_id_that_cannot_be_one_is_refused(home: Path, connection: str) -> None:
    result = run("import", "mail.ndjson", "--connection", connection)
    assert result.exit_code == 1
    assert "is not a valid connection id" in result.stderr


def test_files_that_cannot_be_read_exit_with_advice(home: Path) -> None:
    assert bring("nothing.ndjson").exit_code == 1
    (home / "mail.xyz").touch()
    assert "--format" in bring("mail.xyz").stderr
    assert run("import", "-", stdin=b"{}").exit_code == 1


def test_several_formats_go_into_one_connection(home: Path) -> None:
    (home / "t.csv").write_text("id,name\n1,Ada\n2,Noor\n", encoding="utf-8")
    (home / "t.json").write_text('{"rows": [{"id": "x"}]}', encoding="utf-8")
    mail = "From a@b Thu Jan  1 00:00:00 2026\nMessage-ID: <a@b>\nSubject: Hi\n\nbody\n"
    (home / "in.mbox").write_text(mail, encoding="utf-8")
    assert "4 new" in bring("t.csv", "t.json", "in.mbox").stderr
    shown = run("stats").stdout
    assert "c/messages: 1 record," in shown and "c/attachments: 0 records" in shown


def test_a_grant_prints_its_token_once_and_works_until_revoked(home: Path) -> None:
    bring("mail.ndjson")
    made = run("grant", "create", "--connection", "c", "--fields", "id,title", "--label", "pc")
    token = made.stdout.strip()
    assert "not shown again" in made.stderr
    with open_writer(home / "store/rung.db") as writer:
        (stream,) = find(Registry(writer), token).streams
    assert (stream.stream, stream.fields) == ("mail", ("id", "title"))
    listed = run("grant", "list")
    assert "active 'pc'" in listed.stdout and token not in listed.stdout
    assert run("grant", "revoke", "pc").exit_code == 0
    assert "revoked 'pc'" in run("grant", "list").stdout
    assert run("grant", "revoke", "pc").exit_code == 1


@pytest.mark.parametrize(
    ("name", "advice"),
    [("titel", "Did you mean 'title'?"), ("zz", "Available: folder, id, title.")],
)
def test_a_field_that_is_not_there_is_answered_with_those_that_are(
    home: Path, name: str, advice: str
) -> None:
    bring("mail.ndjson")
    for words in ((), ("--stream", "mail"), ("--connection", "c")):
        result = run("grant", "create", *words, "--fields", f"id,{name}")
        assert result.exit_code == 1
        assert repr(name) in result.stderr and advice in result.stderr


def test_every_option_of_import_and_grant_create_has_a_help_text() -> None:
    for words in (("import",), ("grant", "create")):
        shown = run(*words, "--help").stdout
        missing = re.findall(r"^  (--\S+)(?: \S+)?\n  -", shown, re.MULTILINE)
        assert missing == []


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


def test_names_in_a_file_do_not_control_the_terminal_of_its_importer(tmp_path: Path) -> None:
    odd = "x\x1b]0;owned\x07\x9b31m\u202e"
    manifest = {"name": "mail", "primary_key": ["id"], "schema": {"properties": {"id": {}}}}
    (tmp_path / "mail.json").write_text(json.dumps(manifest))
    write(tmp_path / "mail.ndjson", [{"id": "a", odd: 1}])
    shell = Shell({"RUNG_STORE": str(tmp_path / "rung.db"), "TERM": "dumb"})
    words = ("import", str(tmp_path / "mail.ndjson"), "--connection", "c")
    shown = shell.terminals(words, (*words, "--manifest", str(tmp_path / "mail.json")))
    assert "1 new" in shown and "owned" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
