"""What a benchmark stands on: the same corpus every time, and real parts that do what they say."""

import os
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import orjson
import pytest

from bench import changes, corpus, servers, snapshots, soak, stores
from bench.calls import LEGACY, MODERN, call, get
from bench.findings import Note
from bench.load import HOST, ask, drive, loaded, post
from bench.peers import environments, plain, scripts
from bench.peers.environments import OFFICIAL
from bench.rows import papers, search
from bench.rows.stages import Stages
from bench.servers import Server, rung
from bench.sources import answering, repeating
from service.settings import SETTINGS
from tests.helpers.waiting import WAIT_SECONDS

pytestmark = pytest.mark.slow


def test_the_corpus_is_the_same_for_its_seed_and_another_for_another() -> None:
    assert list(corpus.records(40)) == list(corpus.records(40))
    assert list(corpus.records(40))[:10] == list(corpus.records(10))
    assert list(corpus.records(5)) != list(corpus.records(5, seed=1))


def test_records_keep_to_their_bounds_and_hold_their_words() -> None:
    found = list(corpus.records(1_000))
    assert all(len(record.title) <= corpus.TITLE_CHARS for record in found)
    assert any(not record.body.isascii() for record in found)
    assert {record.connection for record in found} == set(range(corpus.CONNECTIONS))
    for record in found:
        if record.body.isascii():
            shown = record.body.lower().translate(str.maketrans(".?:", "   ")).split()
            assert set(shown) == record.words
    spoken = sum(len(record.words & set(corpus.FUNCTION_WORDS)) for record in found)
    assert spoken > 10 * len(found)


def test_a_request_says_how_long_its_body_is() -> None:
    assert post("/mcp", b"{}", {"A": "b"}).endswith(b"\r\nA: b\r\nContent-Length: 2\r\n\r\n{}")


def test_a_call_has_in_headers_and_body_what_its_era_wants() -> None:
    modern, legacy = (call("secret", "search", {"query": "a"}, era=era) for era in (MODERN, LEGACY))
    for wanted in (b"Mcp-Method: tools/call", b"Mcp-Name: search", b'protocolVersion":"2026-07-28'):
        assert wanted in modern and wanted not in legacy
    assert b"MCP-Protocol-Version: 2025-06-18" in legacy
    assert b"Authorization: Bearer secret" in modern and b"Authorization" in legacy


def test_a_stage_leaves_out_the_stages_inside_it() -> None:
    stages = Stages()
    inner = stages.measured("inner", sum)
    outer = stages.measured("outer", lambda: inner(range(200_000)))
    assert outer() == sum(range(200_000))
    assert stages.seconds["outer"] < stages.seconds["inner"]
    assert stages.share("inner", "outer", "never ran") == pytest.approx(1.0)


def test_a_grown_snapshot_has_twins_that_are_papers_of_their_own(tmp_path: Path) -> None:
    target = tmp_path / "snapshot.db"
    chars = snapshots.grow(snapshots.SOURCE, target, 70, huge_bytes=1_000_000)
    with closing(sqlite3.connect(target)) as db:

        def one(query: str) -> object:
            return db.execute(query).fetchone()[0]

        for table in ("paper", "paper_fts"):
            assert one(f"SELECT count(DISTINCT paper_id) FROM {table}") == 70
        assert one("SELECT count(DISTINCT title) FROM paper") == 70
        assert one("PRAGMA journal_mode") == "delete"
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert one("SELECT sum(paper_count) FROM year_count") == 70
        name = one(f"SELECT source_md_content_hash FROM paper WHERE paper_id='{snapshots.HUGE_ID}'")
    huge = (tmp_path / f"static/md/{name}.md").read_text("utf-8")
    assert len(huge) == chars and len(huge.encode()) >= 1_000_000


def test_a_varied_text_keeps_sentences_and_gets_a_word_of_its_own() -> None:
    text = "One is here. Two is there. " * 20
    varied = snapshots.vary(Random(1), text, "study7")
    assert varied.endswith(" study7") and varied != snapshots.vary(Random(2), text, "study7")
    assert set(varied.split()) <= {*text.split(), "study7"}
    assert snapshots.vary(Random(1), "", "study7") == ""


def test_a_query_is_written_as_upstream_writes_it() -> None:
    assert papers.expression("Deep pre-training") == '"deep" "pre-training"'
    assert papers.expression("深度 学习") == '"深 度" "学 习"'


def test_a_get_carries_a_token_where_there_is_one() -> None:
    assert get("/a") == b"GET /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"
    assert b"\r\nAuthorization: Bearer secret\r\n\r\n" in get("/a", "secret")


def test_each_source_gives_its_body_no_sooner_than_told() -> None:
    with answering([b"{}", b"[1]"], 0.02) as sources:
        ports = [int(url.removeprefix(f"http://{HOST}:")) for url in sources.urls]
        assert [ask(port, get("/any", "secret")) for port in ports] == [b"{}", b"[1]"]
        load = drive(ports[0], [get("/any")], total=8, connections=4)
        assert load.p50 >= 0.02
        _until(lambda: sources.waiting == 0)
        load = loaded(ports[1], [get("/any")], seconds=0.1, connections=2)
        assert load.count > 0 and load.rate == pytest.approx(load.count / 0.1, rel=0.5)


def test_answers_in_chunks_are_joined_and_refusals_counted_where_they_may_be() -> None:
    chunks = b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
    with _saying(chunks) as port:
        assert ask(port, get("/any"), tolerant=True) == b"abcd"
    with _saying(chunks) as port:
        load = drive(port, [get("/any")], total=1, connections=1, tolerant=True)
        assert load.statuses == {404: 1}
    with _saying(chunks) as port, pytest.raises(RuntimeError, match="404"):
        ask(port, get("/any"))


@contextmanager
def _saying(answer: bytes) -> Iterator[int]:
    """A server that gives one client these bytes, whatever it asks."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(65_536)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_callers_wait_for_a_silent_source_and_for_nobody_longer_than_they_must() -> None:
    with answering([b"{}"], 60) as silent, answering([b"{}"], 0) as ready:
        silent_port, ready_port = (
            int(found.urls[0].rpartition(":")[2]) for found in (silent, ready)
        )
        with repeating(silent_port, [get("/any")] * 3) as waiting:
            _until(lambda: silent.waiting == 3)
            with repeating(ready_port, [get("/any")] * 2) as served:
                _until(lambda: served.answered == 2)
            assert waiting.answered == 0
        _until(lambda: silent.waiting == 0)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, "it never came to that"


def test_the_cpu_seconds_of_a_worker_are_those_of_its_process() -> None:
    here = Server(0, os.getpid(), 0.0)
    before, counted = here.cpu_seconds(), time.process_time()
    while time.process_time() < counted + 0.1:
        pass
    assert here.cpu_seconds() - before == pytest.approx(0.1, abs=0.05)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> stores.Corpus:
    """A small corpus, built anew."""
    monkeypatch.setattr(stores, "HOME", tmp_path)
    return stores.open_corpus(300)


def test_the_store_and_the_file_of_the_peers_hold_the_same_records(built: stores.Corpus) -> None:
    found = [f"source-{r.connection}/{r.stream}:{r.id}" for r in corpus.records(300)]
    with (
        closing(sqlite3.connect(built.plain)) as peers,
        closing(sqlite3.connect(built.store)) as store,
    ):
        rows = peers.execute("SELECT source || '/' || stream || ':' || id FROM record").fetchall()
        assert [row[0] for row in rows] == found
        assert store.execute("SELECT count(*) FROM record").fetchone() == (300,)
    assert stores.open_corpus(300) == built


def test_peers_look_for_any_word_but_stop_words_by_their_stems(
    built: stores.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain.expression("where did the quorum meet") == '"quorum" OR "meet"'
    monkeypatch.setenv(plain.DATABASE, str(built.plain))
    counted = corpus.frequencies(corpus.records(300))
    seven = sorted(one for one, count in counted.items() if count == 7 and one[-1:] in "lnrtd")[:20]
    with closing(plain.connect(str(built.plain))) as db:
        for word in seven:
            found = [
                {hit["id"] for hit in hits}
                for hits in (plain.search(word, 10), plain.two_steps(db, f"the {word}s", 10))
            ]
            assert found[0] == found[1] and found[0]


def test_peers_are_asked_alike_and_read_alike() -> None:
    body = b'{"result": {"structuredContent": {"results": [{"id": "a/b:c"}]}}}'
    rows = b'[{"id": "c", "source": "a", "stream": "b"}]'
    for peer in (*environments.PEERS, *environments.CARRYING, *scripts.SCRIPTS):
        assert b"elm" in peer.request("elm")
        assert peer.ids(rows if peer is environments.DATASETTE else body) == ["a/b:c"]


def test_peers_must_find_the_same_records_but_for_what_ties_with_the_tenth() -> None:
    def found(*names: str) -> bytes:
        hits = [{"id": name} for name in names]
        return orjson.dumps({"result": {"structuredContent": {"results": hits}}})

    bodies = [found(*"abcdefghij"), found(*"abcdefghxy"), found(*"abcdefgxyz"), found(*"abc")]
    with answering(bodies, 0) as sources:
        first, tied, other, fewer = (
            Server(int(url.rpartition(":")[2]), 0, 0.0) for url in sources.urls
        )

        def alike(asked: environments.Peer, peer: Server, ours: Server = first) -> list[Note]:
            by_name = {search.RUNG: ours, search.LIMIT: first, asked.title: peer}
            by_name[search.PLAIN] = other  # is loaded, and not compared
            requests = {name: [get("/any")] * 2 for name in by_name}
            return list(search.check_alike(by_name, requests, [asked], "rare"))

        assert [note.measured for note in alike(OFFICIAL, tied)] == [f"{len(bodies[0])}"] * 3
        for peer in (other, fewer):
            with pytest.raises(RuntimeError, match="finds other records"):
                alike(OFFICIAL, peer)
        assert alike(OFFICIAL, tied, ours=other)
        assert alike(environments.OFFICIAL_CARRYING, other, ours=other)
        with pytest.raises(RuntimeError, match="finds other records"):
            alike(environments.OFFICIAL_CARRYING, first, ours=other)


def test_what_a_command_says_is_seen_only_when_it_fails(capfd: pytest.CaptureFixture[str]) -> None:
    speak = "import sys; print('WARNING: Location', file=sys.stderr); print('done')"
    assert environments.quietly([sys.executable, "-c", speak]) == "done\n"
    with pytest.raises(RuntimeError, match="WARNING: Location"):
        environments.quietly([sys.executable, "-c", f"{speak}; sys.exit(1)"])
    assert capfd.readouterr() == ("", "")


def test_without_npm_the_scripts_are_left_out_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert scripts.missing() == "npm is not installed"
    (tmp_path / "npm").write_text("#!/bin/sh\necho no such registry >&2\nexit 1\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setattr(scripts, "HOME", tmp_path / "typescript")
    assert "could not install" in scripts.missing() and "no such registry" in scripts.missing()
    assert [found for each in scripts.SCRIPTS for found in each.versions()] == []


def test_a_server_is_forgetful_by_settings_that_there_are() -> None:
    assert set(servers.UNCACHED) <= {one.variable for one in SETTINGS}
    assert set(soak.SETTINGS) <= {one.variable for one in SETTINGS}


def test_changes_of_a_soak_are_seen_by_the_next_request_and_leave_the_kept_store_alone(
    built: stores.Corpus,
) -> None:
    before = built.store.read_bytes()
    made = changes.Changes()
    core, _ = servers.two_cores()
    with soak.copied(built) as own, rung(own.store, core, cached=True) as server:
        for number in range(3):
            changes.add_batch(own.store, server.port, own.token, number, made)
        changes.grant_and_revoke(own.store, server.port, changes.mark(2), made)
    assert (made.imports, made.grants, made.wrong) == (3, 1, [])
    assert made.rows == (1 + 2 + 3) * changes.ROWS
    assert built.store.read_bytes() == before and not own.folder.exists()


def test_a_change_that_is_not_seen_is_told(built: stores.Corpus) -> None:
    core, _ = servers.two_cores()
    made = changes.Changes()
    with soak.copied(built) as own, rung(built.store, core) as server:
        changes.add_batch(own.store, server.port, own.token, 0, made)
    assert [said.partition(",")[0] for said in made.wrong] == ["after import 0"]
