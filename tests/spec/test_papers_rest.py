"""REST returns the same as the tools, with links instead of printed calls."""

from typing import Any
from urllib.parse import quote

import pytest

from service.operations.paper_links import href
from evidence.model import Continuation
from evidence.limits import CONTRACT
from tests.helpers.papers import ATTENTION, DEEP_LEARNING, NO_SOURCE, NO_SUMMARY, Library, known
from tests.helpers.reading import structured_calls

PAIRS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("search?q=attention", "search_papers", {"query": "attention"}),
    ("search?q=learning&limit=3", "search_papers", {"query": "learning", "limit": 3}),
    ("search?q=trnsfomer", "search_papers", {"query": "trnsfomer"}),
    ("search?q=the&limit=100", "search_papers", {"query": "the", "limit": 100}),
    ("keywords?keyword=e&page=2", "search_papers_by_keyword", {"keyword": "e", "page": 2}),
    *(
        (f"papers/{id}", "get_paper_metadata", {"paper_id": id})
        for id in (ATTENTION, DEEP_LEARNING, NO_SOURCE, NO_SUMMARY)
    ),
    ("papers/10.1038%2Fnature14539", "get_paper_metadata", {"paper_id": "10.1038/nature14539"}),
    (
        f"papers/{ATTENTION}/summary?template=deep_read",
        "get_paper_summary",
        {"paper_id": ATTENTION, "template": "deep_read"},
    ),
    (f"papers/{DEEP_LEARNING}/source", "get_paper_source", {"paper_id": DEEP_LEARNING}),
    (
        f"papers/{DEEP_LEARNING}/source?lang=zh&offset_chars=5&max_chars=7",
        "get_paper_source",
        {"paper_id": DEEP_LEARNING, "lang": "zh", "offset_chars": 5, "max_chars": 7},
    ),
    (
        f"papers/{DEEP_LEARNING}/source?q=learning",
        "get_paper_source",
        {"paper_id": DEEP_LEARNING, "query": "learning"},
    ),
    (
        f"papers/{DEEP_LEARNING}/outline",
        "get_paper_source",
        {"paper_id": DEEP_LEARNING, "outline": True},
    ),
    (
        f"papers/{ATTENTION}/outline?lang=zh",
        "get_paper_source",
        {"paper_id": ATTENTION, "outline": True, "lang": "zh"},
    ),
    *((f"facets/{name}", "list_top_facets", {"category": name}) for name in ("tag", "year")),
    (
        "facets/author?limit=5&offset=5",
        "list_top_facets",
        {"category": "author", "limit": 5, "offset": 5},
    ),
)


def without(value: Any, *names: str) -> Any:
    """A JSON value without these members, anywhere inside."""
    if isinstance(value, list):
        return [without(item, *names) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without(item, *names) for key, item in value.items() if key not in names}


def links_of(value: Any) -> set[str]:
    """Every link of a body except its own address."""
    if isinstance(value, list):
        return set().union(*(links_of(item) for item in value))
    if not isinstance(value, dict):
        return set()
    found = set()
    for name, link in value.get("links", {}).items():
        if name != "self" and link is not None:
            found |= {link} if isinstance(link, str) else set(link)
    inner = (links_of(item) for key, item in value.items() if key != "links")
    return found.union(*inner)


@pytest.mark.parametrize(("target", "tool", "args"), PAIRS)
def test_a_body_is_the_structured_content_with_links_for_calls(
    library: Library, target: str, tool: str, args: dict[str, Any]
) -> None:
    body = library.get(f"/papers/v1/{target}")
    structured = library.ok(tool, **args).structured
    assert without(body, "links") == without(structured, "calls")
    assert body["links"]["self"] == f"/papers/v1/{target}"
    calls = structured_calls(structured)
    assert links_of(body) == {href(Continuation(c.tool, c.args, c.why)) for c in calls}


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        (f"papers/{NO_SOURCE}/source", 404, "source_not_available"),
        (f"papers/{ATTENTION}/summary?template=x", 404, "template_not_available"),
        (f"papers/{ATTENTION}/source?lang=fr", 404, "translation_not_available"),
        ("papers/nobody", 404, "paper_not_found"),
        (f"papers/{ATTENTION}/source?offset_chars=999999", 400, "invalid_window"),
        (f"papers/{ATTENTION}/source?max_chars=0", 400, "invalid_request"),
        (f"papers/{ATTENTION}/source?max_chars=five", 400, "invalid_request"),
        ("search", 400, "invalid_request"),
        ("search?q=", 400, "invalid_request"),
        (f"search?q=x&limit={CONTRACT.page_items + 1}", 400, "invalid_request"),
        ("search?q=x&sort=year", 400, "invalid_request"),
        ("search?q=x&cursor=0123456789.5", 410, "cursor_expired"),
        ("search?q=-only", 400, "invalid_query"),
        ("facets/nothing", 400, "invalid_request"),
        ("nothing", 404, "not_found"),
    ],
)
def test_an_error_has_its_status_and_the_members_of_the_tool_error(
    library: Library, target: str, status: int, code: str
) -> None:
    error = library.refused(f"/papers/v1/{target}", status)
    assert error["code"] == code and error["message"] and error["request_id"]
    assert error["type"]


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "PATCH"])
def test_routes_are_read_and_nothing_else(library: Library, verb: str) -> None:
    answer = library.api.send(verb, f"/papers/v1/papers/{ATTENTION}", b"", {})
    assert answer.status == 405 and "GET" in answer.headers["Allow"]


def test_an_odd_id_in_a_path_is_decoded_once(library: Library) -> None:
    paper = known()["7735feac3e64ba7fef2a38448166a45e"]  # its title has $ \ ^ < > & and quotes
    body = library.get(f"/papers/v1/papers/{quote(paper.title, safe='')}")
    assert body["paper_id"] == paper.paper_id
    assert library.refused("/papers/v1/papers/100%2525", 404)["paper_id"] == "100%25"


def test_a_summary_without_templates_is_there_too(library: Library) -> None:
    body = library.get(f"/papers/v1/papers/{NO_SUMMARY}/summary")
    assert body["text"] == library.release.summary(NO_SUMMARY)


def test_a_parameter_that_is_given_twice_is_refused(library: Library) -> None:
    for target in ("search?q=a&q=b", "search?q=a&limit=1&limit=2", "facets/tag?limit=1&limit=1"):
        error = library.refused(f"/papers/v1/{target}", 400)
        assert error["param"] in ("query", "limit") and "once" in error["message"]
