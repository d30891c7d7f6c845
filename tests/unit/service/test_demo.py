import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pytest
from click.testing import CliRunner

from evidence.text import unmark
from service.__main__ import rung
from service.demo.fill import ARCHIVE, CONNECTIONS, VERSION, manifest, questions
from service.records.sqlite.transactions import INDEXES
from service.access.grants import find
from service.access.registry import Registry
from evidence.manifest import parse
from service.records.sqlite.writer import open_writer
from tests.demo_life.rows import files
from tests.helpers.notes import contents

#: Fields that name a record of a stream of the same connection.
LINKS = {
    "thread_id": "threads",
    "message_id": "messages",
    "channel": "channels",
    "reply_to": "messages",
}


#: The rows of each file, and those of the first import into each connection.
FILES = dict(files())
FIRST = {name: rows for name, rows in FILES.items() if name.endswith("/1.ndjson")}


def every() -> Iterator[dict[str, Any]]:
    """The data of all rows of the first imports."""
    return (row["data"] for rows in FIRST.values() for row in rows)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "rung.db"
    assert "records" in demo(path)
    return path


def demo(store: Path) -> str:
    result = CliRunner().invoke(rung, ["demo", "--store", str(store)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_demo_is_what_its_files_give() -> None:
    with ZipFile(ARCHIVE) as archive:
        packed = {name: archive.read(name).splitlines() for name in archive.namelist()}
    assert {name: [orjson.loads(line) for line in lines] for name, lines in packed.items()} == FILES


def test_the_demo_has_the_breadth_it_promises() -> None:
    assert len(CONNECTIONS) == 6
    assert 400 <= sum(map(len, FIRST.values())) <= 700
    languages = {data.get("language") for data in every()}
    assert {"en", "de", "fr", "ja", "zh", "ar"} <= languages
    manifests = [manifest(connector) for _, connector, _ in CONNECTIONS]
    assert sum(each["streams"][0]["name"] == "messages" for each in manifests) == 3
    for each in manifests:
        assert all(stream.fields for stream in parse(each))


def test_several_fields_are_large() -> None:
    texts = [value for data in every() for value in data.values() if isinstance(value, str)]
    assert sum(len(text) >= 200_000 for text in texts) >= 3


def test_what_records_say_of_each_other_is_so() -> None:
    """Replies, threads, attachments and channels name records; threads count their mails."""
    for all_rows in FIRST.values():
        rows = [(row["stream"], row["data"]) for row in all_rows if row["key"] != "m_draft"]
        ids = {(stream, data["id"]) for stream, data in rows}
        assert len(ids) == len(rows)
        for stream, data in rows:
            for name in LINKS.keys() & data.keys():
                assert (LINKS[name], data[name]) in ids, data
            if stream == "threads":
                mails = [mail for _, mail in rows if mail.get("thread_id") == data["id"]]
                assert len(mails) == data["messages"]
                assert max(mail["received_at"] for mail in mails) == data["last_at"]
            if stream == "messages" and "size" in data:
                assert data["size"] == len(data["body"].encode())


@pytest.mark.parametrize("payee", ["Ulmenhof eG", "Elektro Harms", "Radhaus Altona", "Elbstrom"])
def test_what_the_bank_paid_is_what_a_mail_asked_for(payee: str) -> None:
    rows = list(every())
    bodies = [row["body"] for row in rows if "body" in row]
    amounts = {abs(row["amount"]) for row in rows if row.get("payee") == payee}
    assert amounts
    for amount in amounts:
        spelled = (f"{amount:,.2f} euros", f"{amount:,.0f} euros")
        assert any(one in body for one in spelled for body in bodies), amount


def test_each_answer_occurs_once_in_its_field() -> None:
    records = {
        f"{name.partition('/')[0]}/{row['stream']}:{row['key']}": row["data"]
        for name, rows in FILES.items()
        for row in rows
        if row.get("op") != "delete"
    }
    assert len(questions()) >= 12
    for one in questions():
        assert records[one.id][one.field].count(one.answer) == 1, one


def test_an_older_demo_is_replaced_and_its_token_stays(tmp_path: Path) -> None:
    path, note = tmp_path / "rung.db", tmp_path / "note.ndjson"
    token = demo(path).split()[-1]
    note.write_text('{"id": "old", "title": "Old", "text": "A note of the older demo."}\n')
    words = ["import", str(note), "--connection", "notes", "--stream", "notes"]
    assert CliRunner().invoke(rung, [*words, "--store", str(path)]).exit_code == 0
    with open_writer(path) as writer, writer.transaction():
        writer.set_meta("demo", str(writer.meta("demo")).replace(VERSION, "1", 1))
    assert "old" in keys(path)
    assert demo(path).split()[-1] == token
    assert "old" not in keys(path) and "flat" in keys(path)


def keys(store: Path) -> set[str]:
    with open_writer(store) as writer:
        return {
            row[0] for row in writer.db.execute("SELECT record_key FROM record WHERE NOT deleted")
        }


def test_ten_questions_are_asked_and_each_is_answered_with_evidence(store: Path) -> None:
    result = CliRunner().invoke(rung, ["demo", "ask", "--store", str(store)])
    assert result.exit_code == 0, result.output
    for one in questions()[:10]:
        _, _, rest = result.stdout.partition(f"\n{one.question}\n")
        shown = unmark(rest.partition("\nsearch query=")[0] or rest)
        assert f"\n1 {one.id} " in rest and one.answer in shown.split("\n\n1 ")[0]


def test_a_question_of_ones_own_is_asked_instead(store: Path) -> None:
    words = ["demo", "ask", "--store", str(store), "which hotel do I have", "in Tokyo"]
    result = CliRunner().invoke(rung, words)
    assert result.stdout.count("search query=") == 1 and "Hotel Kanda Terrace" in unmark(
        result.stdout
    )
    missing = CliRunner().invoke(rung, ["demo", "ask", "--store", str(store.parent / "none")])
    assert missing.exit_code and "rung demo" in missing.stderr


def test_a_second_run_changes_nothing_and_gives_the_same_token(store: Path) -> None:
    with open_writer(store) as writer:
        before = contents(writer)
    first, second = demo(store), demo(store)
    assert first == second
    with open_writer(store) as writer:
        assert contents(writer) == before


def test_the_token_reads_everything_and_is_kept_privately(store: Path) -> None:
    kept = store.parent / "demo-token"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    token = kept.read_text(encoding="utf-8").strip()
    assert f"token {token}\n" in demo(store)
    with open_writer(store) as writer:
        granted = find(Registry(writer), token)
        (streams,) = writer.db.execute("SELECT count(*) FROM stream").fetchone()
    assert granted.label == "demo"
    assert len(granted.streams) == streams == 11


def test_a_lost_or_revoked_token_is_replaced(store: Path) -> None:
    kept = store.parent / "demo-token"
    lost = kept.read_text(encoding="utf-8")
    kept.unlink()
    assert lost not in demo(store)
    CliRunner().invoke(rung, ["grant", "revoke", "demo", "--store", str(store)])
    shown = demo(store)
    assert kept.read_text(encoding="utf-8") in shown


def test_the_store_of_the_demo_is_sound(store: Path) -> None:
    with open_writer(store) as writer:
        for table in INDEXES:
            writer.db.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
        blobs = writer.db.execute("SELECT DISTINCT media_type FROM blob_use ORDER BY 1").fetchall()
        deleted = writer.db.execute("SELECT count(*) FROM tombstone").fetchone()
    assert {"日記/2026-05-01", 'path/to note: "draft" #1', "two  spaces", "%2F"} <= keys(store)
    assert [row[0] for row in blobs] == ["application/pdf", "image/png", "text/plain"]
    assert deleted == (2,)
