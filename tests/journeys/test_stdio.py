"""The journeys over HTTP, over stdio: the same readers, the same calls, the same answers."""

from collections.abc import Iterator

import pytest

from tests.helpers import hostile
from tests.helpers.caller import Answer, Caller, Local
from tests.helpers.demo import NEEDLE
from tests.helpers.reading import printed_calls
from tests.helpers.stdio import ERAS, Pipe, stdio
from tests.helpers.stores import build
from tests.helpers.worlds import SECRET, House
from tests.journeys.blind import StructuredReader, TextReader
from tests.spec.scenarios import scenario

READERS = pytest.mark.parametrize("reader", [TextReader, StructuredReader])
BOTH = pytest.mark.parametrize("era", ERAS)


def token_of(one: Caller) -> str:
    return one.headers["Authorization"].removeprefix("Bearer ")


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> House:
    """The hostile world."""
    return build(hostile.connections(), tmp_path_factory.mktemp("strange"))


@pytest.fixture(scope="module")
def strange_pipe(strange: House) -> Iterator[Pipe]:
    _, token = strange.grant()
    with stdio(**strange.environment, RUNG_TOKEN=token) as pipe:
        yield pipe


@pytest.fixture(scope="module")
def demo_pipe(demo: Local, demo_store: tuple[object, str]) -> Iterator[Pipe]:
    more = {"RUNG_TOKEN": token_of(demo), "RUNG_SECRET_KEY": SECRET}
    with stdio("--store", str(demo_store[0]), **more) as pipe:
        yield pipe


def main_job(one: Caller) -> list[Answer]:
    """From what there is to the whole record, by the calls the answers offer."""
    found = one.ok("search", query=NEEDLE)
    rung = found.structured["content_ladder"]["records"][0]
    read = rung["evidence"][0]["read"]
    return [
        one.ok("schema"),
        found,
        one.ok(read["tool"], **read["args"]),
        one.ok("fetch", id=rung["id"]),
        one.ok("query_records", stream="notes", limit=2),
    ]


@BOTH
@scenario("004/setup/stdio-same-surface")
def test_the_main_job_gives_the_answers_of_http(era: str, demo_pipe: Pipe, demo: Local) -> None:
    here = main_job(demo_pipe.caller(ERAS[era]))
    assert here == main_job(ERAS[era](demo._post, token_of(demo)))
    assert NEEDLE.split()[0] in here[2].text


@BOTH
@READERS
@pytest.mark.parametrize("name", hostile.LONG)
def test_a_long_field_is_rebuilt_over_the_pipe(
    era: str, reader: type[TextReader], name: str, strange_pipe: Pipe
) -> None:
    needle, text = hostile.LONG[name]
    assert reader(strange_pipe.caller(ERAS[era])).rebuild(needle) == text


@BOTH
def test_every_call_the_schema_prints_works_over_the_pipe(era: str, demo_pipe: Pipe) -> None:
    one = demo_pipe.caller(ERAS[era])
    calls = printed_calls(one.ok("schema", stream="notes").text)
    assert len(calls) > 2
    for call in calls:
        one.ok(call.tool, **call.args)
