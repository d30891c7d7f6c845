"""/openapi.json describes what is served: every route, parameter, body and status."""

from typing import Any

import orjson
import pytest
from flask import Flask
from jsonschema import Draft202012Validator, ValidationError

from service import openapi
from service.openapi import Mounted
from service.operations import OPERATIONS
from service.operations.papers import PAPER_OPERATIONS
from tests.helpers.api import Api, route_of
from tests.helpers.caller import Local
from tests.helpers.openapi import Described
from tests.helpers.papers import NO_SOURCE, Library, in_process
from tests.helpers.worlds import House
from tests.spec.test_papers_rest import PAIRS
from tests.spec.test_parity import EXAMPLES

WORK = "connection_id=mail-work"
LONG = "/v1/streams/messages/records/m_long"
ANSWERS = (
    ("/v1/schema", 200),
    (f"/v1/schema?stream=messages&{WORK}&detail=full", 200),
    (f"/v1/schema?stream=messages&{WORK}", 200),
    ("/v1/connectors", 200),
    ("/v1/streams", 200),
    (f"/v1/streams/messages?{WORK}", 200),
    (f"/v1/streams/messages/records?{WORK}&count=exact&window=exact&order=asc&limit=2", 200),
    ("/v1/streams/messages/records?connector_instance_id=mail-work", 200),
    ("/v1/streams/notes/records?filter[id]=picture", 200),
    ("/v1/streams/diary/records?changes_since=beginning", 200),
    ("/v1/search?q=invoice&limit=3", 200),
    ("/v1/search?q=nothing+of+this+kind", 200),
    (f"/v1/blobs/plan?{WORK}", 200),
    ("/healthz", 200),
    ("/readyz", 200),
    ("/", 200),
    ("/openapi.json", 200),
    ("/llms.txt", 200),
    ("/docs/api", 200),
    ("/v1/streams/messages/records?limit=0", 400),
    ("/v1/streams/nowhere/records", 403),
    ("/v1/streams/messages/records?connection_id=nowhere", 404),
    ("/v1/streams/messages/records/nobody", 404),
    (f"{LONG}/field-window?field=nothing&{WORK}", 403),
    ("/v1/blobs/letter", 409),
    ("/v1/blobs/nowhere", 404),
)
REFUSED_PAPERS = (
    ("/papers/v1/search", 400),
    ("/papers/v1/papers/nothing", 404),
    (f"/papers/v1/papers/{NO_SOURCE}/source", 404),
)
#: Members that each body must have: those that Rung itself relies on.
GONE = ("object", "data", "links")


@pytest.fixture(scope="module")
def described(small: Local) -> Described:
    return Described(small.get("/openapi.json"))


@pytest.fixture(scope="module")
def library() -> Library:
    return in_process()


@pytest.fixture(scope="module")
def described_papers(library: Library) -> Described:
    return Described(library.get("/openapi.json"))


@pytest.mark.parametrize(("tool", "args"), EXAMPLES)
def test_every_answer_of_an_operation_is_as_described(
    small: Local, described: Described, tool: str, args: dict[str, Any]
) -> None:
    path, params = route_of(tool, args)
    described.check("get", path, small.api.rest(path, **params))


@pytest.mark.parametrize(("target", "status"), ANSWERS)
def test_every_other_answer_is_as_described(
    small: Local, described: Described, target: str, status: int
) -> None:
    answer = small.api.get(target)
    assert answer.status == status, answer
    described.check("get", target, answer)


@pytest.mark.parametrize("target", sorted({f"/papers/v1/{target}" for target, _, _ in PAIRS}))
def test_every_answer_about_papers_is_as_described(
    library: Library, described_papers: Described, target: str
) -> None:
    described_papers.check("get", target, library.api.get(target))


@pytest.mark.parametrize(("target", "status"), REFUSED_PAPERS)
def test_every_refusal_about_papers_is_as_described(
    library: Library, described_papers: Described, target: str, status: int
) -> None:
    answer = library.api.get(target)
    assert answer.status == status, answer
    described_papers.check("get", target, answer)


@pytest.mark.parametrize("gone", GONE)
def test_a_body_without_a_member_it_must_have_is_not_as_described(
    small: Local, described: Described, gone: str
) -> None:
    answer = small.api.get("/v1/search?q=invoice")
    body = {name: value for name, value in answer.body.items() if name != gone}
    with pytest.raises(ValidationError):
        described.check("get", "/v1/search", answer._replace(body=body))


@pytest.mark.parametrize("where", ["records", "papers", "both"])
def test_the_document_is_whole(where: str) -> None:
    mounted = Mounted(records=where != "papers", papers=where != "records")
    found = Described(openapi.document(mounted))
    assert found.document["openapi"] == "3.1.0"
    ids = [operation["operationId"] for _, _, operation in found.operations()]
    assert len(ids) == len(set(ids))
    for reference in references(found.document):
        found.resolve({"$ref": reference})
    for shape in found.document["components"]["schemas"].values():
        Draft202012Validator.check_schema(shape)
    used = set(references(found.document))
    for kind in ("schemas", "responses", "parameters", "headers"):
        for name in found.document["components"].get(kind, ()):
            needed = where != "both" or f"#/components/{kind}/{name}" in used
            assert needed, f"nothing needs {kind}/{name}"


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [one for inner in value.values() for one in references(inner)]
    return [one for inner in value for one in references(inner)] if isinstance(value, list) else []


def test_every_operation_has_a_body_and_no_body_is_left_over() -> None:
    assert {operation.name for operation in OPERATIONS} <= openapi.ANSWERS.keys()
    assert {operation.name for operation in PAPER_OPERATIONS} <= openapi.ANSWERS.keys()


def served(app: Flask) -> set[str]:
    """Every route that answers GET or POST, except pages and their files, in OpenAPI form."""
    apart = ("/static/", "/.well-known/", "/icon.svg", "/favicon.ico", "/metrics")
    pages = ("/try", "/connect", "/read")
    found = set()
    for rule in app.url_map.iter_rules():
        path = rule.rule.replace("<segment:", "{").replace(">", "}")
        if not path.startswith((*apart, "/read/")) and path not in pages:
            found.add(path)
    return found


def test_what_is_described_is_what_is_served(
    small_house: House, described: Described, library: Library, described_papers: Described
) -> None:
    assert isinstance(library.api.app, Flask)
    assert served(small_house.app) == set(described.document["paths"])
    assert served(library.api.app) == set(described_papers.document["paths"])


@pytest.mark.parametrize("which", ["records", "papers"])
def test_the_described_parameters_are_those_a_route_knows(
    which: str,
    small: Local,
    described: Described,
    library: Library,
    described_papers: Described,
) -> None:
    found, caller = (
        (described, small.api) if which == "records" else (described_papers, library.api)
    )
    asked = 0
    for method, path, operation in found.operations():
        if method != "get" or "/v1" not in path:
            continue
        parameters = [found.resolve(one) for one in operation["parameters"]]
        answer = caller.get(filled(path, parameters) + "?never_heard_of=1")
        known = {one["name"] for one in parameters if one["in"] == "query"}
        assert answer.status == 400
        assert answer.error["message"].endswith(f"Supported: {', '.join(sorted(known))}."), path
        asked += 1
    assert asked == (10 if which == "records" else 7)


def filled(path: str, parameters: list[dict[str, Any]]) -> str:
    examples = {one["name"]: one.get("example", "anything") for one in parameters}
    for name, value in examples.items():
        path = path.replace(f"{{{name}}}", str(value).replace("/", "%2F"))
    return path


def test_the_examples_of_the_document_are_answered(demo: Local) -> None:
    found = Described(demo.get("/openapi.json"))
    asked = 0
    for method, path, operation in found.operations():
        if method != "get" or not path.startswith("/v1"):
            continue
        parameters = [found.resolve(one) for one in operation["parameters"]]
        given = {one["name"]: one["example"] for one in parameters if "example" in one}
        query = {
            one["name"]: given[one["name"]]
            for one in parameters
            if one["in"] == "query" and one["name"] in given
        }
        answer = demo.api.rest(filled(path, parameters), **query)
        assert answer.status == 200, (path, answer)
        found.check(method, path, answer)
        asked += 1
    posted = found.document["paths"]["/v1/search"]["post"]["requestBody"]["content"]
    example = posted["application/json"]["schema"]["example"]
    headers = {"Content-Type": "application/json"}
    answer = demo.api.send("POST", "/v1/search", orjson.dumps(example), headers)
    assert answer.status == 200
    found.check("post", "/v1/search", answer)
    assert asked == 10


def test_anybody_may_read_the_document_and_need_not_read_it_twice(small: Local) -> None:
    nobody = Api(small.api.app, None)
    for path in ("/openapi.json", "/llms.txt"):
        answer = nobody.get(path, Origin="https://elsewhere.example.com")
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == "*"
        again = nobody.get(path, **{"If-None-Match": answer.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")


def test_a_closed_library_says_that_it_needs_a_token() -> None:
    path = "/papers/v1/search"
    opened = openapi.document(Mounted(records=False, papers=True))["paths"][path]["get"]
    closed = openapi.document(Mounted(records=False, papers=True, closed=True))["paths"][path][
        "get"
    ]
    assert opened["security"] == [] and "401" not in opened["responses"]
    assert closed["security"] == [{"bearer": []}] and "401" in closed["responses"]


def test_the_public_address_is_the_server_of_the_document() -> None:
    mounted = Mounted(records=True, papers=False, public_url="https://rung.example.com")
    assert openapi.document(mounted)["servers"] == [{"url": "https://rung.example.com"}]


def test_llms_txt_names_each_tool_and_route_that_is_mounted_and_no_other(
    small: Local, library: Library
) -> None:
    for caller, here, elsewhere in (
        (small, OPERATIONS, PAPER_OPERATIONS),
        (library, PAPER_OPERATIONS, OPERATIONS),
    ):
        text = caller.api.get("/llms.txt").body.decode()
        for operation in here:
            assert f"- `{operation.name}`: " in text and f"`GET {operation.route.path}`" in text
        for operation in elsewhere:
            assert f"- `{operation.name}`: " not in text
            assert f"`GET {operation.route.path}`" not in text
        assert len(text) < 4_096
