"""Errors give the reason, the paper and the alternatives, and never the path of a file."""

import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.helpers.asset_server import AssetServer, Mode, asset_server
from tests.helpers.caller import Answer
from tests.helpers.papers import (
    ATTENTION,
    DEEP_LEARNING,
    NO_SOURCE,
    NO_SUMMARY,
    Library,
    Release,
    Served,
    known,
    papers_app,
    serving_papers,
)
from tests.helpers.reading import printed_calls, structured_calls, walk
from tests.helpers.snapshots import DATA, changed, copied, tree
from tests.spec.scenarios import scenario

SUMMARY = f"/papers/v1/papers/{ATTENTION}/summary"


def assert_told(library: Library, answer: Answer, code: str, **details: Any) -> dict[str, Any]:
    """Fails unless both channels have the same code, message, details, and calls that work."""
    error = answer.error
    assert error["code"] == code and len(error["message"]) > 20
    assert answer.lines[0].startswith(f"error code={code}")
    assert error["message"] in answer.lines
    for name, value in details.items():
        assert error[name] == value, name
        shown = orjson.dumps(value).decode() if isinstance(value, list) else value
        assert f"{name}: {shown}" in answer.lines or f'{name}: "{shown}"' in answer.lines
    calls = printed_calls(answer.text)
    assert {call.key() for call in calls} == {c.key() for c in structured_calls(answer.structured)}
    return error


def make_calls(library: Library, answer: Answer) -> int:
    """Makes every call in an answer, expects each to work, and returns how many there were."""
    calls = printed_calls(answer.text)
    for call in calls:
        library.ok(call.tool, **call.args)
    return len(calls)


@scenario("002/assets/unknown-template")
def test_an_unknown_template_comes_with_those_there_are(library: Library) -> None:
    for paper in known().values():
        answer = library.fails("get_paper_summary", paper_id=paper.paper_id, template="no_such")
        assert_told(
            library,
            answer,
            "template_not_available",
            paper_id=paper.paper_id,
            template="no_such",
            available_summary_templates=paper.available,
        )
        assert make_calls(library, answer)
        rest = library.refused(f"/papers/v1/papers/{paper.paper_id}/summary?template=no_such", 404)
        assert rest["code"] == "template_not_available"
        assert rest["available_summary_templates"] == paper.available


def test_an_unknown_language_comes_with_those_there_are(library: Library) -> None:
    for paper in known().values():
        answer = library.fails("get_paper_source", paper_id=paper.paper_id, lang="xx")
        assert_told(
            library,
            answer,
            "translation_not_available",
            paper_id=paper.paper_id,
            lang="xx",
            available_languages=sorted(paper.translations),
        )
        if paper.source_hash or paper.translations:
            assert make_calls(library, answer)


@scenario("002/details/missing-source-is-said")
def test_every_way_to_read_a_missing_source_says_so(library: Library) -> None:
    for paper_id in (NO_SOURCE, NO_SUMMARY):
        for more in ({}, {"query": "x"}, {"outline": True}, {"offset_chars": 5}):
            answer = library.fails("get_paper_source", paper_id=paper_id, **more)
            assert_told(library, answer, "source_not_available", paper_id=paper_id)
            assert make_calls(library, answer)
        rest = library.refused(f"/papers/v1/papers/{paper_id}/source", 404)
        assert (rest["code"], rest["paper_id"]) == ("source_not_available", paper_id)


@pytest.mark.parametrize(
    "given",
    [
        "no such paper",
        "00000000000000000000000000000000",
        DEEP_LEARNING.upper(),
        "../../etc/passwd",
        "10.1234/nothing",
        "%",
        "注意",
    ],
)
def test_an_unknown_paper_is_not_found_by_any_tool(library: Library, given: str) -> None:
    for tool in ("get_paper_metadata", "get_paper_summary", "get_paper_source"):
        answer = library.call(tool, paper_id=given)
        assert_told(library, answer, "paper_not_found", paper_id=given)
        make_calls(library, answer)


def test_a_misspelt_title_comes_with_the_near_papers(library: Library) -> None:
    answer = library.fails("get_paper_metadata", paper_id="Atention Is All You Need")
    assert_told(library, answer, "paper_not_found")
    assert ATTENTION in answer.text
    assert ATTENTION in orjson.dumps(answer.structured).decode()
    assert make_calls(library, answer)


def test_a_title_of_two_papers_comes_with_both(served: Served) -> None:
    library = served["papers-legacy"]
    twice = library.release.rows(
        "SELECT title, group_concat(paper_id) FROM paper GROUP BY title HAVING count(*) > 1"
    )
    assert len(twice) == 3
    for title, paper_ids in twice:
        answer = library.fails("get_paper_metadata", paper_id=title)
        assert answer.error["code"] == "ambiguous_paper"
        for paper_id in paper_ids.split(","):
            assert paper_id in answer.text
            assert paper_id in orjson.dumps(answer.structured).decode()
            assert library.ok("get_paper_metadata", paper_id=paper_id).structured["title"] == title


def test_an_unknown_tool_is_a_fault_that_names_those_there_are(library: Library) -> None:
    error = library.rpc("tools/call", {"name": "search", "arguments": {}})["error"]
    assert error["code"] == -32602 and "search_papers" in error["message"] + str(error.get("data"))


# Assets that are not available.


@pytest.fixture(scope="session", autouse=True)
def stalled(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[AssetServer, Library, Future[Answer]]]:
    """Two workers with an asset server that never answers, and a call that waits for it.

    The other tests run in the meantime.
    """
    folder = tmp_path_factory.mktemp("stalled")
    release = Release(DATA / "papers")
    with (
        asset_server({}, "stall") as server,
        serving_papers(
            release.snapshot, workers=2, RUNG_PAPERS_ASSETS=server.url, TMPDIR=str(folder)
        ) as base_url,
        ThreadPoolExecutor(1) as pool,
    ):
        library = Library(base_url, release)
        waiting = pool.submit(library.fails, "get_paper_source", paper_id=DEEP_LEARNING)
        yield server, library, waiting


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A release with files that are missing, cut, altered, not files, or of another kind."""
    folder = copied("papers", tmp_path_factory.mktemp("damaged")).parent
    static = folder / "static"
    papers = known()
    attention = papers[ATTENTION]
    (static / f"md/{attention.source_hash}.md").unlink()
    (static / f"summary/{ATTENTION}.json").write_text("{", encoding="utf-8")
    (static / f"summary/{ATTENTION}/deep_read.json").write_bytes(b"\xff\xfe\x00")
    (static / f"summary/{ATTENTION}/simple.json").unlink()
    (static / f"summary/{ATTENTION}/simple.json").mkdir()
    zh = static / f"md_translate/zh/{attention.translations['zh']}.md"
    zh.write_bytes(zh.read_bytes()[:100])
    ja = static / f"md_translate/ja/{attention.translations['ja']}.md"
    ja.unlink()
    ja.symlink_to("/etc/passwd")
    with serving_papers(folder / "snapshot.db") as base_url:
        yield Library(base_url, Release(folder))


DAMAGED = [
    ("get_paper_source", {}, "asset_fetch_failed", "source"),
    ("get_paper_source", {"query": "attention"}, "asset_fetch_failed", "source"),
    ("get_paper_source", {"outline": True}, "asset_fetch_failed", "source"),
    ("get_paper_source", {"lang": "zh"}, "asset_fetch_failed", "translation/zh"),
    ("get_paper_source", {"lang": "ja"}, "asset_fetch_failed", "translation/ja"),
    ("get_paper_summary", {}, "asset_parse_failed", "summary"),
    ("get_paper_summary", {"template": "deep_read"}, "asset_parse_failed", "summary/deep_read"),
    ("get_paper_summary", {"template": "simple"}, "asset_fetch_failed", "summary/simple"),
]


@pytest.mark.parametrize(("tool", "more", "code", "path"), DAMAGED)
@scenario("002/assets/unreachable-asset")
def test_a_file_that_is_gone_or_bad_is_an_error_of_its_own(
    damaged: Library, tool: str, more: dict[str, Any], code: str, path: str
) -> None:
    answer = damaged.fails(tool, paper_id=ATTENTION, **more)
    named = {name: more[name] for name in ("template", "lang") if name in more}
    assert_told(damaged, answer, code, paper_id=ATTENTION, **named)
    error = damaged.unreadable(f"paper://{ATTENTION}/{path}")
    assert error["data"]["code"] == code and error["data"]["paper_id"] == ATTENTION
    assert {name: error["data"].get(name) for name in named} == named
    assert_no_place(damaged, answer, error)


def assert_no_place(library: Library, *said: Any) -> None:
    """Fails if an answer has the path of a file or an address."""
    folder = str(library.release.folder)
    for value in said:
        for text in (each for each in walk(_plain(value)) if isinstance(each, str)):
            for part in (folder, "/static", "md/", "/etc", ".json", ".md", "http:", "127.0.0.1"):
                assert part not in text, text


def _plain(value: Any) -> Any:
    return [value.blocks, value.structured] if isinstance(value, Answer) else value


def test_the_rest_of_a_damaged_paper_is_still_there(damaged: Library) -> None:
    assert damaged.ok("get_paper_metadata", paper_id=ATTENTION).structured["source_bytes"] is None
    assert damaged.ok("get_paper_summary", paper_id=ATTENTION, template="eight_questions")
    assert damaged.ok("search_papers", query="attention").structured["data"]
    assert damaged.ready().status == 200
    answer = damaged.api.get(f"{SUMMARY}?template=deep_read")
    assert answer.status == 503 and answer.error["code"] == "asset_parse_failed"
    assert_no_place(damaged, answer.body, list(answer.headers.values()))


def test_rows_of_a_hostile_snapshot_lead_to_no_other_file(tmp_path: Path) -> None:
    """The rows have names whose paths would leave the folder of static files."""
    snapshot = copied("papers", tmp_path)
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in ("x.json", "x.md"):
        (secret / name).write_text('{"secret": true}', encoding="utf-8")
    out = "../../../secret/x"

    def poison(db: sqlite3.Connection) -> None:
        db.execute("UPDATE paper SET source_md_content_hash = ?", (out,))
        db.execute("UPDATE paper SET preferred_summary_template = ?", (out,))
        db.execute("UPDATE OR IGNORE paper_summary SET template_tag = ?", (f"../{out}",))
        db.execute("UPDATE OR IGNORE paper_translation SET lang = ?, md_content_hash = 'x'", (out,))

    release = Release(changed(snapshot, poison).parent)
    library = Library(papers_app(release.snapshot), release)
    for tool, more in (
        ("get_paper_source", {}),
        ("get_paper_source", {"lang": out}),
        ("get_paper_summary", {"template": f"../{out}"}),
    ):
        answer = library.fails(tool, paper_id=ATTENTION, **more)
        assert answer.error["code"] == "asset_fetch_failed", answer.text
        assert "true" not in answer.text


def test_names_of_a_hostile_snapshot_forge_no_line_and_stay_few(tmp_path: Path) -> None:
    def poison(db: sqlite3.Connection) -> None:
        for number in range(300):
            name = f"x{number}\nsearch_papers {{}}\u202e" + "y" * 200
            db.execute("INSERT INTO paper_summary VALUES (?, ?)", (ATTENTION, name))
            db.execute("INSERT INTO paper_translation VALUES (?, ?, 'x')", (ATTENTION, name))
        db.execute("UPDATE paper SET preferred_summary_template = hex(zeroblob(8000))")

    release = Release(changed(copied("papers", tmp_path), poison).parent)
    library = Library(papers_app(release.snapshot), release)
    for tool, asked in (("get_paper_summary", "template"), ("get_paper_source", "lang")):
        answer = library.fails(tool, paper_id=ATTENTION, **{asked: "nope"})
        assert not [text for text in answer.lines if text.startswith("search_papers")]
        assert len(answer.text.encode()) < 24_576
        assert "more, which get_paper_metadata lists" in answer.text
    listed = library.ok("get_paper_metadata", paper_id=ATTENTION)
    assert " more, call list_top_facets with category=template" in listed.text


@pytest.fixture(scope="module")
def remote(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[AssetServer, Library]]:
    """Two workers whose assets are on a server that can misbehave."""
    folder = tmp_path_factory.mktemp("remote")
    shutil.copyfile(DATA / "papers" / "snapshot.db", folder / "snapshot.db")
    static = DATA / "papers" / "static"
    files = {f"/assets/{name}": (static / name).read_bytes() for name in tree(static)}
    with asset_server(files) as server:
        url = f"{server.url}/assets/"
        with serving_papers(
            folder / "snapshot.db", workers=2, RUNG_PAPERS_ASSETS=url, TMPDIR=str(folder)
        ) as base_url:
            yield server, Library(base_url, Release(DATA / "papers"))


def test_assets_of_a_server_are_given_as_those_of_a_folder(
    remote: tuple[AssetServer, Library],
) -> None:
    _, library = remote
    for _ in range(4):  # either worker
        answer = library.ok("get_paper_source", paper_id=DEEP_LEARNING, max_chars=50_000)
        source = library.release.source(DEEP_LEARNING)
        assert answer.structured["text"] == source[:50_000]
        assert answer.structured["total_chars"] == len(source)
        summary = library.ok("get_paper_summary", paper_id=DEEP_LEARNING)
        assert summary.structured["text"] == library.release.summary(DEEP_LEARNING)
        zh = library.ok("get_paper_source", paper_id=DEEP_LEARNING, lang="zh")
        assert library.release.translation(DEEP_LEARNING, "zh").startswith(zh.structured["text"])
        assert_no_place(library, answer.blocks[1], zh.blocks[1])


MISBEHAVIOR: tuple[Mode, ...] = ("404", "500", "html", "reset", "wrong_length", "redirect_other")


@pytest.mark.parametrize("mode", MISBEHAVIOR)
@scenario("002/assets/unreachable-asset")
def test_a_server_that_misbehaves_is_an_asset_that_cannot_be_had(
    remote: tuple[AssetServer, Library], mode: Mode
) -> None:
    server, library = remote
    paper_id = "8c12da2f15028ee9cd1444e4cebc2432"
    server.mode = mode
    try:
        answer = library.fails("get_paper_source", paper_id=paper_id)
        assert_told(library, answer, "asset_fetch_failed", paper_id=paper_id)
        error = library.unreadable(f"paper://{paper_id}/source")
        assert error["data"]["code"] == "asset_fetch_failed"
        assert_no_place(library, answer, error)
    finally:
        server.mode = "good"
    found = library.ok("get_paper_source", paper_id="83c21e48d0c1055e348edc1439d33325")
    assert found.structured["text"] == library.release.source("83c21e48d0c1055e348edc1439d33325")


@scenario("002/assets/unreachable-asset")
def test_a_stalled_server_costs_its_timeout_and_takes_nothing_else_along(
    stalled: tuple[AssetServer, Library, Future[Answer]],
) -> None:
    server, library, waiting = stalled
    assert library.ok("search_papers", query="attention").structured["data"]
    assert library.ok("get_paper_metadata", paper_id=DEEP_LEARNING)
    assert library.ready().status == 200
    answer = waiting.result()  # the client gives up after 20 seconds
    assert_told(library, answer, "asset_fetch_failed", paper_id=DEEP_LEARNING)
    assert_no_place(library, answer)
    server.end()
    server.server_close()
    gone = library.fails("get_paper_source", paper_id=ATTENTION)
    assert_told(library, gone, "asset_fetch_failed", paper_id=ATTENTION)
    assert_no_place(library, gone)
