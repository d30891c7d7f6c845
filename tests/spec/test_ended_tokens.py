"""An expired, revoked or unknown token answers 401 with a challenge, so that clients refresh."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import worlds
from tests.helpers.api import Answer, Api
from tests.helpers.server import serving
from tests.helpers.shell import Shell
from tests.helpers.signin import run_command

LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
CODES = ("grant_expired", "grant_revoked", "invalid_token")
SERVER = "https://as.example.com"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("ended"))


@pytest.fixture(scope="module")
def tokens(house: worlds.House) -> dict[str, str]:
    """A token for each code."""
    revoked_id, revoked = house.grant()
    house.revoke(revoked_id)
    expired = house.grant(expires_at="2020-01-01T00:00:00Z")[1]
    return dict(zip(CODES, (expired, revoked, "rung_" + "x" * 43)))


@pytest.fixture(scope="module")
def origin(house: worlds.House) -> Iterator[str]:
    with serving("service.app:create_app()", house.environment) as url:
        yield url


@pytest.fixture(scope="module")
def front(origin: str) -> Iterator[str]:
    """A Rung in front of the other, to which it sends every token that it does not know."""
    environment = {"RUNG_UPSTREAM_URL": origin, "RUNG_AUTHORIZATION_SERVERS": SERVER}
    with serving("service.app:create_app()", environment) as url:
        yield url


def both(url: str, token: str) -> tuple[Answer, Answer]:
    """The answers of REST and MCP."""
    api = Api(url, token)
    return api.get("/v1/schema"), api.post(LIST_TOOLS)


@pytest.mark.parametrize("code", CODES)
def test_a_token_that_is_no_good_is_401_with_its_code_and_a_challenge(
    origin: str, tokens: dict[str, str], code: str
) -> None:
    rest, mcp = both(origin, tokens[code])
    assert rest.status == mcp.status == 401
    assert rest.error["code"] == mcp.body["error"]["data"]["code"] == code
    assert rest.error["type"] == "authentication_error"
    for answer in (rest, mcp):
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="rung", error="invalid_token"'


@pytest.mark.parametrize("code", CODES)
def test_the_challenge_names_the_metadata_of_a_server_that_gives_tokens(
    house: worlds.House, tokens: dict[str, str], code: str
) -> None:
    run_command(house, "grant", "map", SERVER, "ada", house.grant()[0])
    app = house.application(RUNG_AUTHORIZATION_SERVERS=SERVER)
    for answer in (Api(app, tokens[code]).get("/v1/schema"), Api(app, tokens[code]).post(b"{}")):
        challenge = answer.headers["WWW-Authenticate"]
        assert 'error="invalid_token"' in challenge and "resource_metadata=" in challenge


@pytest.mark.parametrize("code", CODES[:2])
def test_a_grant_that_ended_at_a_server_behind_this_one_is_401_too(
    front: str, tokens: dict[str, str], code: str
) -> None:
    rest, mcp = both(front, tokens[code])
    assert rest.error["code"] == mcp.body["error"]["data"]["code"] == code
    for answer in (rest, mcp):
        assert answer.status == 401, answer
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("code", CODES)
def test_commands_leave_with_3_and_name_the_code(
    house: worlds.House, origin: str, tokens: dict[str, str], code: str
) -> None:
    for source in ({"RUNG_STORE": str(house.path)}, {"RUNG_URL": origin}):
        shell = Shell({**source, "RUNG_TOKEN": tokens[code]})
        for form in ((), ("--json",)):
            result = shell.run("search", "lantern", *form)
            assert (result.exit_code, result.stdout) == (3, ""), result.output
            assert code in result.stderr
    at_store = Shell({"RUNG_STORE": str(house.path), "RUNG_TOKEN": tokens[code]})
    stderr = at_store.run("search", "lantern").stderr
    assert "rung grant create" in stderr
    assert ("does not accept this token" in stderr) == (code == "invalid_token")


def test_without_a_token_the_challenge_names_no_error(origin: str) -> None:
    answer = Api(origin, None).get("/v1/schema")
    assert (answer.status, answer.error["code"]) == (401, "authentication_error")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="rung"'


def test_a_revoked_member_of_a_package_is_not_the_callers_token(
    house: worlds.House, tmp_path: Path
) -> None:
    """The package's own token is still good, so a client must not refresh it."""
    member, _ = house.grant()
    shell = Shell({"RUNG_STORE": str(house.path), "RUNG_SECRET_KEY": "a secret of tests only"})
    made = shell.ok("package", "create", "--grant", member, "--label", "one")
    token = next(word for word in made.output.split() if word.startswith("rung_pkg_"))
    api = Api(house.app, token)
    assert api.get("/v1/schema").status == 200
    house.revoke(member)
    answer = api.rest("/v1/search", q="lantern")
    assert (answer.status, answer.error["code"]) == (403, "grant_revoked")
