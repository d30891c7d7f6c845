"""The reference server as recorded: answers each recorded request with its recorded answer.

    with replaying() as server:
        origin = Origin(server.url)          # tokens are called `full`, `narrow`, `res`, `owner`

A request that was not recorded gets status 599 and is added to `server.misses`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson

from tests.helpers.loopback import Asked, Loopback, Reply, answering

RECORDED = Path(__file__).parents[1] / "data" / "pdpp"
#: The defaults of a server: parameters with these values make no difference.
DEFAULTS = {("limit", "25")}
APART = ("content-length", "connection")
#: Answers that depend on a header, which a request without it does not get.
OF_A_HEADER = ("version_bad",)

Recorded = dict[str, Any]
Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


def recorded(name: str) -> Recorded:
    """One recorded answer with its request."""
    found: Recorded = orjson.loads((RECORDED / f"{name}.json").read_bytes())
    return found


@cache
def refusals() -> tuple[Recorded, ...]:
    """Every recorded answer that is not a success; each has a `name`."""
    return tuple(orjson.loads((RECORDED / "refusals.json").read_bytes()))


class Replay:
    """Answers from the recordings. `misses` are the requests that were not recorded."""

    def __init__(self) -> None:
        names = [path.stem for path in sorted(RECORDED.glob("*.json")) if path.stem != "refusals"]
        found = [each for each in map(recorded, names) if "token" in each]
        self.misses: list[str] = []
        refused = [each for each in refusals() if each["name"] not in OF_A_HEADER]
        self._known = {_key_of(each): each for each in (*refused, *found)}

    def __call__(self, asked: Asked) -> Reply:
        found = self._known.get(_key(asked.method, asked.token, asked.target))
        if found is None:
            self.misses.append(f"{asked.token} {asked.method} {asked.target}")
            return Reply(599, b"nobody recorded this")
        headers = {
            name: value
            for name, value in found["headers"].items()
            if name not in APART or asked.method == "HEAD"
        }
        return Reply(found["status"], raw_body(found), headers)


def raw_body(found: Recorded) -> bytes:
    """The bytes of a recorded body."""
    body = found["body"]
    if isinstance(body, dict) and "_raw" in body:
        return str(body["_raw"]).encode()
    return orjson.dumps(body)


@contextmanager
def replaying() -> Iterator[Loopback]:
    """Runs the reference server. Fails on exit if a request was not recorded."""
    replay = Replay()
    with answering(replay) as server:
        yield server
    assert not replay.misses, replay.misses


def _key_of(found: Recorded) -> Key:
    method, target = found["request"].split(" ", 1)
    return _key(method, found["token"] or "", target)


def _key(method: str, token: str, target: str) -> Key:
    parts = urlsplit(target)
    pairs = [
        (name.removesuffix("[]"), one)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        for one in (value.split(",") if name == "fields" else [value])
    ]
    asked = sorted(pair for pair in pairs if pair not in DEFAULTS)
    return method, token, unquote(parts.path), tuple(asked)
