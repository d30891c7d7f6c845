"""A client that sends too many requests is told how long to wait; no other client waits."""

import pytest

from service import bootstrap, settings
from service.app import create_app
from tests.helpers.api import Answer, Api
from tests.helpers.server import UNLIMITED
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

ONE, OTHER = "203.0.113.7", "198.51.100.7"
#: A proxy is trusted, so that clients have their own addresses.
PROXY = {"RUNG_TRUSTED_PROXY_HOPS": "1"}
#: A library without a token, in addition to the records.
LIBRARY = {"RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db")}
PAPERS = "/papers/v1/search?q=tides"


def ask(api: Api, address: str, target: str = "/v1/streams") -> Answer:
    return api.get(target, **{"X-Forwarded-For": address})


def standing(answer: Answer) -> tuple[int, int]:
    """(limit, remaining), which every counted answer has."""
    assert 0 < int(answer.headers["RateLimit-Reset"]) <= 3_600
    return int(answer.headers["RateLimit-Limit"]), int(answer.headers["RateLimit-Remaining"])


def test_a_token_may_ask_so_often_from_wherever_it_asks(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_TOKEN="2/hour")
    api, other = (Api(app, small_house.grant()[1]) for _ in range(2))
    assert standing(api.get("/v1/streams")) == (2, 1)
    assert standing(api.get("/v1/streams")) == (2, 0)
    refused = api.get("/v1/streams")
    assert refused.status == 429 and refused.error["code"] == "rate_limit_exceeded"
    assert refused.error["type"] == "rate_limit_error" and refused.error["hint"]
    assert 0 < int(refused.headers["Retry-After"]) <= 3_600
    assert standing(refused) == (2, 0)
    assert other.get("/v1/streams").status == 200


def test_a_refusal_over_mcp_is_an_error_of_json_rpc(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_TOKEN="1/hour")
    api = Api(app, small_house.grant()[1])
    assert "result" in api.rpc("ping", {})
    refused = api.post(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    assert refused.status == 429
    assert refused.body["error"]["data"]["code"] == "rate_limit_exceeded"
    assert refused.headers["Retry-After"] and standing(refused) == (1, 0)


def test_an_address_may_ask_so_often_without_a_token(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_ADDRESS="2/hour", **PROXY, **LIBRARY)
    api = Api(app, None)
    assert [ask(api, ONE, PAPERS).status for _ in range(4)] == [200, 200, 429, 429]
    assert ask(api, OTHER, PAPERS).status == 200
    assert {ask(Api(app, small_house.grant()[1]), ONE).status for _ in range(4)} == {200}


def test_limits_are_on_unless_they_are_set(small_house: House) -> None:
    found = {**small_house.environment, **PROXY, **LIBRARY}
    for name in UNLIMITED:
        found.pop(name)
    app = create_app(bootstrap.build(settings.load(found)))
    token = small_house.grant()[1]
    assert standing(ask(Api(app, token), ONE)) == (600, 599)
    assert standing(ask(Api(app, None), ONE, PAPERS)) == (300, 299)


def test_addresses_of_one_ipv6_network_count_together(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_ADDRESS="1/hour", **PROXY, **LIBRARY)
    api = Api(app, None)
    assert ask(api, "2001:db8:1:2::1", PAPERS).status == 200
    assert ask(api, "2001:db8:1:2:ffff::9", PAPERS).status == 429
    assert ask(api, "2001:db8:1:3::1", PAPERS).status == 200


def test_an_address_is_one_client_however_a_proxy_spells_it(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_ADDRESS="2/hour", **PROXY, **LIBRARY)
    api = Api(app, None)
    spelled = (ONE, f"::ffff:{ONE}", f"{ONE}:50123")
    assert [ask(api, address, PAPERS).status for address in spelled] == [200, 200, 429]
    assert ask(api, f"::ffff:{OTHER}", PAPERS).status == 200, "all of IPv4 is not one client"
    assert [ask(api, f"[2001:db8::{n}]:443", PAPERS).status for n in (1, 2, 3)] == [200, 200, 429]


def test_who_sends_tokens_that_are_refused_has_to_wait(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_FAILURES="2/hour", **PROXY)
    stranger, known = Api(app, "rung_of-nobody"), Api(app, small_house.grant()[1])
    assert [ask(stranger, ONE).status for _ in range(3)] == [401, 401, 429]
    assert ask(known, ONE).status == 429, "a right guess is no better than a wrong one"
    assert ask(known, OTHER).status == 200


@pytest.mark.parametrize("env", [{}, PROXY])
def test_this_machine_is_not_counted_unless_a_proxy_tells_addresses(
    small_house: House, env: dict[str, str]
) -> None:
    limits = {"RUNG_RATE_LIMIT_FAILURES": "1/hour", "RUNG_RATE_LIMIT_ADDRESS": "1/hour"}
    app = small_house.application(**limits, **env)
    stranger = Api(app, "rung_of-nobody")
    assert {stranger.get("/v1/streams").status for _ in range(4)} == ({401, 429} if env else {401})


def test_health_is_never_refused(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_ADDRESS="1/hour", **PROXY, **LIBRARY)
    api = Api(app, None)
    assert [ask(api, ONE, PAPERS).status for _ in range(2)] == [200, 429]
    assert {ask(api, ONE, path).status for path in ("/healthz", "/readyz") for _ in range(3)} == {
        200
    }


def test_nothing_is_counted_where_no_limit_is_set(small_house: House) -> None:
    answer = Api(small_house.app, small_house.grant()[1]).get("/v1/streams")
    assert not [name for name in answer.headers if name.startswith("RateLimit")]
