"""Hundreds of path strings through every name a client can send: no file outside is opened."""

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.helpers.api import Api
from tests.helpers.scale import times
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

LIBRARY = DATA / "papers"
CANARY = "/etc/hostname"
STEPS = ("../", "..\\", "..%2f", "%2e%2e/", "%252e%252e%252f", "....//", "..;/", "\u2025/", "./../")
TARGETS = (
    "etc/hostname",
    "etc/passwd",
    "proc/self/environ",
    "proc/self/cwd/setup.cfg",
    "root/.netrc",
)
STARTS = (
    "",
    "/",
    "//",
    "file://",
    "file:///",
    "http://127.0.0.1:9/",
    "https://evil.example/",
    "\\\\h\\",
)
ENDS = ("", "%00", "\u0000", "#", "?", ".json", "%00.md", "/", "\n", "::$DATA")

_watching: list[str] | None = None


def _noted(event: str, given: tuple[Any, ...]) -> None:
    if _watching is None:
        return
    if event == "open" and isinstance(given[0], (str, bytes)):
        _watching.append(os.fsdecode(given[0]))
    elif event in ("socket.connect", "socket.getaddrinfo"):
        _watching.append(f"{event} {given}")


sys.addaudithook(_noted)


@contextmanager
def watched() -> Iterator[list[str]]:
    """The files that are opened meanwhile, and the hosts that are asked."""
    global _watching
    _watching = seen = []
    try:
        yield seen
    finally:
        _watching = None


def strings(count: int) -> Iterator[str]:
    draw = random.Random(11)
    for _ in range(count):
        up = draw.choice(STEPS) * draw.randrange(9)
        yield draw.choice(STARTS) + up + draw.choice(TARGETS) + draw.choice(ENDS)


def calls(api: Api, text: str) -> None:
    """Sends a string as every kind of name."""
    raw, part = text.replace("\n", "%0A").replace("\u0000", "%00"), quote(text, safe="")
    targets = [
        *(f"/v1/streams/{part}", f"/v1/streams/messages/records/{part}", f"/v1/blobs/{part}"),
        *(f"/v1/streams/{part}/records?cursor={part}", f"/v1/schema?stream={part}"),
        *(f"/papers/v1/papers/{part}", f"/papers/v1/papers/{part}/source?language={part}"),
        *(f"/papers/v1/papers/{part}/summary?template={part}", f"/static/{part}", f"/{part}"),
        quote(f"/v1/{raw}", safe="/%;?#&=:.\\").replace("\\", "%5C"),
    ]
    for target in targets:
        answer = api.get(target)
        assert answer.status < 500, (target, answer)
    for tool, args in (
        ("fetch", {"id": text}),
        ("read_record_field", {"id": text, "field_path": text}),
        ("query_records", {"stream": text, "cursor": text}),
    ):
        assert "isError" in api.mcp(tool, **args) or True
    for uri in (text, f"pdpp://record/{part}", f"doc://{text}", f"papers://{part}/source"):
        api.read(uri)


def test_no_string_leads_outside(
    small_house: House, record_property: Callable[[str, object], None]
) -> None:
    app = small_house.application(RUNG_PAPERS_DB=str(LIBRARY / "snapshot.db"))
    api, count = Api(app, small_house.grant()[1]), times(500, 25)
    calls(api, "warm")
    allowed = (str(Path(str(small_house.path)).parent), str(LIBRARY), sys.prefix, sys.base_prefix)
    code = str(Path(__file__).resolve().parents[2] / "service")
    for text in strings(count):
        with watched() as seen:
            calls(api, text)
        outside = [path for path in seen if not path.startswith((*allowed, code))]
        assert not outside, (text, outside)
    record_property("strings", count)


def test_the_watch_sees_what_is_opened() -> None:
    with watched() as seen, open(CANARY, "rb"):
        pass
    assert seen == [CANARY]
