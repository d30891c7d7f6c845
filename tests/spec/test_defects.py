"""Rung over its own store, over one behind a socket, and over packages of both.

`defects.py` lists the promises.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evidence.work import Deadline
from renderers.pool import WorkerPool
from service.sources.remote.server import HttpResourceServer
from service.sources.remote.origin import Origin
from service.sources.package import Child, PackageResourceServer
from evidence.model import MemberStream
from service.ports import ResourceServer
from tests.helpers import worlds
from tests.helpers.caller import Answer, Caller
from tests.helpers.loopback import Asked, Reply, answering
from tests.helpers.reading import Call, fenced, ours, printed_calls
from tests.helpers.remote import caller_of, opener
from tests.helpers.server import serving
from tests.helpers.sources import SEALER, of_grants
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House, World, row, text
from tests.spec.defects import lacks

BODY = "Long and longer. " * 560
RECORDS = 40


def library() -> World:
    """Records too long for a page of them, in one connection whose label has several words."""
    fields = {"title": text("primary-title"), "body": text("primary-text")}
    books = worlds.stream("books", fields, query={"search": {"lexical_fields": ["title", "body"]}})
    broad = worlds.stream("broad", {f"field_{number:03}": text() for number in range(300)})
    rows = tuple(
        row("books", f"b{n:02}", title=f"Book {n}", body=f"{BODY} {n}") for n in range(RECORDS)
    )
    named = worlds.Connection("shelf", "books", "The long shelf; upstairs", (books, broad), rows)
    return World((named, *worlds.odd_ids().connections))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(library(), tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def remote(house: House) -> Iterator[Caller]:
    """A caller whose records are behind a socket."""
    with serving("wsgi:app", house.environment) as url:
        yield caller_of(opener(url, house.grant()[1]))


@pytest.fixture(scope="module")
def package(small_house: House) -> Caller:
    """A caller of two grants of the small store at once."""
    entries = [{"connection_id": name} for name in ("mail-work", "notes", "mail-home")]
    return caller_of(of_grants(small_house, {"Work": tuple(entries[:2]), "Home": (entries[2],)}))


def pages(caller: Caller, tool: str, **args: Any) -> Iterator[Answer]:
    """Every page, by the calls that the text prints; no call is repeated."""
    following, made = [Call(tool, args)], set[bytes]()
    while following:
        call = following[0]
        assert call.key() not in made, f"{call} leads to itself"
        made.add(call.key())
        answer = caller.ok(call.tool, **call.args)
        yield answer
        following = [found for found in printed_calls(answer.text) if found.why == "next_page"]


def numbered(answer: Answer) -> list[str]:
    """The ids on the lines that each name an item of a page."""
    lines = ours(answer.text).split("\n")
    return [line.split(" ")[1] for line in lines if line[:1].isdigit()]


@lacks("D3")
def test_a_page_that_is_cut_loses_no_record_and_no_field(remote: Caller) -> None:
    seen = list[str]()
    for answer in pages(remote, "query_records", stream="books", limit=100):
        shown = [record["id"] for record in answer.structured["data"]["data"]]
        reads = [call for call in printed_calls(answer.text) if call.tool == "read_record_field"]
        assert [call.args["id"] for call in reads] == [f"shelf/books:{key}" for key in shown]
        assert numbered(answer) == [f"shelf/books:{key}" for key in shown]
        seen += shown
    assert sorted(seen) == [f"b{n:02}" for n in range(RECORDS)]
    (further,) = fenced(remote.ok(reads[0].tool, **reads[0].args).text)
    assert further and BODY.startswith(further, reads[0].args["offset_chars"])


@lacks("D4")
def test_every_hit_has_its_id_in_the_text_on_whatever_page_it_is(remote: Caller) -> None:
    seen = list[str]()
    for answer in pages(remote, "search", query="long", limit=100):
        ids = [result["id"] for result in answer.structured["results"]]
        assert numbered(answer) == ids
        seen += ids
    assert sorted(seen) == [f"shelf/books:b{n:02}" for n in range(RECORDS)]


@lacks("D5")
def test_sources_take_turns_and_the_printed_cursor_goes_on_in_each(package: Caller) -> None:
    seen, first = list[str](), set[str]()
    for number, answer in enumerate(pages(package, "search", query="standup", limit=4)):
        results = answer.structured["results"]
        assert len(results) <= 4
        seen += [result["id"] for result in results]
        first |= {result["connection_id"] for result in results} if number == 0 else set()
    assert first == {"mail-work", "mail-home"}
    assert len(seen) == len(set(seen)) == 21


@contextmanager
def unsteady(house: House, seconds: float) -> Iterator[Caller]:
    """A package of a store, a server that never answers and a server that does not exist."""
    store, token, free = house.app.extensions["rung"].store, house.grant()[1], threading.Event()

    def silent(asked: Asked) -> Reply:
        free.wait(WAIT_SECONDS)
        return Reply(503)

    def at(url: str) -> Callable[[Deadline], ResourceServer]:
        return lambda deadline: HttpResourceServer(Origin(url), "of-a-test", deadline)

    with answering(silent) as gone:
        nowhere = gone.url
    with answering(silent) as server:
        opens = {"Here": lambda deadline: store.open(token)}
        opens |= {"Silent": at(server.url), "Gone": at(nowhere)}
        held = (MemberStream("messages", "mail-home", "gmail", "Home mail"),)
        children = [Child(name, f"grt_{name}", held, opens[name]) for name in opens]
        each = WorkerPool(4, "of-a-test").map
        try:
            yield caller_of(
                lambda: PackageResourceServer(children, each, Deadline.after(seconds), SEALER)
            )
        finally:
            free.set()


@lacks("D6")
def test_silent_and_absent_sources_cost_their_own_hits_and_are_told_in_text(
    small_house: House,
) -> None:
    patience = Deadline.after(5)
    with unsteady(small_house, 0.5) as caller:
        answer = caller.ok("search", query="garden*")
        assert not patience.expired()
    assert len(answer.structured["results"]) == 1
    assert "complete=false" in answer.lines[0]
    assert "sources: 1 answered (Here 1), 1 failed, 1 timed out" in answer.text
    assert "127.0.0.1" not in f"{answer.text} {answer.structured}"
    silent, gone = (
        next(line for line in answer.lines if line.startswith(f"  {name} "))
        for name in ("Silent", "Gone")
    )
    assert "timed out" in silent and "upstream_unreachable" in gone


@lacks("D7")
def test_every_odd_id_is_printed_whole_and_leads_to_its_record(remote: Caller) -> None:
    met = list[str]()
    for answer in pages(remote, "search", query="oddity", limit=100):
        rungs = answer.structured["content_ladder"]["records"]
        for result, rung in zip(answer.structured["results"], rungs, strict=True):
            assert numbered(answer).count(result["id"]) == 1
            read = {"id": result["id"], "field_path": rung["evidence"][0]["field_path"]}
            assert "oddity" in remote.ok("read_record_field", **read).structured["window"]["text"]
            document = remote.ok("fetch", id=result["id"]).structured
            met.append(document["metadata"]["record_id"])
    assert sorted(met) == sorted(worlds.ODD_IDS)


@lacks("D15")
def test_the_schema_in_text_tells_everything_of_every_field(remote: Caller) -> None:
    books = remote.ok("schema", stream="books")
    for told in ("filter ", "projection: ", "sort: ", "count: ", "expand: ", "aggregate: "):
        assert f"\n  {told}" in books.text, told
    assert "\n  search: full text in title, body; no semantic search" in books.text
    assert 'shelf="The long shelf; upstairs"' in books.text
    args: dict[str, Any] | None = {"stream": "broad", "detail": "full"}
    seen = list[str]()
    while args:
        answer = remote.ok("schema", **args)
        seen += [line.split()[0] for line in answer.lines if line.startswith("    ")]
        args = next((c.args for c in printed_calls(answer.text) if c.why == "more_fields"), None)
    assert sorted(seen) == [*(f"field_{number:03}" for number in range(300)), "id"]
