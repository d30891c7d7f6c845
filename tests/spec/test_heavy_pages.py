"""Heavy pages are rendered by a pool: an item that takes too long leaves the others as they are."""

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evidence.limits import BUDGETS
from renderers import records, rendering, search
from renderers.pool import WorkerPool
from tests.helpers.all_words import SCHEMA
from tests.helpers.caller import Caller
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.remote import caller_of, opener
from tests.helpers.stores import BODY, TIME, TITLE, WORD, Connection, Stream, build, client
from tests.helpers.worlds import House

LIMIT = 40
TEXT = "The quorum met in the boathouse at noon. "
LATE = "n07"
SHORT = 0.3


def note(number: int) -> dict[str, Any]:
    return {
        "id": f"n{number:02}",
        "at": f"2026-03-{number % 28 + 1:02}T09:00:00Z",
        "title": f"Note {number}",
        "text": f"{number} " + TEXT * 380,
    }


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    properties = {"id": WORD, "at": TIME, "title": TITLE, "text": BODY}
    notes = Stream("notes", properties, [*map(note, range(LIMIT))], ("title", "text"), "at")
    folder: Path = tmp_path_factory.mktemp("heavy")
    return build([Connection("notes", [notes], "notes")], folder)


class Watched:
    """Wraps a function of the renderers: notes its threads; items named in `late` wait."""

    def __init__(self, fn: Callable[..., Any], id_of: Callable[..., str]) -> None:
        self._fn, self._id_of = fn, id_of
        self.threads: set[str] = set()
        self.late: set[str] = set()
        self.gate = threading.Event()

    def __call__(self, *args: Any) -> Any:
        self.threads.add(threading.current_thread().name.partition("-")[0])
        if self._id_of(*args) in self.late:
            self.gate.wait(BUDGETS.request_seconds)
        return self._fn(*args)


@pytest.fixture
def trimming(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    found = Watched(records._trim, lambda item, *_: item.ref.record_id)
    monkeypatch.setattr(records, "_trim", found)
    yield found
    found.gate.set()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "BUDGETS", replace(BUDGETS, render_seconds=SHORT))


def test_a_page_of_long_records_is_rendered_by_the_pool_as_it_is_without(
    house: House, trimming: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"stream": "notes", "limit": LIMIT}
    pooled = client(house).ok("query_records", **asked)
    assert trimming.threads == {"render"}
    monkeypatch.setattr(rendering, "HEAVY_PAGE_CHARS", sys.maxsize)
    trimming.threads.clear()
    here = client(house).ok("query_records", **asked)
    assert "render" not in trimming.threads
    assert here.structured["data"]["data"] == pooled.structured["data"]["data"]
    assert here.text.count("\n") == pooled.text.count("\n")


def test_a_short_page_is_rendered_where_it_is_asked(house: House, trimming: Watched) -> None:
    client(house).ok("query_records", stream="notes", limit=3)
    assert trimming.threads and "render" not in trimming.threads


@pytest.mark.usefixtures("impatient")
def test_a_record_that_takes_too_long_is_shown_by_its_id_and_its_call(
    house: House, trimming: Watched
) -> None:
    caller = client(house)
    asked = {"stream": "notes", "limit": LIMIT, "sort": "at"}
    trimming.late.add(LATE)
    answer = caller.ok("query_records", **asked)
    rows = {row["id"]: row for row in answer.structured["data"]["data"]}
    rungs = {one["id"]: one for one in answer.structured["content_ladder"]["records"]}
    assert rows[LATE]["data"] == {} and all(row["data"] for id, row in rows.items() if id != LATE)
    call = rungs[f"notes/notes:{LATE}"]["next"]
    assert call["tool"] == "fetch" and str(call["args"]["id"]) in answer.text
    assert answer.structured["data"]["meta"]["warnings"][0]["code"] == rendering.TIMED_OUT
    assert f"warning {rendering.TIMED_OUT}: " in answer.text
    assert caller.ok(call["tool"], **call["args"]).structured["title"] == "Note 7"

    trimming.late.clear()
    again = caller.ok("query_records", **asked)
    assert rendering.TIMED_OUT not in again.text, "an incomplete answer is not kept"


def long_hits(asked: Asked) -> Reply:
    """A source whose windows are whole fields."""
    if asked.target.startswith("/v1/schema"):
        return as_json(SCHEMA)
    windows = [
        {"field_path": "text", "start_chars": 0, "preview_text": f"<mark>{n}</mark> {TEXT * 4_000}"}
        for n in range(5)
    ]
    hits = [
        {"object": "search_result", "stream": "notes", "record_key": f"n{n:02}", "title": "A note"}
        | {"connection_id": "away", "evidence_excerpts": [window]}
        for n, window in enumerate(windows, start=5)
    ]
    return as_json({"object": "list", "data": hits, "has_more": False})


@pytest.fixture
def remote() -> Iterator[Caller]:
    with answering(long_hits) as server:
        yield caller_of(opener(server.url, "t"), each=WorkerPool(4, "render").map)


@pytest.mark.usefixtures("impatient")
def test_a_hit_that_takes_too_long_keeps_its_id_and_the_others_their_windows(
    remote: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutting = Watched(search._reduced, lambda hit, *_: hit.ref.record_id)
    monkeypatch.setattr(search, "_reduced", cutting)
    whole = remote.ok("search", query="quorum")
    assert cutting.threads == {"render"}
    assert all("evidence" in one for one in whole.structured["content_ladder"]["records"])

    cutting.late.add(LATE)
    answer = remote.ok("search", query="quorum")
    cutting.gate.set()
    rungs = {one["id"]: one for one in answer.structured["content_ladder"]["records"]}
    assert len(rungs) == 5 and rungs[f"away/notes:{LATE}"].keys() == {"id", "fetch"}
    assert sum("evidence" in one for one in rungs.values()) == 4
    assert f"warning {rendering.TIMED_OUT}: " in answer.text
