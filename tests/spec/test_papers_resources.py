"""Papers as resources: the same texts as the tools, with their types, cuts and errors."""

import orjson
import pytest

from evidence.limits import CONTRACT
from tests.helpers.papers import ATTENTION, DEEP_LEARNING, NO_SOURCE, Library, known
from tests.spec.scenarios import scenario

JSON, MARKDOWN = "application/json", "text/markdown"
TEMPLATES = {
    "paper://{paper_id}/metadata": JSON,
    "paper://{paper_id}/summary": JSON,
    "paper://{paper_id}/summary/{template}": JSON,
    "paper://{paper_id}/source": MARKDOWN,
    "paper://{paper_id}/translation/{lang}": MARKDOWN,
}


def test_resources_are_listed_as_templates(library: Library) -> None:
    found = library.result("resources/templates/list")["resourceTemplates"]
    assert {each["uriTemplate"]: each["mimeType"] for each in found} == TEMPLATES
    assert all(each["name"] and each["title"] for each in found)
    assert library.result("resources/list")["resources"] == []


def test_metadata_is_what_the_tool_gives(library: Library) -> None:
    for paper_id in known():
        uri = f"paper://{paper_id}/metadata"
        (content,) = library.contents(uri)
        assert (content["uri"], content["mimeType"]) == (uri, JSON)
        tool = library.ok("get_paper_metadata", paper_id=paper_id)
        assert orjson.loads(content["text"]) == tool.structured


@scenario("002/resources/summary-by-template")
def test_a_summary_is_the_preferred_one_or_the_one_that_is_named(library: Library) -> None:
    for paper in known().values():
        (content,) = library.contents(f"paper://{paper.paper_id}/summary")
        assert content["mimeType"] == JSON
        assert content["text"] == library.release.summary(paper.paper_id)
        tool = library.ok("get_paper_summary", paper_id=paper.paper_id)
        assert content["text"] == tool.blocks[0]["text"]
        for template in paper.available:
            (content,) = library.contents(f"paper://{paper.paper_id}/summary/{template}")
            assert content["mimeType"] == JSON
            assert content["text"] == library.release.summary(paper.paper_id, template)


@scenario("002/resources/translation")
def test_a_translation_is_its_text(library: Library) -> None:
    for paper in known().values():
        for lang in paper.translations:
            for spelled in (lang, lang.upper()):
                uri = f"paper://{paper.paper_id}/translation/{spelled}"
                assert _whole(library, uri) == library.release.translation(paper.paper_id, lang)


@scenario("002/sizes/resource-cuts-with-a-marker")
def test_a_long_source_is_cut_with_a_marker_and_says_where_it_goes_on(library: Library) -> None:
    text, limit = library.release.source(DEEP_LEARNING), CONTRACT.paper_resource_chars
    content, following = library.contents(f"paper://{DEEP_LEARNING}/source")
    assert content["mimeType"] == MARKDOWN
    assert content["text"] == f"{text[:limit]}\n[truncated: {len(text) - limit} more chars]"
    assert following["text"] == f"next: resource {following['uri']}"
    assert following["uri"] == f"paper://{DEEP_LEARNING}/source?offset_chars={limit}"


@pytest.mark.parametrize("name", [DEEP_LEARNING, "Deep%20learning", "10.1038%2Fnature14539"])
def test_reading_on_by_what_is_said_rebuilds_the_source(library: Library, name: str) -> None:
    assert _whole(library, f"paper://{name}/source") == library.release.source(DEEP_LEARNING)


def _whole(library: Library, uri: str) -> str:
    """A text assembled from a resource and the resources that its answers name."""
    pieces = []
    for _ in range(20):
        content, *following = library.contents(uri)
        assert content["uri"] == uri and content["mimeType"] == MARKDOWN
        if not following:
            return "".join([*pieces, content["text"]])
        pieces.append(content["text"].rpartition("\n[truncated: ")[0])
        uri = following[0]["text"].removeprefix("next: resource ")
    raise AssertionError(f"{uri} does not end")


@pytest.mark.parametrize(
    ("path", "code", "details"),
    [
        (f"{NO_SOURCE}/source", "source_not_available", {"paper_id": NO_SOURCE}),
        (
            f"{ATTENTION}/summary/no_such",
            "template_not_available",
            {
                "paper_id": ATTENTION,
                "template": "no_such",
                "available_summary_templates": known()[ATTENTION].available,
            },
        ),
        (
            f"{ATTENTION}/translation/fr",
            "translation_not_available",
            {"paper_id": ATTENTION, "lang": "fr", "available_languages": ["ja", "zh"]},
        ),
        ("0000/metadata", "paper_not_found", {}),
        (f"{ATTENTION}/pdf", "not_found", {}),
        (ATTENTION, "not_found", {}),
        ("", "not_found", {}),
        (f"{ATTENTION}/source?offset_chars=x", "invalid_request", {"param": "offset_chars"}),
        (f"{ATTENTION}/source?max_chars=5", "invalid_request", {}),
        (f"{ATTENTION}/metadata?offset_chars=5", "invalid_request", {}),
        (f"{ATTENTION}/summary/../source", "not_found", {}),
    ],
)
@scenario("002/resources/translation")
def test_what_cannot_be_read_says_why_in_the_data_of_its_error(
    library: Library, path: str, code: str, details: dict[str, object]
) -> None:
    error = library.unreadable(f"paper://{path}")
    assert error["code"] in (-32002, -32602) and len(error["message"]) > 30
    data = error["data"]
    assert data["code"] == code and data["uri"] == f"paper://{path}"
    assert {name: data.get(name) for name in details} == details


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "pdpp://record/x", "paper:/x", "http://a/b"])
def test_no_other_scheme_is_read(library: Library, uri: str) -> None:
    error = library.unreadable(uri)
    assert error["data"]["code"] == "not_found" and "paper://" in error["message"]
