"""`/try` as served: a form for every tool, and nothing that could act or leak."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest
from flask import Flask
from jinja2 import Environment, PackageLoader

from service import bootstrap, settings
from service.app import create_app
from service.operations import OPERATIONS
from service.operations.base import AnyOperation
from service.operations.papers import PAPER_OPERATIONS
from service.pages.layout import POLICY
from service.pages.reading.shown import FILTERS
from tests.helpers.api import Answer, Api
from tests.helpers.snapshots import DATA
from tests.helpers.stores import build
from tests.helpers.worlds import House

SNAPSHOT = str(DATA / "papers" / "snapshot.db")
EVERY = (*OPERATIONS, *PAPER_OPERATIONS)
PAGES = ["/", "/connect", "/try", "/try?tool=fetch"]
VOID = {"meta", "link", "input", "img", "br", "hr", "source"}


@dataclass
class Tag:
    """An element: its attributes, its text, and its parents."""

    name: str
    attributes: dict[str, str | None]
    within: tuple["Tag", ...]
    text: str = ""

    def __getitem__(self, name: str) -> str | None:
        return self.attributes.get(name)


@dataclass
class Document(HTMLParser):
    """A page as a flat tree: every element with its parents."""

    html: str
    tags: list[Tag] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[Tag] = []
        self.feed(self.html)
        assert not self._open, [tag.name for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Tag(tag, dict(attrs), tuple(self._open))
        self.tags.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            tag.text += data

    def all(self, name: str, **attributes: str) -> list[Tag]:
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [
            tag
            for tag in self.tags
            if tag.name == name and all(tag[key] == value for key, value in wanted.items())
        ]

    def inside(self, outer: Tag) -> Iterator[Tag]:
        return (tag for tag in self.tags if any(one is outer for one in tag.within))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A store, and papers as well."""
    found = build([], tmp_path_factory.mktemp("pages"))
    found.environ["RUNG_PAPERS_DB"] = SNAPSHOT
    return found


@pytest.fixture(scope="module")
def trial(house: House) -> Document:
    return Document(get(house.app, "/try").body.decode())


def get(app: Flask, path: str, **headers: str) -> Answer:
    return Api(app, None).get(path, Accept="text/html", **headers)


def assets(house: House) -> list[str]:
    """The addresses of all files that a page names."""
    found = [
        str(tag["href"] or tag["src"])
        for path in PAGES
        for tag in Document(get(house.app, path).body.decode()).tags
        if tag.name in ("link", "script", "img")
    ]
    return sorted(set(found))


@pytest.mark.parametrize("path", [*PAGES, "/icon.svg", "/favicon.ico"])
def test_a_page_goes_out_with_a_strict_policy(house: House, path: str) -> None:
    headers = get(house.app, path).headers
    assert headers["Content-Security-Policy"] == POLICY
    assert "'unsafe" not in POLICY and "http" not in POLICY and "*" not in POLICY
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in headers


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_code_or_style_of_its_own_and_asks_nobody_else(
    house: House, path: str
) -> None:
    for tag in Document(get(house.app, path).body.decode()).tags:
        assert tag.name not in ("style", "iframe", "object", "base")
        assert not [name for name in tag.attributes if name == "style" or name.startswith("on")]
        if tag.name == "script":
            assert tag["src"] and not tag.text.strip()
        if tag.name in ("script", "link", "img", "form"):
            address = tag["src"] or tag["href"] or tag["action"] or "/"
            assert re.match("/[^/]", address + "x"), address


def test_files_may_be_kept_for_ever_and_change_their_address(house: House) -> None:
    found = [path for path in assets(house) if path.startswith("/static/")]
    assert {path.rpartition(".")[2] for path in found} == {"css", "js", "svg"}
    for path in found:
        answer = get(house.app, path)
        assert answer.status == 200 and "immutable" in answer.headers["Cache-Control"]
        digest, name = path.split("/")[-2:]
        older = get(house.app, path.replace(digest, "0" * len(digest)))
        assert (older.status, older.headers["Cache-Control"]) == (200, "no-cache"), name
        assert older.body == answer.body
    assert get(house.app, "/static/pages/x/layout.py").status == 404
    assert get(house.app, "/static/pages/x/..%2Flayout.py").status == 404


def test_code_asks_only_its_neighbours_and_keeps_a_token_in_the_tab_at_most(house: House) -> None:
    waiting, known = [path for path in assets(house) if path.endswith(".js")], set[str]()
    while waiting:
        path = waiting.pop()
        code = get(house.app, path)
        assert code.status == 200, path
        source = code.body.decode()
        for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "Storage["):
            assert word not in source, (path, word)
        assert not re.search(r"\b(localStorage|indexedDB)\b|\.cookie\b", source)
        assert "sessionStorage" not in source or path.endswith("/try.js")  # the token of the tab
        known.add(path)
        for name in re.findall(r'from "\./([a-z]+\.js)"', source):
            neighbour = f"{path.rpartition('/')[0]}/{name}"
            waiting += [] if neighbour in known else [neighbour]
    assert len(known) > 5


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_a_form_begins_with_an_example_and_describes_every_argument(
    trial: Document, operation: AnyOperation
) -> None:
    [form] = trial.all("form", data_tool=operation.name)
    [field] = [tag for tag in trial.inside(form) if tag.name == "textarea"]
    assert orjson.loads(field.text) == operation.examples[0]
    [label] = [tag for tag in trial.inside(form) if tag["for"] == field["id"]]
    assert label.text == "Arguments"
    for id in str(field["aria-describedby"]).split():
        assert [tag.name for tag in trial.tags if tag["id"] == id] == ["p"]
    schema = operation.tool["inputSchema"]
    terms = [tag.text for tag in trial.inside(form) if tag.name == "dt"]
    texts = [tag.text for tag in trial.inside(form) if tag.name == "dd"]
    for (name, shape), term, text in zip(schema["properties"].items(), terms, texts, strict=True):
        assert term.split() == [name] + ["required"] * (name in schema.get("required", ()))
        assert shape["description"] in text.replace("\u2060", "")
        assert all(choice in text for choice in shape.get("enum", ()))
    buttons = [tag["data-example"] for tag in trial.inside(form) if tag["data-example"]]
    offered = [orjson.loads(example) for example in buttons if example]
    assert offered == (list(operation.examples) if len(operation.examples) > 1 else [])
    ids = [tag["id"] for tag in trial.tags if tag["id"]]
    assert len(ids) == len({*ids})


def test_a_token_is_typed_outside_of_every_form_and_has_no_name(trial: Document) -> None:
    [token] = trial.all("input", type="password")
    assert token["name"] is None and token["value"] is None and token["autocomplete"] == "off"
    assert not [tag for tag in token.within if tag.name == "form"]
    assert not [form for form in trial.all("form") if form["method"] != "post" or form["action"]]
    assert all("disabled" in tag.attributes for tag in trial.all("button", type="submit"))


def test_nothing_of_a_request_comes_back_in_the_page(house: House) -> None:
    plain = get(house.app, "/try").body
    for path in ("/try?tool=%3Cscript%3E", "/try?token=rung_abc&tool=nobody"):
        answer = get(house.app, path, Authorization="Bearer rung_abc", Host="a.localhost")
        assert answer.body == plain


@pytest.mark.parametrize("tool", ["search", "aggregate", "get_paper_source"])
def test_an_address_may_name_the_tool_whose_form_is_shown(house: House, tool: str) -> None:
    found = Document(get(house.app, f"/try?tool={tool}").body.decode())
    shown = [form["data-tool"] for form in found.all("form") if "hidden" not in form.attributes]
    marked = [tag["data-tool"] for tag in found.all("a", aria_current="true")]
    assert shown == marked == [tool]
    [access] = [
        tag
        for tag in found.all("section")
        if tag["data-endpoint"] and "hidden" not in tag.attributes
    ]
    assert access["data-endpoint"] == ("/mcp/papers" if "paper" in tool else "/mcp")


def test_papers_alone_are_tried_without_a_token_unless_tokens_close_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # without a store
    for more, tokens in ({}, []), ({"RUNG_PAPERS_TOKENS": "a-token-of-the-library"}, ["papers"]):
        environ = {"RUNG_PAPERS_DB": SNAPSHOT, **more}
        app = create_app(bootstrap.build(settings.load(environ)))
        html = get(app, "/try").body.decode()
        assert "a-token-of-the-library" not in html
        found = Document(html)
        fields = found.all("input", type="password")
        assert [tag["id"] for tag in fields] == [f"token-{name}" for name in tokens]
        shown = [form["data-tool"] for form in found.all("form") if "hidden" not in form.attributes]
        assert shown == ["search_papers"]
        assert len(found.all("form")) == len(PAPER_OPERATIONS)


def test_every_template_compiles() -> None:
    """A server compiles a template when it is first shown, so a visitor would see the fault."""
    environment = Environment(loader=PackageLoader("service.pages"))
    environment.filters |= FILTERS
    names = environment.list_templates()
    assert "base.html" in names
    for name in names:
        environment.get_template(name)
