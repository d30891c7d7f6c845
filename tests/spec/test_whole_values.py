"""REST gives values up to 1 MiB whole and typed; pages and records stay within 8 MiB."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from tests.helpers import stores
from tests.helpers.api import Answer, Api, path, record_path
from tests.helpers.operated import Operated, operated
from tests.helpers.shell import Shell
from tests.helpers.stores import OBJECT, TEXT, Connection, Stream

MIB = 1_048_576
PAGE = 8 * MIB
LIST = {"type": "array"}
WORDS = "lorem ipsum dolor sit amet "

LONG = WORDS * 12_000  # 324,000 bytes
WIDE = "größe 語 " * 40_000  # 13 bytes each
NESTED = {"rows": [{"n": number, "text": WORDS} for number in range(5_000)], "b": None, "a": True}
NUMBERS = list(range(40_000))
EDGE, OVER = "e" * MIB, "o" * (MIB + 1)
RAW = base64.b64encode(Random(7).randbytes(150_000)).decode()
CONTROL = "\x01" * 900_000  # six bytes each as JSON

WIDE_FIELDS = tuple(f"f{number:02}" for number in range(50))
HEAVY = {f"big{number:02}": "h" * (500_000 + 40_000 * number) for number in range(12)}
MANY = {f"small{number:03}": f"{number:03}" * 20_000 for number in range(150)}
SLABS = {f"slab{number}": "s" * 9_000_000 for number in range(4)}


def text_fields(*names: str) -> dict[str, Any]:
    return {name: TEXT for name in names}


def stream(name: str, properties: dict[str, Any], *records: dict[str, Any]) -> Stream:
    return Stream(name, {"id": {"type": "string"}, **properties}, records)


VALUES = {
    "text": LONG,
    "wide": WIDE,
    "nested": NESTED,
    "numbers": NUMBERS,
    "edge": EDGE,
    "over": OVER,
    "raw": RAW,
}


def connections() -> list[Connection]:
    values = {name: TEXT for name in VALUES} | {"nested": OBJECT, "numbers": LIST}
    full = {name: (f"{name} {WORDS}" * 2_000)[:60_000] for name in WIDE_FIELDS}
    pages = [{"id": f"p{number:02}", **full} for number in range(40)]
    return [
        Connection(
            "home",
            [
                stream("values", values, {"id": "one", **VALUES}),
                stream("pages", text_fields(*WIDE_FIELDS), *pages),
                stream("heavy", text_fields(*HEAVY), {"id": "one", **HEAVY}),
                stream("many", text_fields(*MANY), {"id": "one", **MANY}),
                stream(
                    "control",
                    text_fields("c1", "c2", "c3"),
                    {"id": "one", "c1": CONTROL, "c2": CONTROL, "c3": CONTROL},
                ),
                stream("slabs", text_fields(*SLABS), {"id": "one", **SLABS}),
            ],
            "archive",
        )
    ]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> stores.House:
    return stores.build(connections(), tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def server(house: stores.House) -> Iterator[Operated]:
    with operated(house.environment, workers=1, threads=2) as found:
        yield found


@pytest.fixture(scope="module")
def api(house: stores.House, server: Operated) -> Api:
    return Api(server.url, house.grant()[1])


@pytest.fixture(scope="module")
def shell(server: Operated, api: Api) -> Shell:
    return Shell({"RUNG_URL": server.url, "RUNG_TOKEN": str(api.token)})


@pytest.fixture(scope="module")
def at_store(house: stores.House, api: Api) -> Shell:
    environ = {"RUNG_STORE": str(house.path), "RUNG_TOKEN": str(api.token)}
    return Shell({**environ, "RUNG_SECRET_KEY": house.environment["RUNG_SECRET_KEY"]})


def data_of(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, str(answer)[:500]
    body = answer.body
    found: dict[str, Any] = (
        body["data"][0]["data"] if isinstance(body["data"], list) else body["data"]
    )
    return found


def size(answer: Answer) -> int:
    return len(orjson.dumps(answer.body))


def cut(data: dict[str, Any]) -> dict[str, Any]:
    """The previews among the fields of a record."""
    return {
        name: value
        for name, value in data.items()
        if isinstance(value, dict) and value.get("object") == "field_preview"
    }


ROUTES = {
    "list": path("values", "records"),
    "detail": record_path("values", "one"),
    "changes": path("values", "records") + "?changes_since=beginning",
}


@pytest.mark.parametrize("route", ROUTES)
def test_values_up_to_1_mib_are_whole_with_their_type(api: Api, route: str) -> None:
    data = data_of(api.get(ROUTES[route]))
    for name in ("text", "wide", "nested", "numbers", "edge"):
        assert data[name] == VALUES[name], name
    assert list(cut(data)) == ["over"]


@pytest.mark.parametrize("route", ROUTES)
def test_a_larger_value_is_a_preview_whose_read_gives_it(api: Api, route: str) -> None:
    preview = data_of(api.get(ROUTES[route]))["over"]
    assert preview["size_chars"] == len(OVER) and OVER.startswith(preview["preview_text"])
    read = preview["read"]
    query = urlencode({"field": read["field"], "connection_id": read["connection_id"]})
    window = api.get(f"{read['route']}?{query}&limit_chars=16384").body["window"]
    assert window["text"] == OVER[:16_384] and window["total_chars"] == len(OVER)


@pytest.mark.parametrize("route", ROUTES)
def test_base64_stays_metadata(api: Api, route: str) -> None:
    raw = data_of(api.get(ROUTES[route]))["raw"]
    assert (raw["object"], raw["encoding"]) == ("binary_field", "base64")
    assert raw["size_bytes"] == len(base64.b64decode(RAW))
    assert data_of(api.get(raw["fetch_url"])) == {"raw": RAW}


def test_a_field_named_on_the_detail_route_is_whole(api: Api) -> None:
    data = data_of(api.get(f"{ROUTES['detail']}?fields=over,raw,nested"))
    assert data == {"over": OVER, "raw": RAW, "nested": NESTED}


def test_fields_over_32_mb_together_are_413_with_the_route_that_reads_them(api: Api) -> None:
    route = record_path("slabs", "one")
    assert data_of(api.get(f"{route}?fields=slab0,slab1,slab2")) == {
        name: SLABS[name] for name in ("slab0", "slab1", "slab2")
    }
    refused = api.get(f"{route}?fields={','.join(SLABS)}")
    assert (refused.status, refused.error["param"]) == (413, "fields")
    read = refused.error["read"]
    assert read["route"].endswith("/field-window")
    query = urlencode({"field": read["field"], "connection_id": read["connection_id"]})
    assert api.get(f"{read['route']}?{query}").body["window"]["total_chars"] == 9_000_000


@pytest.mark.parametrize("name", ["heavy", "many", "control"])
@pytest.mark.parametrize("kind", ["list", "detail"])
def test_a_record_over_8_mib_gives_its_largest_fields_as_previews(
    api: Api, name: str, kind: str
) -> None:
    target = path(name, "records") if kind == "list" else record_path(name, "one")
    answer = api.get(target)
    data = data_of(answer)
    stored = {"heavy": HEAVY, "many": MANY}.get(name, dict.fromkeys(("c1", "c2", "c3"), CONTROL))
    assert list(data) == ["id", *stored]
    previews = cut(data)
    whole = {field: data[field] for field in stored if field not in previews}
    assert whole == {field: stored[field] for field in whole}
    assert whole and previews, "neither all nor nothing"
    for field, preview in previews.items():
        assert preview["size_chars"] == len(stored[field])
        assert stored[field].startswith(preview["preview_text"])
        assert len(stored[field]) >= max(map(len, whole.values()))
    assert PAGE - MIB - 10_000 <= size(answer) + (5 * MIB if name == "control" else 0)
    assert size(answer) <= PAGE + 2_000


def pages(api: Api, target: str, name: str) -> Iterator[Answer]:
    """Every page of a list; `name` is the member with the cursor."""
    cursor = None
    while True:
        answer = api.rest(target, **({"limit": 100} | ({name: cursor} if cursor else {})))
        assert answer.status == 200
        yield answer
        cursor = answer.body.get("next_cursor")
        if cursor is None:
            return


def test_a_page_ends_early_at_8_mib_with_a_cursor_and_nothing_is_lost(api: Api) -> None:
    ids = []
    for answer in pages(api, path("pages", "records"), "cursor"):
        assert size(answer) <= PAGE + 2_000 and answer.body["data"]
        ids += [row["id"] for row in answer.body["data"]]
        assert not any(cut(row["data"]) for row in answer.body["data"])
    assert ids == [f"p{number:02}" for number in range(40)]


def test_a_page_of_changes_ends_early_too(api: Api) -> None:
    target, ids = path("pages", "records"), []
    answer = api.rest(target, changes_since="beginning", limit=100)
    while True:
        assert size(answer) <= PAGE + 2_000 and answer.body["data"]
        ids += [row["id"] for row in answer.body["data"]]
        if not answer.body["has_more"]:
            break
        answer = api.rest(target, cursor=answer.body["next_cursor"], limit=100)
    assert sorted(ids) == [f"p{number:02}" for number in range(40)]


def test_a_page_costs_no_more_memory_than_it_may_hold(server: Operated, api: Api) -> None:
    """The 40 records hold 120 MB; a page of them about 8."""
    found = re.search(r"Booting worker with pid: (\d+)", server.said())
    assert found is not None, server.said()
    worker = Path("/proc") / found[1]
    api.get("/v1/schema")
    (worker / "clear_refs").write_text("5")
    before = peak(worker)
    for target in (path("pages", "records"), path("heavy", "records"), path("values", "records")):
        assert api.rest(target, limit=100).status == 200
    grown = peak(worker) - before
    assert grown < 64 * MIB, f"{grown // MIB} MiB"


def peak(process: Path) -> int:
    """The peak memory of a process since the last reset, in bytes."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
    return int(line) * 1_024


def test_tools_stay_bounded(api: Api) -> None:
    listed = api.mcp("query_records", stream="values")
    assert len(orjson.dumps(listed)) < 100_000
    fetched = api.mcp("fetch", id="home/values:one")
    assert len(fetched["structuredContent"]["text"]) <= 16_384


def test_commands_print_the_body_rest_gives(api: Api, shell: Shell, at_store: Shell) -> None:
    expected = data_of(api.get(ROUTES["list"]))
    for one in (shell, at_store):
        body = orjson.loads(one.ok("query", "values", "--json").stdout)
        assert body["data"][0]["data"] == expected
        row = orjson.loads(one.ok("query", "values", "--jsonl").stdout)
        assert row["data"] == expected
        assert LONG in one.ok("query", "values", "--csv").stdout
        fetched = orjson.loads(one.ok("fetch", "home/values:one", "--json").stdout)
        assert fetched["data"] == expected


def test_an_export_holds_every_value_whole(shell: Shell, at_store: Shell, tmp_path: Path) -> None:
    for number, one in enumerate((shell, at_store)):
        for words in (("stream", "values"), ("record", "home/values:one")):
            out = tmp_path / f"{words[0]}{number}.ndjson"
            one.ok("export", *words, "-o", str(out))
            assert orjson.loads(out.read_bytes())["data"] == {"id": "one", **VALUES}, words
        out = tmp_path / f"heavy{number}.ndjson"
        one.ok("export", "stream", "heavy", "-o", str(out))
        assert orjson.loads(out.read_bytes())["data"] == {"id": "one", **HEAVY}
