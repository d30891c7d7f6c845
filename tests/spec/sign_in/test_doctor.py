"""`rung doctor` at a server with sign-in, with something in front that answers for it."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from service.__main__ import rung
from tests.helpers.fronts import HTML, PAGE, passing
from tests.helpers.loopback import Asked, Loopback, Reply, answering
from tests.helpers.server import serving
from tests.helpers.worlds import House

STEPS = {
    "/register": "registration",
    "/authorize": "authorization",
    "/token": "token",
    "/revoke": "revocation",
}


class Front:
    """What is in front: it passes requests on, but answers for one path itself."""

    behind, path = "", ""

    def __call__(self, asked: Asked) -> Reply:
        if asked.target == self.path:
            return Reply(200, PAGE, HTML)
        return passing(self.behind, asked)


@pytest.fixture(scope="module")
def front() -> Front:
    return Front()


@pytest.fixture(scope="module")
def gate(house: House, front: Front) -> Iterator[Loopback]:
    with answering(front) as found:
        environ = {**house.environment, "RUNG_SIGN_IN": "on", "RUNG_PUBLIC_URL": found.url}
        with serving("wsgi:app", environ) as front.behind:
            yield found


@pytest.mark.parametrize("path", ["", *STEPS])
def test_the_step_of_a_sign_in_that_fails_is_named(gate: Loopback, front: Front, path: str) -> None:
    front.path = path
    done = CliRunner().invoke(rung, ["doctor", gate.url, "--json"], env={"RUNG_TOKEN": ""})
    found = {one["step"]: one for one in json.loads(done.stdout)["steps"]}["challenge"]
    if not path:
        assert found["verdict"] == "ok" and "each sign-in endpoint answers" in found["told"]
    else:
        assert found["verdict"] == "fail" and f"the {STEPS[path]} endpoint" in found["told"]
        assert "/register" in found["change"]
