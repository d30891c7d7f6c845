"""A loopback door to a server elsewhere, for test programs that cannot send a token."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import requests

from tests.helpers.loopback import Asked, Reply, answering
from tests.helpers.waiting import WAIT_SECONDS

#: About the connection to the door, not the one behind it.
OF_THE_LINE = (
    *("connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"),
)


@contextmanager
def doorman(target: str, token: str | None) -> Iterator[str]:
    """Opens the door and yields its URL, with the path of `target`.

    Requests go on with the token, and with the target's address in the place of the door's.
    """
    scheme, host, path = urlsplit(target)[:3]
    with requests.Session() as session:
        session.trust_env = False  # no password of ~/.netrc in the place of the token

        def hand_on(asked: Asked) -> Reply:
            headers = _handed_on(asked.headers)
            own = urlsplit(server.url).netloc
            if headers.get("host") == own:
                headers["host"] = host
            if headers.get("origin") == f"http://{own}":
                headers["origin"] = f"{scheme}://{host}"
            if token is not None:
                headers["authorization"] = f"Bearer {token}"
            found = session.request(
                asked.method, target, headers=headers, data=asked.body, timeout=WAIT_SECONDS
            )
            return Reply(found.status_code, found.content, _handed_on(found.headers))

        with answering(hand_on) as server:
            yield f"{server.url}{path}"


def _handed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in OF_THE_LINE}
