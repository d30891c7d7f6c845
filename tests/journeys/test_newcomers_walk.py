"""A newcomer gets from the README to the last character of an answer, asking nobody."""

from pathlib import Path

import pytest

from evidence.text import unmark
from tests.helpers.caller import Local
from tests.journeys.newcomer import SENTENCE, Walk, walk
from tests.journeys.transcript import PAGE, WRITTEN_FOR, written

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_a_newcomer_finds_the_sentence_and_reads_to_the_end(
    client: str, tmp_path: Path, demo: Local
) -> None:
    walked = walk(tmp_path, client)
    (_, first), *_ = walked.reads
    assert SENTENCE in first
    assert body(demo).endswith(walked.text)
    assert SENTENCE in walked.text and len(walked.text) > 60_000
    assert SENTENCE in unmark(walked.found)
    if client == WRITTEN_FOR:
        assert_written(walked)


def assert_written(walked: Walk) -> None:
    """The page is what happened, and says nothing of this machine."""
    page = written(walked)
    assert walked.token not in page
    assert PAGE.read_text(encoding="utf-8") == page, "if it is better now: make golden"


def body(demo: Local) -> str:
    """The whole mail, as the detail route gives it."""
    path = "/v1/streams/messages/records/m_0042"
    answer = demo.api.rest(path, connection_id="gmail-home", fields="body")
    return str(answer.body["data"]["body"])
