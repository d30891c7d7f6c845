import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from evidence.text import unmark
from service.__main__ import rung
from service.demo.fill import VERSION
from service.demo.year import build, questions
from service.records.sqlite import checkup
from service.access.grants import find
from service.access.registry import Registry
from service.records.manifest import parse
from service.records.sqlite.writer import open_writer

#: Fields that name a record of a stream of the same connection.
LINKS = {
    "thread_id": "threads",
    "message_id": "messages",
    "channel": "channels",
    "reply_to": "messages",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "rung.db"
    assert "records" in demo(path)
    return path


def demo(store: Path) -> str:
    result = CliRunner().invoke(rung, ["demo", "--store", str(store)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_demo_is_the_same_every_time() -> None:
    assert list(build()) == list(build())


def test_the_demo_has_the_breadth_it_promises() -> None:
    connections = list(build())
    rows = [row for connection in connections for row in connection.rows]
    assert len(connections) == 6
    assert 400 <= len(rows) <= 700
    languages = {row.data.get("language") for row in rows}
    assert {"en", "de", "fr", "ja", "zh", "ar"} <= languages
    assert sum(c.manifest["streams"][0]["name"] == "messages" for c in connections) == 3
    for connection in connections:
        assert all(stream.fields for stream in parse(connection.manifest))


def test_several_fields_are_large() -> None:
    texts = [v for c in build() for r in c.rows for v in r.data.values() if isinstance(v, str)]
    assert sum(len(text) >= 200_000 for text in texts) >= 3


def test_what_records_say_of_each_other_is_so() -> None:
    """Replies, threads, attachments and channels name records; threads count their mails."""
    for connection in build():
        rows = [row for row in connection.rows if row.data["id"] != "m_draft"]
        ids = {(row.stream, row.data["id"]) for row in rows}
        assert len(ids) == len(rows)
        for row in rows:
            for name in LINKS.keys() & row.data.keys():
                assert (LINKS[name], row.data[name]) in ids, row.data
            if row.stream == "threads":
                mails = [one.data for one in rows if one.data.get("thread_id") == row.data["id"]]
                assert len(mails) == row.data["messages"]
                assert max(mail["received_at"] for mail in mails) == row.data["last_at"]
            if row.stream == "messages" and "size" in row.data:
                assert row.data["size"] == len(row.data["body"].encode())


@pytest.mark.parametrize("payee", ["Ulmenhof eG", "Elektro Harms", "Radhaus Altona", "Elbstrom"])
def test_what_the_bank_paid_is_what_a_mail_asked_for(payee: str) -> None:
    rows = [row.data for connection in build() for row in connection.rows]
    bodies = [row["body"] for row in rows if "body" in row]
    amounts = {abs(row["amount"]) for row in rows if row.get("payee") == payee}
    assert amounts
    for amount in amounts:
        spelled = (f"{amount:,.2f} euros", f"{amount:,.0f} euros")
        assert any(one in body for one in spelled for body in bodies), amount


def test_each_answer_occurs_once_in_its_field() -> None:
    records = {
        f"{c.connection_id}/{r.stream}:{r.key}": r.data
        for c in build()
        for r in (*c.rows, *c.later)
        if not r.deleted
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
        before = list(writer.db.iterdump())
    first, second = demo(store), demo(store)
    assert first == second
    with open_writer(store) as writer:
        assert list(writer.db.iterdump()) == before


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
        for table in checkup.TABLES:
            writer.db.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
        blobs = writer.db.execute("SELECT DISTINCT media_type FROM blob ORDER BY 1").fetchall()
        deleted = writer.db.execute("SELECT count(*) FROM tombstone").fetchone()
    assert {"日記/2026-05-01", 'path/to note: "draft" #1', "two  spaces", "%2F"} <= keys(store)
    assert [row[0] for row in blobs] == ["application/pdf", "image/png", "text/plain"]
    assert deleted == (2,)
