"""Search by meaning: words prove, meaning orders, and related hits are told apart from evidence."""

import re
from pathlib import Path

import orjson
import pytest

from service.meaning.encoder import MeaningUnavailable
from tests.helpers.caller import Local
from tests.helpers.stores import BODY, TIME, WORD, Connection, House, Stream, build, client
from tests.helpers.trigrams import Trigrams, embed_all

TITLE = {**WORD, "x_pdpp_role": "primary-title"}
TEXT = {**BODY, "x_pdpp_role": "primary-text"}
#: No word of it is in a record, but most of its trigrams are in the third.
UNPROVEN = "exlanternizzz outamberozz"
BODIES = {
    "note1": "the copper kettle boils on the stove",
    "note2": "the copper gate creaks in the wind",
    "note3": "exlanternise outamberous",
    "note4": "nothing of the kind was ever seen here",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    records = [
        {"id": id, "at": f"2026-01-0{n}T08:00:00Z", "title": f"Number {n}", "body": body}
        for n, (id, body) in enumerate(BODIES.items(), start=1)
    ]
    fields = {"id": WORD, "at": TIME, "title": TITLE, "body": TEXT}
    stream = Stream("notes", fields, records, ["title", "body"], "at")
    return embed_all(build([Connection("c", [stream], "key")], tmp_path))


@pytest.fixture
def notes(house: House) -> Local:
    return client(house)


def kinds(body: dict[str, list[dict[str, str]]]) -> list[str]:
    return [hit.get("kind", "proven") for hit in body["results"]]


def test_a_question_without_a_proven_match_is_answered_by_related_records(notes: Local) -> None:
    answer = notes.ok("search", query=UNPROVEN, limit=3)
    first = answer.structured["results"][0]
    assert (first["record_id"], first["kind"], first["begins"]) == (
        *("note3", "related"),
        BODIES["note3"],
    )
    assert not {"evidence_preview", "coverage", "matched_words"} & first.keys()
    assert answer.structured["content_ladder"]["records"][0].keys() == {"id", "read"}
    assert "hits=0 related=3 all=0 some=0" in answer.lines[0]
    assert "ranking=words+meaning model=trigrams" in answer.lines[0]
    assert f"{first['id']} \"Number 3\"" in answer.text and " related\n" in answer.text
    assert f"begins {orjson.dumps(BODIES['note3']).decode()}" in answer.text
    assert "<mark>" not in answer.text and "match=" not in answer.text
    read = first["related"]["read"]
    assert notes.ok(read["tool"], **read["args"]).text.count(BODIES["note3"]) == 1


def test_rest_has_the_same_as_additional_keys(notes: Local) -> None:
    body = notes.get("/v1/search?q=exlanternizzz+outamberozz&limit=3")
    first = body["data"][0]
    assert (first["kind"], first["begins"]) == ("related", BODIES["note3"])
    assert first["evidence_excerpts"] == [] and first["related"]["field"] in ("title", "body")
    assert body["meta"]["counts"]["some"] == 0 and body["meta"]["ranking"] == "words+meaning"


def test_related_records_fill_the_places_that_proven_hits_leave(notes: Local) -> None:
    answer = notes.ok("search", query="copper kettle stove", limit=10)
    assert kinds(answer.structured) == ["proven", "proven", "related", "related"]
    assert [hit["rank"] for hit in answer.structured["results"]] == [1, 2, 3, 4]
    assert notes.ok("search", query="copper kettle stove", limit=2).structured["results"][1]["id"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "copper"},
        {"query": '"copper kettle" stove'},
        {"query": "kettle* stove"},
        {"query": "copper kettle -gate"},
        {"query": "copper kettle", "words": "all"},
        {"query": "copper kettle", "mode": "words"},
        {"query": "title:number copper"},
    ],
)
def test_words_alone_rank_what_asks_for_words(notes: Local, arguments: dict[str, str]) -> None:
    answer = notes.ok("search", **arguments)
    assert "related" not in kinds(answer.structured)
    assert answer.structured["data"]["meta"]["ranking"] == "words"


def test_related_records_are_on_the_first_page_alone_and_never_among_the_newest(
    notes: Local,
) -> None:
    first, second = notes.pages("search", query="copper exlanternizzz outamberozz", limit=1)
    assert kinds(first.structured) == ["related"] or kinds(first.structured) == ["proven"]
    shown = kinds(first.structured) + kinds(second.structured)
    assert shown.count("related") <= 1 and "related" not in kinds(second.structured)
    newest = notes.ok("search", query=UNPROVEN, sort="newest")
    assert newest.structured["results"] == []


class Broken(Trigrams):
    """A model that cannot embed."""

    def question(self, text: str, seconds: float) -> bytes:
        raise MeaningUnavailable("The model cannot be loaded.")


def test_a_model_that_fails_leaves_the_answer_by_words_with_a_warning(house: House) -> None:
    caller, store = client(house), house.app.extensions["rung"].store
    by_words = caller.ok("search", query="copper kettle stove", mode="words").structured
    store.encoder = Broken()
    answer = caller.ok("search", query="copper kettle stove gate").structured
    (warning,) = answer["data"]["meta"]["warnings"]
    assert warning["code"] == "semantic_unavailable"
    assert [hit["id"] for hit in answer["results"]] == [hit["id"] for hit in by_words["results"]]
    store.encoder = Trigrams()
    assert not caller.ok("search", query="copper kettle stove gate").structured["data"]["meta"][
        "warnings"
    ]


class Other(Trigrams):
    """Another model than that of the vectors."""

    def matches(self, id: str) -> bool:
        return False


@pytest.mark.parametrize("encoder", [Trigrams(), Broken(), Other()])
def test_a_grant_without_vectors_learns_nothing_of_those_of_others(
    tmp_path: Path, encoder: Trigrams
) -> None:
    """No name of a model, no warning, no other order: as in a store that has none at all."""
    fields = {"id": WORD, "title": TITLE, "body": TEXT, "remark": WORD}
    records = [
        {"id": f"{n}", "title": "A number", "body": body, "remark": f"copper remark {body}"}
        for n, body in enumerate(BODIES.values())
    ]
    streams = [
        Stream("notes", fields, records, ["title", "body", "remark"]),
        Stream("remarks", {"id": WORD, "remark": WORD}, records, ["remark"]),
    ]
    texts = list[list[str]]()
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        house = build([Connection("c", streams, "key")], tmp_path / name)
        if name == "with":
            embed_all(house)
        house.app.extensions["rung"].store.encoder = encoder
        remark_alone = {"stream": "notes", "fields": ["id", "remark"]}
        entries = (
            {"connection_id": "c", **entry} for entry in (remark_alone, {"stream": "remarks"})
        )
        caller = client(house, *entries)
        texts.append(
            [
                caller.ok("search", query=query, limit=limit).text
                for query in ("copper kettle stove", UNPROVEN, "zymurgy", "copper", "gate wind")
                for limit in (1, 10)
            ]
        )
    assert "ranking=words" in texts[0][0] and "meaning" not in "".join(texts[0])
    assert [own_lines(one) for one in texts[0]] == [own_lines(one) for one in texts[1]]


def own_lines(text: str) -> list[str]:
    """The lines of our own without cursors, which are encrypted anew in each store."""
    lines = re.sub("<<<[0-9a-f]{12}|[0-9a-f]{12}>>>", "", text).split("\n")
    return [line.partition('"cursor"')[0] for line in lines]
