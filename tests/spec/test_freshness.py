"""Answers report how up to date the connections of sources are, and only to their grants."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from pytest import MonkeyPatch

from evidence.model import SYNC_MEMBERS
from evidence.text import json_line
from service.access.entries import Entries
from service.records import freshness
from service.records.sidecar import open_sidecar
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.server import serving
from tests.helpers.shell import Shell
from tests.helpers.signin import Browser, new_code
from tests.helpers.synced import Synced
from tests.helpers.two_owners import Pair, letters
from tests.helpers.worlds import House

HOUR = 3_600
OFFICE = {"connection_id": "office"}
#: The calls that carry `as_of`, and the route of each.
DATED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("search", {"query": "lantern"}, "/v1/search?q=lantern"),
    ("query_records", {"stream": "home"}, "/v1/streams/home/records"),
    (
        "aggregate",
        {"stream": "home", "metric": "count"},
        "/v1/streams/home/aggregate?metric=count",
    ),
)
NEVER = (
    ("fetch", {"id": "home/home:1"}),
    ("read_record_field", {"id": "home/home:1", "field_path": "title"}),
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A store with two connections that folders fill, and one that was imported by hand."""

    synced: Synced

    @property
    def house(self) -> House:
        """The store with a new application, which has not read the states yet."""
        return House(self.synced.store, {"RUNG_SEMANTIC": "off", "RUNG_METRICS": "open"})

    def folder(self, name: str) -> Path:
        return self.synced.folder / "docs" / name

    def fill(self, name: str) -> None:
        self.folder(name).mkdir(parents=True)
        rows = "".join(f"{number},Lantern {number}\n" for number in range(30))
        (self.folder(name) / f"{name}.csv").write_text(f"id,title\n{rows}", encoding="utf-8")

    def fail(self, name: str) -> None:
        """A round that fails."""
        self.folder(name).rename(self.folder(f"no-{name}"))
        assert self.synced.run("sync", name).exit_code == 1

    def pause(self, name: str) -> None:
        """A round after which the source waits for the owner."""
        (self.folder(name) / f"{name}.csv").write_text("id,title\n1,Lantern 1\n", encoding="utf-8")
        assert self.synced.run("sync", name).exit_code == 3

    def age(self, name: str, seconds: int) -> None:
        """The last round of a source as if it had been so many seconds earlier."""
        entries = Entries(open_sidecar(self.synced.store))
        row = freshness.all_sources(entries)[name]
        times = {
            field: getattr(row, field) - seconds
            for field in ("tried_at", "synced_at", "complete_until")
        }
        freshness.save(entries, replace(row, **times))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    kept = Kept(Synced.make(tmp_path))
    for name in ("home", "office", "bank"):
        kept.fill(name)
    for name in ("home", "office"):
        folder = str(kept.folder(name))
        kept.synced.ok("source", "add", name, folder, "--kind", "folder")
    kept.synced.ok("import", str(kept.folder("bank")), "--connection", "bank")
    kept.synced.ok("sync")
    return kept


def connections(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The members of each connection in a schema, besides its names, by its id."""
    return {
        entry["connection_id"]: {name: entry[name] for name in SYNC_MEMBERS if name in entry}
        for connector in document["connectors"]
        for part in (connector, *connector["streams"])
        if isinstance(part, dict)
        for entry in part.get("granted_connections", ())
    }


def as_of(api: Api, tool: str, args: dict[str, Any], route: str) -> dict[str, str]:
    """The states of the connections in the `as_of` of an answer, the same on all surfaces."""
    result = api.mcp(tool, **args)
    text = "\n".join(block["text"] for block in result["content"])
    lines = [line for line in text.split("\n") if line.startswith("as_of: ")]
    entries = result["structuredContent"]["data"].get("as_of", [])
    assert api.get(route).body["meta"].get("as_of", []) == entries
    assert len(lines) == bool(entries)
    for entry in entries:
        shown = f"complete until {entry['complete_until']} ({entry['state']})"
        assert entry["connection_id"] in lines[0] and shown in lines[0]
    return {entry["connection_id"]: entry["state"] for entry in entries}


def test_schema_reports_how_up_to_date_the_connections_of_sources_are(kept: Kept) -> None:
    house = kept.house
    token = house.grant()[1]
    api = Api(house.app, token)
    by_id = connections(api.get("/v1/schema").body)
    assert {id: status.get("state") for id, status in by_id.items()} == {
        **{"home": "ok", "office": "ok"},
        "bank": None,
    }
    home = by_id["home"]
    assert home["complete_until"] <= home["synced_at"] and home["synced_at"].endswith("Z")
    for args in ({}, {"stream": "home"}, {"stream": "home", "detail": "full"}):
        result = api.mcp("schema", **args)
        assert connections(result["structuredContent"]["data"])["home"] == home
        shown = f"complete_until={home['complete_until']} synced_at={home['synced_at']}"
        assert f"home state=ok {shown}" in result["content"][0]["text"]
    shell = Shell({**kept.synced.environ, "RUNG_TOKEN": token})
    assert "home state=ok" in shell.ok("schema").stdout
    assert connections(orjson.loads(shell.ok("schema", "--json").stdout))["home"] == home


def test_nothing_is_added_while_all_is_well(kept: Kept) -> None:
    api = kept.house.api()
    for call in DATED:
        assert as_of(api, *call) == {}


def test_a_late_connection_is_dated_in_answers_over_it(kept: Kept) -> None:
    kept.age("home", 29 * 60)


def test_answers_over_other_connections_have_no_date(kept: Kept) -> None:
    kept.age("home", HOUR)
    api = kept.house.api()
    for args, query in (
        ({"connection_id": "office"}, "connection_id=office"),
        ({"streams": ["office", "bank"]}, "streams=office&streams=bank"),
    ):
        route = f"/v1/search?q=lantern&{query}"
        assert as_of(api, "search", {"query": "lantern", **args}, route) == {}
    assert as_of(api, "query_records", {"stream": "office"}, "/v1/streams/office/records") == {}


def test_a_failed_connection_is_dated_without_the_reason(kept: Kept) -> None:
    kept.fail("home")
    api = kept.house.api()
    for call in DATED:
        assert as_of(api, *call) == {"home": "failed"}
    answers = [api.mcp(tool, **args) for tool, args in (*NEVER, ("schema", {}))]
    answers += [api.mcp(tool, **args) for tool, args, _ in DATED]
    shown = json_line(answers) + json_line(api.get("/v1/schema").body)
    assert str(kept.synced.folder) not in shown and "does not exist" not in shown
    assert connections(api.get("/v1/schema").body)["home"]["state"] == "failed"


def test_reading_a_record_carries_no_date(kept: Kept) -> None:
    kept.fail("home")
    api = kept.house.api()
    for tool, args in NEVER:
        result = api.mcp(tool, **args)
        assert not result.get("isError") and "as_of" not in json_line(result)


def test_a_paused_connection_is_dated_once_it_is_late(kept: Kept) -> None:
    kept.pause("home")
    api = kept.house.api()
    assert as_of(api, *DATED[0]) == {}
    assert connections(api.get("/v1/schema").body)["home"]["state"] == "paused"
    kept.age("home", HOUR)
    assert as_of(kept.house.api(), *DATED[0]) == {"home": "paused"}


def test_a_connection_of_two_sources_is_as_its_worst(kept: Kept) -> None:
    kept.fill("more")
    folder = str(kept.folder("more"))
    kept.synced.ok("source", "add", "more", folder, "--kind", "folder", "--connection", "home")
    kept.synced.ok("sync")
    kept.age("home", HOUR)
    kept.age("more", 60)
    rows = freshness.all_sources(Entries(open_sidecar(kept.synced.store)))
    api = kept.house.api()
    assert as_of(api, *DATED[0]) == {"home": "late"}
    home = connections(api.get("/v1/schema").body)["home"]
    assert home["synced_at"] == freshness.time_text(rows["home"].synced_at)
    kept.fail("more")
    assert connections(kept.house.api().get("/v1/schema").body)["home"]["state"] == "failed"


def test_a_grant_shows_nothing_of_other_connections(kept: Kept) -> None:
    kept.fail("home")
    kept.age("office", HOUR)
    api = kept.house.api(OFFICE)
    document = api.get("/v1/schema").body
    assert connections(document).keys() == {"office"} and "home" not in json_line(document)
    assert "home" not in json_line(api.mcp("schema"))
    assert as_of(api, *DATED[0]) == {"office": "late"}
    for tool, args, route in DATED[1:]:
        assert api.mcp(tool, **args)["isError"] and "as_of" not in json_line(api.get(route).body)


def test_repeated_calls_follow_the_states(kept: Kept, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "MAX_AGE", timedelta())
    api = kept.house.api()
    for call in DATED:
        assert as_of(api, *call) == {}
    kept.age("home", HOUR)
    for call in DATED:
        assert as_of(api, *call) == {"home": "late"}
    kept.synced.ok("sync")
    for call in DATED:
        assert as_of(api, *call) == {}


def test_a_short_page_keeps_the_date(kept: Kept) -> None:
    """A page of long texts is asked for again with fewer hits."""
    words = "lantern " + "and the elm in the yard " * 300
    rows = "".join(f'{{"id": "{n}", "text": "{words}{n}"}}\n' for n in range(60))
    (kept.folder("home") / "long.ndjson").write_text(rows, encoding="utf-8")
    kept.synced.ok("sync")
    kept.age("home", HOUR)
    api = kept.house.api()
    result = api.mcp("search", query="lantern yard", limit=50)
    data = result["structuredContent"]["data"]
    assert data["ended_early"] and data["as_of"][0]["state"] == "late"
    assert result["content"][0]["text"].count("\nas_of: ") == 1


@pytest.fixture
def served(kept: Kept) -> Iterator[str]:
    kept.fail("home")
    kept.age("home", HOUR)
    environ = {**kept.house.environment, "RUNG_SIGN_IN": "on"}
    with serving("wsgi:app", environ) as base:
        yield base


def test_a_reader_of_a_server_sees_the_same(kept: Kept, served: str) -> None:
    token = kept.house.grant()[1]
    here = Shell({**kept.synced.environ, "RUNG_TOKEN": token})
    there = Shell({"RUNG_URL": served, "RUNG_TOKEN": token})
    for words in (["schema"], ["search", "lantern"], ["schema", "home"]):
        lines = [shell.ok(*words).stdout.split("\n") for shell in (here, there)]
        dated = [[line for line in part if "complete" in line] for part in lines]
        assert dated[0] and dated[0] == dated[1]


def test_a_package_reports_the_connections_of_its_members(
    kept: Kept, served: str, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    here = worlds.build(letters("letters", 2), tmp_path / "here")
    pair = Pair(here, kept.house, served)
    api = Api(pair.here.app, pair.package().token)
    assert as_of(api, *DATED[0]) == {"home": "failed"}
    assert connections(api.get("/v1/schema").body)["home"]["state"] == "failed"


def test_the_owner_sees_what_failed_and_visitors_nothing(kept: Kept, served: str) -> None:
    browser = Browser(served, kept.synced.store)
    browser.sign_in(new_code(kept.synced.store))
    page = browser.get("/owner").text
    assert "home into home: failed, last success" in page and "office into office: ok" in page
    visitor = Browser(served).get("/", Accept="text/html").text
    assert "home into home" not in visitor and "failed" not in visitor
    stats = kept.synced.ok("stats").stdout
    listed = kept.synced.ok("source", "list").stdout
    assert "source home into home: failed" in stats and str(kept.folder("home")) in stats
    assert str(kept.folder("home")) in listed
    sources = orjson.loads(kept.synced.ok("stats", "--json").stdout)["sources"]
    assert [(row["name"], row["state"]) for row in sources] == [
        ("home", "failed"),
        ("office", "ok"),
    ]


def test_metrics_have_the_oldest_age_and_no_names(kept: Kept) -> None:
    kept.fail("home")
    kept.age("office", HOUR)
    text = Api(kept.house.app, None).get("/metrics").body.decode()
    samples = dict(line.split(" ") for line in text.splitlines() if line.startswith("rung_sources"))
    assert float(samples["rung_sources_failed"]) == 1
    assert HOUR <= float(samples["rung_sources_oldest_age_seconds"]) < HOUR + 600
    assert samples.keys() == {"rung_sources_failed", "rung_sources_oldest_age_seconds"}


def test_a_store_without_sources_has_no_samples_of_them(tmp_path: Path) -> None:
    synced = Synced.make(tmp_path)
    kept = Kept(synced)
    kept.fill("bank")
    synced.ok("import", str(kept.folder("bank")), "--connection", "bank")
    assert b"rung_sources" not in Api(kept.house.app, None).get("/metrics").body
    assert "source" not in synced.ok("stats").stdout
