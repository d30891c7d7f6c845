"""Metrics are summed over workers, have a bounded set of names, and are not public."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.running import noted
from tests.helpers import canaries, worlds
from tests.helpers.api import Api
from tests.helpers.canaries import words_in
from tests.helpers.operated import Operated, operated
from tests.spec.isolation_calls import PLAN

TOKEN = "a-token-for-the-metrics"
ASKED = 12
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(canaries.world_of(PLAN), tmp_path_factory.mktemp("counted"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def server(house: worlds.House, folder: Path) -> Iterator[Operated]:
    env = {"RUNG_METRICS_TOKEN": TOKEN, "TMPDIR": str(folder)}
    with operated({**house.environment, **env}) as found:
        yield found
    assert not list(folder.iterdir()), "the counts are removed at the end"


@pytest.fixture(scope="module")
def api(house: worlds.House, server: Operated) -> Api:
    return Api(server.url, house.grant()[1])


def samples(text: bytes) -> Samples:
    """(name, labels) to value."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def test_requests_of_all_workers_are_counted(api: Api) -> None:
    labels = {"surface": "rest", "operation": "streams"}
    before = samples(api.get("/metrics").body)
    sent = sum(len(str(api.get("/v1/streams").headers["Content-Length"])) > 0 for _ in range(ASKED))
    found = samples(api.get("/metrics").body)
    assert value(found, "rung_metrics_shared") == 1
    for name, more in (
        ("rung_requests_total", {"status": "2xx"}),
        ("rung_request_seconds_count", {}),
    ):
        assert value(found, name, **labels, **more) - value(before, name, **labels, **more) == sent
    assert value(found, "rung_requests_in_flight") == 1, "the one that asks"
    assert value(found, "rung_response_bytes_total", surface="rest") > 0


def test_errors_and_unknown_names_stay_within_closed_sets(api: Api, server: Operated) -> None:
    before = len(samples(api.get("/metrics").body))
    for number in range(ASKED):
        name = canaries.word("metric", number)
        assert api.get(f"/v1/streams/{name}/records").status == 403
        assert api.get(f"/{name}").status == 404
        assert api.rpc(name, {})["error"]
        assert api.send(f"M{number}", f"/{name}", b"", {}).status >= 400
        assert Api(server.url, f"rung_{name}").get("/v1/schema").status == 401
    answer = api.get("/metrics")
    found = samples(answer.body)
    assert value(found, "rung_errors_total", surface="rest", code="grant_stream_not_allowed")
    assert value(found, "rung_requests_total", surface="mcp", operation="other", status="2xx")
    assert not words_in(answer.body.decode())
    once = len(found)
    for number in range(ASKED, 2 * ASKED):
        name = canaries.word("metric", number)
        assert api.get(f"/v1/streams/{name}/records").status == 403
        assert api.rpc(name, {})["error"]
    assert len(samples(api.get("/metrics").body)) == once > before


def test_metrics_are_for_this_machine_or_for_a_token(server: Operated) -> None:
    local = Api(server.url, None)
    assert local.get("/metrics").status == 200
    for name in ("X-Real-Ip", "Via", "X-Forwarded-Proto", "Cf-Connecting-Ip"):
        assert local.get("/metrics", **{name: "127.0.0.1"}).status == 403, name
    through = {"X-Forwarded-For": "203.0.113.9"}
    refused = local.get("/metrics", **through)
    assert refused.status == 403 and "RUNG_METRICS_TOKEN" in refused.error["hint"]
    assert local.get("/metrics", Authorization=f"Bearer {TOKEN}", **through).status == 200
    assert local.get("/metrics", Authorization="Bearer another-token", **through).status == 403


def test_metrics_can_be_open_or_off(house: worlds.House) -> None:
    through = {"X-Forwarded-For": "203.0.113.9"}
    opened = Api(house.application(RUNG_METRICS="open"), None)
    assert opened.get("/metrics", **through).status == 200
    closed = Api(house.application(RUNG_METRICS="off"), None)
    assert closed.get("/metrics").status == 404


def test_without_a_folder_a_worker_says_that_its_counts_are_its_own(house: worlds.House) -> None:
    """For example in this process, which no server started."""
    api = house.api()
    labels = {"surface": "rest", "operation": "streams", "status": "2xx"}
    before = samples(api.get("/metrics").body)
    assert api.get("/v1/streams").status == 200
    found = samples(api.get("/metrics").body)
    assert value(found, "rung_metrics_shared") == 0
    name = "rung_requests_total"
    assert value(found, name, **labels) == value(before, name, **labels) + 1


def test_every_code_we_give_is_told_apart() -> None:
    given = set[str]()
    for package in ("evidence", "renderers", "service"):
        for file in Path(package).rglob("*.py"):
            if file.parts[1] in ("cli", "demo"):  # they answer nobody over HTTP
                continue
            given |= set(re.findall(r'\bcode(?:: str)?="([a-z_]+)"', file.read_text()))
            given |= set(re.findall(r'default_code = "([a-z_]+)"', file.read_text()))
    assert given - noted.CODES == set()
