"""The arguments of search on every surface: how words count, times, and the order."""

import pytest

from tests.helpers.caller import Local


def ids(local: Local, **args: object) -> list[str]:
    return [one["id"] for one in local.ok("search", **args).structured["results"]]


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("value", ["yesterday", "2026-13-01", "2026-01-01T25:00"])
def test_a_time_that_is_none_is_refused_with_one_that_works(
    small: Local, name: str, value: str
) -> None:
    error = small.fails("search", query="invoice", **{name: value}).error
    assert error["param"] == name and "2026-03-31" in error["message"]
    answer = small.api.get(f"/v1/search?q=invoice&{name}={value}")
    assert answer.status == 400 and answer.body["error"]["param"] == name


@pytest.mark.parametrize("args", [{"words": "some"}, {"sort": "oldest"}])
def test_a_word_that_is_none_of_the_choices_is_refused_with_them(
    small: Local, args: dict[str, str]
) -> None:
    error = small.fails("search", query="invoice", **args).error
    assert error["param"] in args and "Use one of" in error["message"]


def test_rest_takes_them_as_named_parameters(small: Local) -> None:
    path = "/v1/search?q=invoice&words=all&sort=relevance&until=2030-01-01T00:00:00Z"
    body = small.get(path)
    assert body["data"] and [hit["rank"] for hit in body["data"]][0] == 1
    assert body["meta"]["count"] == body["meta"]["counts"]["some"]
    assert all("score" not in hit for hit in body["data"])


def test_the_name_that_pdpp_tools_use_for_the_query_is_taken(small: Local) -> None:
    assert ids(small, q="invoice") == ids(small, query="invoice") != []
    assert small.ok("search", q="flow", query="invoice").lines[0].startswith("search query=invoice")
