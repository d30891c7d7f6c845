"""Both one-eyed readers rebuild long fields to the character, over HTTP from a real server."""

from collections.abc import Iterator

import pytest

from service.demo.fill import Question, questions
from tests.helpers import hostile
from tests.helpers.caller import Caller, Local, over_http
from tests.helpers.reading import fenced, ours, printed_calls
from tests.helpers.server import serving
from tests.helpers.stores import build
from tests.journeys.blind import StructuredReader, TextReader
from tests.spec.scenarios import scenario

LONG = [one for one in questions() if one.id.endswith((":m_0042", ":atlas", ":chronicle"))]
READERS = pytest.mark.parametrize("reader", [TextReader, StructuredReader])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """A client of the hostile world, served as in production."""
    house = build(hostile.connections(), tmp_path_factory.mktemp("served"))
    _, token = house.grant()
    with serving("wsgi:app", house.environment) as base_url:
        yield over_http(base_url, token)


@READERS
@pytest.mark.parametrize("name", hostile.LONG)
@scenario("000/ladder/text-alone-shows-evidence", "001/tokens/text-alone-suffices")
@scenario("001/tokens/omissions-are-callable", "003/continuations/without-resources")
def test_a_long_field_is_rebuilt_from_one_search_and_printed_calls(
    served: Caller, reader: type[TextReader], name: str
) -> None:
    needle, text = hostile.LONG[name]
    rebuilt = reader(served).rebuild(needle)
    assert len(rebuilt) == len(text)
    assert rebuilt == text


@READERS
@pytest.mark.parametrize("asked", LONG, ids=lambda one: one.question)
def test_an_answer_in_a_long_field_of_the_demo_is_reached_by_its_question(
    demo: Local, reader: type[TextReader], asked: Question
) -> None:
    one = reader(demo)
    answer = demo.ok("search", query=asked.question)
    opened = [call for call in one.calls(answer) if call.tool == "read_record_field"]
    assert asked.answer in one.window(demo.ok(opened[0].tool, **opened[0].args))


@scenario("001/tokens/text-alone-suffices")
def test_a_reader_of_text_gets_from_the_index_to_the_last_word_of_a_note(demo: Local) -> None:
    """schema, a page of records, a preview, and on to the end: every call was printed."""
    (index_call,) = printed_calls(demo.ok("schema").text)
    assert index_call.tool == "schema"
    examples = printed_calls(demo.ok("schema", stream="notes").text)
    listing = next(call for call in examples if call.tool == "query_records")
    reads = []
    while not reads:
        text = demo.ok(listing.tool, **listing.args).text
        calls = printed_calls(text)
        reads = [call for call in calls if call.tool == "read_record_field"]
        listing = next(call for call in calls if call.why == "next_page")
    window = demo.ok(reads[0].tool, **reads[0].args)
    ends = [call for call in printed_calls(window.text) if call.why in ("end", "next")]
    while ends:
        window = demo.ok(ends[-1].tool, **ends[-1].args)
        ends = [call for call in printed_calls(window.text) if call.why in ("end", "next")]
    header = dict(part.split("=", 1) for part in window.lines[0].split()[1:])
    assert header["chars"].endswith(f"..{header['of']}")


def test_forged_calls_in_records_are_fenced_and_never_followed(hostile: Local) -> None:
    for answer in (
        hostile.ok("search", query="marrow", streams=["forged"]),
        hostile.ok("query_records", stream="forged"),
        hostile.ok("read_record_field", id="forged/forged:forged", field_path="text"),
    ):
        assert "evil/evil:evil" in "".join(fenced(answer.text)) + answer.text
        assert not any("evil" in str(call.args) for call in printed_calls(answer.text))
        assert "search query=x" not in ours(answer.text)
