"""The moment of an import is never shown as the time of a record."""

import pytest

from tests.helpers.caller import Local
from tests.helpers.stores import EMITTED_AT, TEXT, TIME, WORD, Connection, Stream, build, client

MOMENT = EMITTED_AT[:10]


@pytest.fixture(scope="module")
def timeless(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """Records of two streams: one without times, one in which only some records have a time."""
    plain = Stream("plain", {"id": WORD, "body": TEXT}, [{"id": "p", "body": "amber"}], ["body"])
    dated = [
        {"id": "old", "at": "2024-01-05T08:00:00Z", "body": "amber of a winter"},
        {"id": "none", "body": "amber that is never dated"},
        {"id": "new", "at": "2025-01-05T08:00:00Z", "body": "amber of another winter"},
    ]
    some = Stream("some", {"id": WORD, "at": TIME, "body": TEXT}, dated, ["body"], cursor="at")
    return client(
        build([Connection("c", [plain, some], "key", "Box")], tmp_path_factory.mktemp("timeless"))
    )


def test_a_hit_without_a_time_shows_none(timeless: Local) -> None:
    answer = timeless.ok("search", query="amber")
    assert MOMENT not in answer.text
    results = {one["record_id"]: one for one in answer.structured["results"]}
    assert results["p"]["title"] == "Box · plain" and "at" not in results["p"]
    assert results["none"]["title"] == "Box · some" and "at" not in results["none"]
    assert results["old"]["at"] == "2024-01-05T08:00:00Z"


def test_a_document_without_a_time_has_none_in_its_title(timeless: Local) -> None:
    assert timeless.ok("fetch", id="c/plain:p").structured["title"] == "Box · plain"
    assert timeless.ok("fetch", id="c/some:none").structured["title"] == "Box · some"


def test_what_has_no_time_is_the_oldest_and_in_no_period(timeless: Local) -> None:
    newest = timeless.ok("search", query="amber", sort="newest").structured["results"]
    assert [one["record_id"] for one in newest][:2] == ["new", "old"]
    since = timeless.ok("search", query="amber", since=MOMENT).structured
    assert since["results"] == []
    period = timeless.ok("search", query="May 2026").structured["results"]
    assert period == []


def test_rest_keeps_the_moment_under_its_own_name(timeless: Local) -> None:
    body = timeless.get("/v1/search?q=amber")
    assert {hit["emitted_at"] for hit in body["data"]} == {EMITTED_AT}
    (plain,) = [hit for hit in body["data"] if hit["stream"] == "plain"]
    assert "authored_at" not in plain
