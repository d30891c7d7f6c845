"""Where papers are mounted, who may read them, and that reading writes nothing."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from flask import Flask

from service import bootstrap, settings
from service.access.guard import WELL_KNOWN
from service.app import create_app
from tests.helpers.api import Answer, Api
from tests.helpers.papers import (
    ATTENTION,
    DEEP_LEARNING,
    NOBODY,
    RELEASES,
    UNWRITABLE,
    Library,
    Release,
    Served,
    Trace,
    ids,
    may_become_another_user,
    papers_app,
    serving_papers,
)
from tests.helpers.posting import JSON, legacy_body
from tests.helpers.reading import PAPER_TOOLS, TOOLS
from tests.helpers.snapshots import DATA, place
from tests.helpers.worlds import House

TOKEN, OTHER = "a-long-token-of-a-reader", "another-long-token-of-one"
SNAPSHOT = DATA / RELEASES[0] / "snapshot.db"
TARGETS = (
    "/mcp",
    "/mcp/papers",
    "/papers/v1/search?q=attention",
    f"/papers/v1/papers/{ATTENTION}/source",
)


def ask(api: Api, target: str, **headers: str) -> Answer:
    """Reads papers over REST or MCP, whichever the target is for."""
    if not target.startswith("/mcp"):
        return api.get(target, **headers)
    call = legacy_body("tools/call", {"name": PAPER_TOOLS[0], "arguments": {"query": "attention"}})
    return api.send("POST", target, orjson.dumps(call), {**JSON, **headers})


@pytest.fixture(scope="module")
def closed() -> Api:
    """An application whose papers need one of two tokens."""
    return Api(papers_app(SNAPSHOT, RUNG_PAPERS_TOKENS=f"{TOKEN} {OTHER}"), None)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN} {OTHER}",
        "Bearer rung_0123456789abcdef",
    ],
)
def test_closed_papers_are_401_without_a_known_token(
    closed: Api, target: str, header: str | None
) -> None:
    answer = ask(closed, target, **({} if header is None else {"Authorization": header}))
    assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert "hint" in str(answer.body) or "Bearer" in str(answer.body)
    assert TOKEN not in str(answer) and OTHER not in str(answer)
    assert "Attention" not in str(answer.body)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("token", [TOKEN, OTHER])
def test_each_token_opens_closed_papers(closed: Api, target: str, token: str) -> None:
    assert ask(closed, target, Authorization=f"Bearer {token}").status == 200


@pytest.mark.parametrize("target", TARGETS)
def test_open_papers_are_read_with_whatever_header(library: Library, target: str) -> None:
    assert ask(library.api, target).status == 200
    for header in ("", "Bearer", "Bearer nonsense", "Basic x"):
        assert ask(library.api, target, Authorization=header).status == 200


def test_tokens_that_can_be_guessed_are_refused_at_the_start() -> None:
    with pytest.raises(settings.SettingsError, match="RUNG_PAPERS_TOKENS"):
        settings.load({"RUNG_PAPERS_TOKENS": "short"})


@pytest.fixture(scope="module")
def both(demo_store: tuple[Path, str]) -> Iterator[tuple[Flask, str]]:
    """An application that serves records and papers, and the token of the records."""
    path, token = demo_store
    found = settings.load({"RUNG_STORE": str(path), "RUNG_PAPERS_DB": str(SNAPSHOT)})
    yield create_app(bootstrap.build(found)), token


def tools(api: Api, path: str) -> tuple[str, ...]:
    answer = api.send("POST", path, orjson.dumps(legacy_body("tools/list")), JSON)
    return tuple(tool["name"] for tool in answer.body["result"]["tools"])


def test_beside_a_store_papers_have_their_own_path_and_stay_open(both: tuple[Flask, str]) -> None:
    app, token = both
    owner, stranger = Api(app, token), Api(app, None)
    assert tools(owner, "/mcp") == TOOLS
    assert tools(stranger, "/mcp/papers") == PAPER_TOOLS
    assert ask(stranger, "/mcp").status == 401
    assert stranger.get("/v1/streams").status == 401
    assert stranger.get("/papers/v1/search?q=attention").status == 200
    ready = stranger.get("/readyz")
    assert ready.status == 200 and ready.body["papers"]["papers"] == 46
    links = stranger.get("/").body["links"]
    assert (links["mcp"], links["papers_mcp"]) == ("/mcp", "/mcp/papers")


def test_papers_alone_are_at_both_paths_and_records_nowhere(papers: Library) -> None:
    assert tools(papers.api, "/mcp") == tools(papers.api, "/mcp/papers") == PAPER_TOOLS
    assert papers.api.get("/v1/streams").status == 404
    assert papers.api.get("/healthz").body == {"status": "ok"}
    ready = papers.ready()
    assert ready.body["papers"]["snapshot"] == "d1fbd9dc5e024b49b6f276e8faea4199"


def test_without_a_snapshot_there_are_no_papers(tmp_path: Path) -> None:
    api = Api(House(tmp_path / "store.db").app, None)
    assert api.get("/papers/v1/search?q=x").status == 404
    assert ask(api, "/mcp/papers").status == 404


@pytest.mark.skipif(not may_become_another_user(), reason="only root can become another user")
def test_the_unwritable_snapshot_really_is_and_its_server_is_somebody_else(
    served: Served,
) -> None:
    library = served[UNWRITABLE]
    folder = library.release.folder
    before = Trace.of(folder)
    assert ids(library.ok("search_papers", query="attention"))
    assert library.ok("get_paper_source", paper_id=DEEP_LEARNING, query="learning")
    owners = {
        Path(f"/proc/{link.parts[2]}").stat().st_uid
        for link in Path("/proc").glob("[0-9]*/fd/*")
        if _target(link) == str(library.release.snapshot)
    }
    assert owners == {NOBODY}
    assert not any(path.stat().st_mode & 0o222 for path in (folder, *folder.rglob("*")))
    assert Trace.of(folder) == before


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def test_what_waits_in_a_log_is_served_and_the_files_stay_as_they_are(tmp_path: Path) -> None:
    """A snapshot that its builder has not finished, in its own folder with odd characters."""
    snapshot = place(tmp_path / "100% new? #1" / "papers.db")
    static = str(DATA / RELEASES[0] / "static")
    with closing(sqlite3.connect(snapshot, isolation_level=None)) as db:
        db.execute("UPDATE paper SET title = 'From the log' WHERE paper_id = ?", (ATTENTION,))
        before = Trace.of(snapshot.parent)
        assert len(before.files) == 4
        with serving_papers(snapshot, RUNG_PAPERS_ASSETS=static, TMPDIR=str(tmp_path)) as base_url:
            library = Library(base_url, Release(snapshot.parent))
            found = library.ok("get_paper_metadata", paper_id=ATTENTION)
            assert found.structured["title"] == "From the log"
            assert ids(library.ok("search_papers", query="attention"))
        assert Trace.of(snapshot.parent) == before
    assert [path.name for path in tmp_path.iterdir()] == ["100% new? #1"]


def test_only_a_surface_that_needs_a_token_describes_how_to_get_one(
    small_house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some hosts ask for the metadata even after a 200, and then start a sign-in."""
    monkeypatch.chdir(tmp_path)  # a checkout may have a store of the demo
    on = {"RUNG_SIGN_IN": "on"}
    papers = {"RUNG_PAPERS_DB": str(SNAPSHOT)}
    closed = {**papers, "RUNG_PAPERS_TOKENS": TOKEN}
    every = {"", "/mcp", "/v1", "/mcp/papers", "/papers/v1"}
    nobody = create_app(bootstrap.build(settings.load({**on, **closed})))
    for app, described in (
        (small_house.application(**on, **papers), {"", "/mcp", "/v1"}),
        (small_house.application(**on, **closed), every),
        (small_house.application(**closed), set()),
        (nobody, set()),  # no grant, so no sign-in
    ):
        for path in every:
            answer = Api(app, None).get(WELL_KNOWN + path)
            assert answer.status == (200 if path in described else 404), path
    refused = Api(nobody, None).send("POST", "/mcp", b"{}", JSON)
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="rung"'
