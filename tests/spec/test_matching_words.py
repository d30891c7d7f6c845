"""Which words of a grant a word of a question matches: itself, its forms and what it may mean."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.fold import fold
from evidence.language import edits
from evidence.limits import BUDGETS, CONTRACT
from service.access.registry import Grant, StreamGrant
from service.records.engine.later import run
from service.records.engine import Snapshot
from service.records.opening import open_reader
from service.records.view import View, open_view
from tests.helpers import worlds
from tests.helpers.worlds import Api, Connection, House, World, row

LETTERS = "abcdд1"
WORDS = st.lists(st.text(LETTERS, min_size=3, max_size=8), min_size=6, max_size=40)
DAYS = [f"2026-03-0{day}" for day in range(1, 6)]
LETTER_FIELDS = {
    "subject": worlds.text("primary-title"),
    "body": worlds.text(),
    "at": worlds.moment(),
}
FIELDS = ("id", *LETTER_FIELDS)
MARCH_3 = 1_772_496_000_000_000
#: Grants, and whether they show a field of a record of a day.
GRANTS: list[tuple[list[StreamGrant], Callable[[str, str, str], bool]]] = [
    ([StreamGrant(one, "letters", FIELDS) for one in ("one", "two")], lambda *_: True),
    ([StreamGrant("two", "letters", FIELDS)], lambda name, *_: name == "two"),
    (
        [StreamGrant("one", "letters", ("id", "body"))],
        lambda name, field, _: (name, field) == ("one", "body"),
    ),
    (
        [
            StreamGrant("one", "letters", ("id", "subject")),
            StreamGrant("two", "letters", ("id", "subject", "at"), since=MARCH_3),
        ],
        lambda name, field, day: field == "subject" and (name == "one" or day >= "2026-03-03"),
    ),
]


def house_of(folder: Path, *connections: tuple[str, list[dict[str, Any]]]) -> House:
    """A store of connections with one stream of letters each."""
    letters = worlds.stream(
        "letters", LETTER_FIELDS, "at", query={"search": {"lexical_fields": ["subject", "body"]}}
    )
    world = World(
        tuple(
            Connection(
                name,
                "post",
                None,
                (letters,),
                tuple(row("letters", f"r{number}", **data) for number, data in enumerate(rows)),
            )
            for name, rows in connections
        )
    )
    return worlds.build(world, folder)


@contextmanager
def view_of(house: House, streams: list[StreamGrant]) -> Iterator[tuple[Snapshot, View]]:
    """What a grant of some streams shows."""
    with open_reader(house.path).snapshot() as snapshot:
        snapshot.confine({one.connection_id for one in streams})
        yield snapshot, open_view(snapshot, Grant("grt", None, tuple(streams)))


@settings(deadline=None, max_examples=8)  # each is a store
@given(words=WORDS, seed=st.integers(0, 99))
def test_a_correction_is_any_granted_word_one_edit_away(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], seed: int
) -> None:
    draw = Random(seed)
    texts = {
        name: [
            {
                "subject": " ".join(draw.choices(words, k=2)),
                "body": " ".join(draw.choices(words, k=4)),
                "at": day,
            }
            for day in DAYS
        ]
        for name in ("one", "two")
    }
    house = house_of(tmp_path_factory.mktemp("words"), *texts.items())
    house.add("one", row("letters", "r1", subject="gone"))
    texts["one"][1] = {"subject": "gone", "body": "", "at": ""}
    typed = {word for word in words if len(word) >= 5}
    typed |= {draw.choice(sorted(edits(word, LETTERS))) for word in typed}
    for streams, shows in GRANTS:
        granted = Counter[str]()
        for name, rows in texts.items():
            for data in rows:
                for field in ("subject", "body"):
                    if shows(name, field, data["at"]):
                        granted.update(set(data[field].split()))
        with view_of(house, streams) as (snapshot, view):
            vocabulary = view.vocabulary(snapshot)
            for word in typed:
                near = {one for one in edits(word, LETTERS) & granted.keys() if _is_word(one)}
                expected = near if len(word) >= 5 and _is_word(word) else set()
                assert run(vocabulary.near(word)).keys() == expected, (word, streams)


def _is_word(text: str) -> bool:
    return text.count("1") * 2 < len(text)


#: Letters of scripts with spaces, as many as one hostile mail may have.
ALPHABETS = [
    char for char in map(chr, range(0x61, 0x1FFFF)) if char.isalpha() and fold(char) == char
]
MOST_BYTES = 1_048_576


def test_many_letters_cost_a_correction_nothing(tmp_path: Path) -> None:
    word = "wintering"
    long = word * 4
    crowd = " ".join(f"{word[:-1]}{letter}" for letter in ALPHABETS)
    mails = [{"subject": f"{word} {long}"}, {"body": crowd}]
    house = house_of(tmp_path, ("one", mails[:1]), ("two", mails))
    for streams in (
        [StreamGrant("one", "letters", FIELDS)],
        [StreamGrant("two", "letters", FIELDS)],
    ):
        with view_of(house, streams) as (snapshot, view):
            vocabulary = view.vocabulary(snapshot)
            for typed, meant in ((word[:-2] + "xg", word), (long[:-2] + "xg", long)):
                run(vocabulary.near(typed))
                tracemalloc.start()
                assert list(run(vocabulary.near(typed))) == [meant]
                _, most = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert most < MOST_BYTES
    with view_of(house, [StreamGrant("two", "letters", FIELDS)]) as (snapshot, view):
        assert run(view.vocabulary(snapshot).near(word[:-1])) == {}  # as near to thousands
    with view_of(house, [StreamGrant("one", "letters", FIELDS)]) as (snapshot, view):
        assert list(run(view.vocabulary(snapshot).near(word[:-1]))) == [word]


#: More words with one first letter than a prefix reaches, in records of a hundred words each.
BROAD = [
    {"subject": f"mail {first}", "body": " ".join(f"q{n}x" for n in range(first, first + 100))}
    for first in range(0, BUDGETS.prefix_words_read + 300, 100)
]
NARROW = [{"subject": f"mail {n}", "body": f"quay{n} rarely zebra{n}"} for n in range(9)]


@pytest.fixture(scope="module")
def broad(tmp_path_factory: pytest.TempPathFactory) -> House:
    """`one` has few words with each first letter, `two` more than a prefix reaches."""
    rows = [*BROAD, {"body": "rarely " + "x " * CONTRACT.passage_chars + "q1x"}]
    return house_of(tmp_path_factory.mktemp("broad"), ("one", NARROW), ("two", rows))


def test_a_prefix_of_too_many_words_takes_the_newest_rows(broad: House) -> None:
    answer = broad.api().rest("/v1/search", q="q*", limit=100).body
    meta = answer["meta"]
    assert meta["counts"]["accuracy"] == "lower_bound" and meta["recall"]["complete"] is False
    assert meta["counts"]["some"] == len(BROAD) + len(NARROW) + 1
    assert {hit["connection_id"] for hit in answer["data"]} == {"one", "two"}
    both = broad.api().rest("/v1/search", q="q* rarely").body
    assert both["meta"]["counts"]["some"] == len(NARROW) + 1
    without = broad.api().rest("/v1/search", q="mail -q*").body
    assert without["data"] == []


def test_only_several_prefixes_that_have_too_many_words_together_are_refused(broad: House) -> None:
    refused = broad.api().rest("/v1/search", q="q* zeb*")
    assert refused.status == 400 and refused.body["error"]["code"] == "query_too_broad"
    assert "query='zeb*'" in refused.body["error"]["message"]
    assert broad.api().rest("/v1/search", q="q1* zeb*").status == 200
    assert broad.api({"connection_id": "one"}).rest("/v1/search", q="q* zeb*").status == 200


@pytest.mark.parametrize("query", ["q*", "q* zeb*", "q* -zebra1*"])
def test_hidden_words_decide_nothing_about_a_prefix(
    broad: House, tmp_path: Path, query: str
) -> None:
    other = house_of(tmp_path, ("one", NARROW))
    found = [
        house.api({"connection_id": "one"}).rest("/v1/search", q=query) for house in (broad, other)
    ]
    for key in ("data", "meta"):
        here, there = (one.body[key] for one in found)
        assert here == there and here


GERMAN = [
    {"body": text}
    for text in (
        "Die Anmeldung ist abgeschlossen und der Ausweis liegt für Sie bei uns im Amt bereit.",
        "Your registration is complete",
        "Der Krieg war lang, und die Stadt war leer, als er aus dem Osten zu uns nach Hause kam.",
        "Das Quokka ist ein Tier aus Australien, und es lächelt auf den Bildern wie kein anderes.",
        "My lumbar area",
    )
]
ENGLISH = [
    {"body": "The ship did not leave the harbour as it was too late for us to see the open sea."},
    {"body": "We can see the lighthouse from here, and the sea is calm on most of the days."},
]
FRENCH = [
    {"body": "Il faut que tu le voies avant que la mer ne soit plus ce qu'elle a été pour nous."}
]


def found(api: Api, query: str, **args: Any) -> list[str]:
    hits = api.rest("/v1/search", q=query, limit=100, **args).body["data"]
    return sorted(f"{hit['connection_id']}-{hit['record_key']}" for hit in hits)


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory: pytest.TempPathFactory) -> House:
    """German mails with two English ones among them, English and French ones apart."""
    rows = [*GERMAN, *({"body": f"Das ist die Nachricht {n} an dich und mich."} for n in range(9))]
    folder = tmp_path_factory.mktemp("bilingual")
    return house_of(folder, ("de", rows), ("en", ENGLISH), ("fr", FRENCH))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what is the quokka", ["de-r3"]),
        ("when does my passport expire", []),
        ("wo ist das quokka", ["de-r3"]),
        ("was ist der Krieg", ["de-r2"]),
        ("war", ["de-r2"]),  # nothing else is left
    ],
)
def test_function_words_of_the_language_of_the_question_never_select(
    bilingual: House, query: str, expected: list[str]
) -> None:
    assert found(bilingual.api({"connection_id": "de"}), query) == expected


def test_function_words_of_another_language_are_words(bilingual: House) -> None:
    api = bilingual.api({"connection_id": "de"})
    first = api.rest("/v1/search", q="How did he die in the war").body["data"][0]
    assert first["record_key"] == "r2" and first["matched_words"] == ["die", "war"]


def test_languages_of_hidden_streams_decide_nothing(bilingual: House, tmp_path: Path) -> None:
    alone = house_of(tmp_path, ("en", ENGLISH))
    for query in ("die", "das war the sea", "seeing", "open"):
        shown = [
            house.api({"connection_id": "en"}).rest("/v1/search", q=query).body
            for house in (bilingual, alone)
        ]
        assert shown[0]["data"] == shown[1]["data"] and shown[0]["meta"] == shown[1]["meta"]


def test_a_form_of_one_language_is_no_word_of_another(bilingual: House, tmp_path: Path) -> None:
    assert found(bilingual.api(), "lighthouses see") == ["en-r0", "en-r1"]
    assert found(bilingual.api(), "sea") == ["en-r0", "en-r1"]
    assert found(house_of(tmp_path, ("en", [*ENGLISH, {"body": "blue sea"}])).api(), "see") == [
        *("en-r0", "en-r1"),
    ]


def test_forms_are_looked_for_again_after_a_commit_and_in_each_grant(tmp_path: Path) -> None:
    house = house_of(tmp_path, ("one", [{"body": "A lantern."}]), ("two", [{"body": "Lanterns."}]))
    one, both = house.api({"connection_id": "one"}), house.api()
    for _ in range(2):
        assert found(one, "lantern") == ["one-r0"]
        assert found(both, "lantern") == ["one-r0", "two-r0"]
    house.add("one", row("letters", "r1", body="More lanterns."))
    for _ in range(2):
        assert found(one, "lantern") == ["one-r0", "one-r1"]
        assert found(both, "lantern") == ["one-r0", "one-r1", "two-r0"]


NUMBERS = [
    {"body": "Call +49 170 123 45 67 or send an E-Mail."},
    {"body": "His number is 0170/1234567, her email is unknown."},
    {"body": "0049 (0)170-1234567"},
    {"body": "Order 12.345.678 came on 2026-03-01, 170 kg in 49 boxes."},
    {"body": "state-of-the-art heating, 1234568"},
]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return house_of(tmp_path_factory.mktemp("numbers"), ("one", NUMBERS)).api()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("01701234567", ["one-r0", "one-r1", "one-r2"]),
        ("+491701234567", ["one-r0", "one-r1", "one-r2"]),
        ("12345678", ["one-r3"]),
        ("1234569", []),
        ("email", ["one-r0", "one-r1"]),
        ("stateoftheart", ["one-r4"]),
    ],
)
def test_numbers_and_hyphenated_words_match_across_their_separators(
    numbers: Api, query: str, expected: list[str]
) -> None:
    for words in ("any", "all"):
        assert found(numbers, query, words=words) == expected


@pytest.mark.parametrize("query", ["+49 170 1234567", "0170 / 1234567", "(0170) 123-4567"])
def test_a_number_in_parts_matches_the_whole_number(numbers: Api, query: str) -> None:
    hits = numbers.rest("/v1/search", q=query, words="all").body["data"]
    assert {hit["record_key"] for hit in hits} >= {"r0", "r1", "r2"}
    assert all(hit["coverage"] == 1 for hit in hits)


def test_a_hyphenated_word_matches_it_written_together(numbers: Api) -> None:
    assert found(numbers, "e-mail", words="all") == ["one-r0", "one-r1"]


BREAD = [
    {"body": text}
    for text in (
        "Das Sauerteigbrot ist aus dem Ofen, und wir haben es mit der Butter zu euch gebracht.",
        "Ein Brot aus Roggen ist schwer, und die Haftpflicht ist nicht für das Brot zu haben.",
        "Die Haftpflichtversicherung ist zum Ende des Jahres von uns gekündigt worden.",
        "Der Freundschaftsdienst war nett, ein Dienst von dir an uns, und die Freundschaft bleibt.",
        "Die Verunsicherung ist groß, und sie geht nicht so bald aus dem Haus.",
    )
]


@pytest.fixture(scope="module")
def bread(tmp_path_factory: pytest.TempPathFactory) -> House:
    other = [
        {"body": "Das Teigbrot und der Vollkornsauerteig sind aus dem Haus, und das ist gut so."}
    ]
    return house_of(tmp_path_factory.mktemp("bread"), ("one", BREAD), ("two", other))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Sauerteig", ["one-r0"]),
        ("Versicherung", ["one-r2"]),
        ("Dienst", ["one-r3"]),
        ("sicherung", []),
        ("Dienstfreundschaft", ["one-r3"]),
        ("Brothaftpflicht", ["one-r1"]),
    ],
)
def test_a_compound_matches_its_parts_inside_the_grant(
    bread: House, query: str, expected: list[str]
) -> None:
    api = bread.api({"connection_id": "one"})
    assert found(api, query) == expected
    literal = [key for key in expected if query == "Dienst"]
    assert found(api, query, words="all") == literal


def test_hidden_words_are_no_parts_of_compounds(bread: House) -> None:
    assert found(bread.api(), "Sauerteig") == ["one-r0"]
    assert found(bread.api(), "Teig") == ["two-r0"]
    assert found(bread.api({"connection_id": "one"}), "Teig") == []
