"""Two servers over one database: what one of them suffers is no matter of the other."""

import json
from urllib.request import Request, urlopen

from tests.helpers import worlds
from tests.helpers.places import new_database
from tests.helpers.server import serving
from tests.helpers.two_owners import letters
from tests.helpers.worlds import House

ASKED = 10


def test_cursors_and_revocation_hold_across_servers_and_one_may_die() -> None:
    place = new_database()
    worlds.fill(place, letters("home", 5))
    house = House(place)
    grant_id, token = house.grant()
    with serving("wsgi:app", house.environment) as one:
        with serving("wsgi:app", house.environment) as other:
            page = get(other, "/v1/search?q=lantern&limit=2", token)
            cursor = page["next_cursor"]
        # The other one is gone; its cursor goes on here.
        for _ in range(ASKED):
            rest = get(one, f"/v1/search?q=lantern&limit=9&cursor={cursor}", token)
            assert len(rest["data"]) == 3
        house.revoke(grant_id)
        assert get(one, "/v1/search?q=lantern", token) == {"status": 401}


def get(base: str, path: str, token: str) -> dict[str, object]:
    request = Request(base + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request) as answer:
            return dict(json.load(answer))
    except OSError as error:
        return {"status": getattr(error, "code", None)}
