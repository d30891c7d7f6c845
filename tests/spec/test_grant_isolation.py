"""Nothing outside a grant is ever revealed: not by name, not by value, not by absence.

Every name and text of the world under test is a canary, a unique word. For any call under a random
grant, an answer (status, headers, body, log) contains only canaries that the grant shows or that
the caller sent. What an answer offers (pages, bookmarks, reads, addresses) is followed one step
and checked in the same way.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers import canaries, worlds
from tests.helpers.api import Answer
from tests.helpers.canaries import words_in
from tests.helpers.scale import times
from tests.helpers.trigrams import embed_all
from tests.spec.isolation_calls import (
    PLAN,
    QUERY,
    TERM,
    Call,
    ask,
    followed,
    worlds_of_calls,
    written,
)

pytestmark = pytest.mark.slow

CHECKED = Counter[str]()
SEVERAL = st.lists(TERM, min_size=2, max_size=3).map(" ".join)
ANY = settings(
    deadline=None,
    max_examples=times(400, 50),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Kept(logging.Handler):
    """Keeps everything that is logged, including tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(scope="module", params=["words", "vectors"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    house = worlds.build(canaries.world_of(PLAN), tmp_path_factory.mktemp("canaries"))
    return embed_all(house) if request.param == "vectors" else house


@pytest.fixture(scope="module")
def log() -> Iterator[Kept]:
    """All logs of the process, from the lowest level up."""
    kept, root = Kept(), logging.getLogger()
    before = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    yield kept
    root.setLevel(before)
    root.removeHandler(kept)


@pytest.fixture(scope="module", autouse=True)
def counted(record_testsuite_property: Callable[[str, object], None]) -> Iterator[None]:
    """Reports how many answers were checked."""
    yield
    record_testsuite_property("answers checked for canaries", CHECKED["answers"])


def check(call: Call, answers: list[Answer], log: Kept, allowed: frozenset[str]) -> None:
    """Fails if an answer or a log line has a canary that is neither granted nor sent."""
    CHECKED["answers"] += len(answers)
    said = words_in(call.said)
    for shown in [*map(written, answers), "\n".join(log.lines)]:
        leaked = words_in(shown) - allowed - said
        assert not leaked, (call, leaked, shown[:3_000])
    assert all(answer.status < 500 for answer in answers), (call, answers)
    log.lines.clear()


@ANY
@given(scene=worlds_of_calls(QUERY | SEVERAL))
def test_no_answer_has_a_word_that_is_not_granted(
    house: worlds.House, log: Kept, scene: tuple[list[dict[str, object]], list[Call]]
) -> None:
    entries, asked = scene
    api = house.api(*entries)
    allowed = canaries.permitted(PLAN, entries)
    log.lines.clear()
    for call in asked:
        answers = ask(api, call)
        check(call, answers, log, allowed)
        for offer in followed(call, answers):
            check(offer, ask(api, offer), log, allowed)


def test_the_net_catches_what_it_should(house: worlds.House) -> None:
    """With everything granted, every tool shows canaries. Otherwise the tests prove nothing."""
    api = house.api()
    seen: set[str] = set()
    for call in (
        Call("mcp", "schema", {"stream": canaries.NOTES}),
        Call("mcp", "search", {"query": "common", "limit": 100}),
        Call("mcp", "query_records", {"stream": canaries.NOTES, "limit": 100}),
        Call("rest", "/v1/connectors", {}),
    ):
        for answer in ask(api, call):
            assert words_in(written(answer))
            seen |= words_in(written(answer))
    everything = canaries.permitted(PLAN, full_grant())
    assert len(seen & everything) > 100
    assert len(everything) > 3 * 100


def full_grant() -> list[dict[str, object]]:
    """Entries that grant everything."""
    return [
        {
            "connection_id": connection["id"],
            "stream": stream["name"],
            "fields": list(stream["schema"]["properties"]),
        }
        for connection in PLAN["connections"]
        for stream in connection["streams"]
    ]


def test_words_inside_base64_and_percent_encoding_are_caught() -> None:
    word = canaries.NOTES
    assert words_in(f"x%20{word}%2F") == {word}
    hidden = canaries.base64.b64encode(f'{{"stream":"{word}"}}'.encode()).decode().rstrip("=")
    assert words_in(f"pdpp://record/{hidden}") == {word}
