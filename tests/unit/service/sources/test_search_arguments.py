"""Arguments of a search that PDPP does not have: sent where a source declares them."""

from typing import Any

import pytest

from evidence.errors import InvalidRequest, Unavailable
from service.ports import SEARCH_EXTENSIONS, SearchQuery
from tests.helpers.all_words import AllWords
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.remote import caller_of, opener
from tests.helpers.scripted import Scripted

NOTES = {"n1": "the copper key"}
ARGUMENTS: dict[str, Any] = {"since": "2026-01-01", "until": "2026-02-01", "sort": "newest"}
DECLARING = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_that_is_not_declared_is_refused_with_the_call_without_it(name: str) -> None:
    source = AllWords(NOTES)
    query = SearchQuery("copper", streams=("notes",), **{name: ARGUMENTS[name]})
    with answering(source) as server:
        error = Scripted(server).refused(lambda rs: rs.search(query))
    assert isinstance(error, InvalidRequest) and error.code == "unsupported_by_source"
    assert error.details["param"] == name
    (call,) = error.calls
    assert call.operation == "search" and call.args == {"query": "copper", "streams": ["notes"]}
    assert not source.asked


def test_words_that_is_not_declared_is_left_out_with_a_warning_in_both_forms() -> None:
    source = AllWords(NOTES)
    with answering(source) as server:
        answer = Scripted(server).open().search(SearchQuery("copper key", words="all", widen=True))
    assert "words" not in source.given[0] and len(source.given) == 1
    (warning,) = answer.value.warnings
    assert (warning["code"], warning["param"]) == ("unsupported_by_source", "words")
    assert answer.body is not None and answer.body["meta"]["warnings"] == [warning]


def test_a_mode_that_is_not_declared_is_left_out_because_words_are_all_there_is() -> None:
    source = AllWords(NOTES)
    with answering(source) as server:
        answer = Scripted(server).open().search(SearchQuery("copper", mode="words"))
    assert "mode" not in source.given[0] and not answer.value.warnings


def test_what_is_declared_is_sent_and_asked_about_once() -> None:
    assert set(SEARCH_EXTENSIONS) == {"words", "mode", *ARGUMENTS}
    source = AllWords(NOTES, declared=list(SEARCH_EXTENSIONS))
    with answering(source) as server:
        world = Scripted(server)
        for _ in range(2):
            world.open().search(SearchQuery("copper", words="all", **ARGUMENTS))
    assert world.targets.count(DECLARING) == 1
    for given in source.given:
        assert given.items() >= {"words": ["all"], **{k: [v] for k, v in ARGUMENTS.items()}}.items()


def test_nothing_is_asked_about_a_plain_search() -> None:
    with answering(AllWords(NOTES)) as server:
        world = Scripted(server)
        world.open().search(SearchQuery("copper"))
    assert [target.split("?")[0] for target in world.targets] == ["/v1/search"]


def test_the_index_of_the_front_page_may_declare_them_too() -> None:
    source = AllWords(NOTES)

    def answer(asked: Asked) -> Reply:
        if asked.target == "/":
            return as_json({"capabilities": {"lexical_retrieval": {"parameters": ["since", 7]}}})
        return source(asked)

    with answering(answer) as server:
        world = Scripted(server)
        world.open().search(SearchQuery("copper", since="2026-01-01"))
        error = world.refused(lambda rs: rs.search(SearchQuery("copper", until="2026-01-01")))
    assert source.given[0]["since"] == ["2026-01-01"]
    assert error.code == "unsupported_by_source"


def test_a_source_that_cannot_tell_is_unavailable_and_not_said_to_lack_anything() -> None:
    source = AllWords(NOTES)

    def answer(asked: Asked) -> Reply:
        return source(asked) if asked.target.startswith("/v1") else as_json({}, 503)

    with answering(answer) as server:
        world = Scripted(server)
        error = world.refused(lambda rs: rs.search(SearchQuery("copper", since="2026-01-01")))
    assert isinstance(error, Unavailable)


def test_a_model_reads_what_to_do_instead() -> None:
    with answering(AllWords(NOTES)) as server:
        caller = caller_of(opener(server.url, "t"))
        answer = caller.call("search", query="copper", since="2026-01-01")
    assert answer.failed and answer.error["code"] == "unsupported_by_source"
    assert 'search {"query":"copper"}' in answer.text
