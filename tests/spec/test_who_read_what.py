"""An owner sees which grants read which streams, and how often, but none of the data."""

import os
from pathlib import Path

import orjson
import pytest
import requests

from service.place import spelled
from tests.helpers import worlds
from tests.helpers.operated import operated
from tests.helpers.places import ENGINE
from tests.helpers.shell import Shell
from tests.helpers.two_owners import letters
from tests.helpers.worlds import House, World

WORKERS, TIMES = 3, 12
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
SEARCH = {"name": "search", "arguments": {"query": "lantern"}}


@pytest.fixture
def house(tmp_path: Path) -> House:
    connections = (*letters("home", 2).connections, *letters("work", 2).connections)
    return worlds.build(World(connections), tmp_path)


def log(house: House, *options: str) -> list[dict[str, object]]:
    shell = Shell({"RUNG_STORE": spelled(house.path)})
    uses = orjson.loads(shell.ok("log", "--json", *options).stdout)["uses"]
    assert isinstance(uses, list)
    return uses


def test_the_counts_of_all_workers_add_up(house: House) -> None:
    (mine, token), (other, narrow) = (
        house.grant(label="laptop"),
        house.grant({"connection_id": "home"}),
    )
    with operated(house.environment, workers=WORKERS) as server:

        def ask(path: str, token: str) -> requests.Response:
            headers = {"Authorization": f"Bearer {token}"}
            return requests.get(f"{server.url}{path}", headers=headers, timeout=30)

        for _ in range(TIMES):
            assert ask("/v1/search?q=lantern", token).status_code == 200
            assert ask("/v1/streams/letters/records/home-1?connection_id=home", narrow).ok
        assert ask("/v1/search?q=nowhere", narrow).ok
        assert (
            ask("/v1/streams/letters/records/absent?connection_id=home", narrow).status_code == 404
        )
        for _ in range(TIMES):  # the second and later ones come from a cache
            headers = {"Authorization": f"Bearer {narrow}"}
            message = {**CALL, "params": SEARCH}
            assert requests.post(f"{server.url}/mcp", json=message, headers=headers, timeout=30).ok
        lines = [line for line in server.lines() if line.get("operation") == "search"]
        assert {line["grant"] for line in lines} == {mine, other}
        assert token not in server.said() and "lantern" not in server.said()
    seen = {
        (use["grant_id"], use["operation"], use["stream"]): use["requests"] for use in log(house)
    }
    assert seen == {
        (mine, "search", "home/letters"): TIMES,
        (mine, "search", "work/letters"): TIMES,
        (other, "search", "home/letters"): TIMES,
        (other, "search", ""): 1,
        (other, "fetch", "home/letters"): TIMES,
        (other, "fetch", ""): 1,
    }
    assert {use["grant_id"] for use in log(house, "--grant", "laptop")} == {mine}
    assert log(house, "--since", "2999-01-01") == []
    if ENGINE != "postgres":
        kept = b"".join(
            path.read_bytes() for path in Path(f"{house.path}.access").parent.glob("*.access*")
        )
        assert b"lantern" not in kept and token.encode() not in kept


@pytest.mark.skipif(ENGINE == "postgres", reason="a database has no file beside it")
def test_without_a_place_for_counts_everything_else_works(house: House) -> None:
    os.mkdir(f"{house.path}.access")
    token = house.grant()[1]
    with operated(house.environment, workers=1) as server:
        headers = {"Authorization": f"Bearer {token}"}
        while "The request counts and the latest time could not be stored" not in server.said():
            found = requests.get(f"{server.url}/v1/search?q=lantern", headers=headers, timeout=30)
            assert found.ok
    shell = Shell({"RUNG_STORE": spelled(house.path)})
    refused = shell.run("log")
    assert refused.exit_code == 1 and "Access data cannot be written" in refused.stderr
