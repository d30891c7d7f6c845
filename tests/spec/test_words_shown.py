"""Every word that a hit counts as matched is shown, or named with the call that shows it."""

import re
from pathlib import Path
from random import Random

import pytest

from service.records.intake import Row
from tests.helpers import worlds
from tests.helpers.caller import Local
from tests.helpers.reading import Call, previews, printed_calls
from tests.helpers.worlds import Connection, World, row, stream, text

FILLER = "lorem ipsum dolor sit amet "
NOTE = text("primary-text")
FIELDS = {"title": text("primary-title"), "body": NOTE, "note": text(), "place": text()}
SEARCHED = {"search": {"lexical_fields": [*FIELDS]}}


@pytest.mark.parametrize(
    "data",
    [
        {"body": "the quokka juggles", "note": "a common word"},
        {"body": f"the quokka juggles {FILLER * 60} a common word"},
        {"body": f"the quokka juggles {FILLER * 400} a common word"},
        {"body": "the quokka", "note": "that juggles", "place": "common ground"},
    ],
    ids=["fields", "field", "long field", "three fields"],
)
def test_each_matched_word_is_in_an_excerpt(tmp_path: Path, data: dict[str, str]) -> None:
    others = [row("notes", f"n{n}", title="Other", body=f"common {n}") for n in range(60)]
    rows = (row("notes", "all", title="A note", **data), *others)
    notes = stream("notes", FIELDS, query=SEARCHED)
    world = World((Connection("diary", "diary", "Diary", (notes,), rows),))
    api = worlds.build(world, tmp_path).api({"connection_id": "diary", "stream": "notes"})
    result = api.mcp("search", query="quokka juggles common")
    shown = result["content"][0]["text"].partition("\n2 ")[0]
    assert "coverage=" not in shown or "coverage=1.00" in shown
    assert {"quokka", "juggles", "common"} <= {*marked(shown)}, shown


WORDS = "quokka juggles common lantern meadow quorum".split()
QUERY = " ".join(WORDS)


@pytest.fixture(scope="module")
def scattered(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """Records whose words are in their titles, in several fields, and far apart in long ones."""
    random, rows = Random(3), list[Row]()
    for number in range(40):
        data = dict[str, str]()
        for name in random.sample([*FIELDS], random.randint(1, 4)):
            words = random.sample(WORDS, random.randint(0, 6))
            gap = " ".join(random.choice(("lorem", "ipsum", "dolor")) for _ in range(40))
            size = random.choice([1, 12, 120]) if name in ("body", "note") else 20
            data[name] = f" {gap[:size]}{gap * (size // 40)} ".join(["x", *words, "y"])
        rows.append(row("notes", f"n{number}", **data))
    notes = stream("notes", FIELDS, query=SEARCHED)
    world = World((Connection("diary", "diary", "Diary", (notes,), tuple(rows)),))
    house = worlds.build(world, tmp_path_factory.mktemp("scattered"))
    return Local(house.app, house.grant({"connection_id": "diary", "stream": "notes"})[1])


@pytest.mark.parametrize("limit", [3, 10, 40])
def test_each_matched_word_is_visible_or_named_with_the_call_that_shows_it(
    scattered: Local, limit: int
) -> None:
    page = scattered.ok("search", query=QUERY, limit=limit)
    hits, rungs = page.structured["results"], page.structured["content_ladder"]["records"]
    hidden = 0
    for number, (hit, rung) in enumerate(zip(hits, rungs)):
        card = card_of(page.text, hit["rank"])
        visible = {word for word in hit["matched_words"] if word in hit["title"]}
        visible |= {word for shown in previews(rung) for word in marked(shown)}
        named = [word for one in rung.get("not_shown", ()) for word in one["words"]]
        assert sorted({*visible, *named}) == sorted(hit["matched_words"])
        assert len(set(named)) == len(named) and not visible.intersection(named)
        listed = re.findall(r"not shown: (.*?) (\w+ \{.*\})$", card, re.MULTILINE)
        assert sorted(", ".join(words for words, _ in listed).split(", ")) == sorted(named or [""])
        for one in rung.get("not_shown", ()):
            call = one["read"]
            assert f"not shown: {', '.join(one['words'])} {call['tool']} " in card
            assert Call(call["tool"], call["args"]) in printed_calls(card)
            answer = scattered.ok(call["tool"], **call["args"])
            assert all(word in answer.text for word in one["words"])
            hidden += 1
    assert hidden or limit < 10


@pytest.mark.parametrize(
    "parts, windows",
    [
        (["quokka juggles", "juggles", "quokka", "common"], ["juggles quokka", "common"]),
        (["juggles", "quokka juggles", "quokka juggles"], ["juggles quokka", "juggles quokka"]),
        (["quokka juggles", "quokka juggles", "common"], ["juggles quokka", "common"] * 2),
    ],
    ids=["worse", "as good", "further words first"],
)
def test_a_further_window_shows_a_further_word_or_matches_as_well(
    tmp_path: Path, parts: list[str], windows: list[str]
) -> None:
    body = f" {FILLER * 60} ".join(parts)
    rows = (row("notes", "all", body=body, note="quokka", place="juggles"),)
    notes = stream("notes", FIELDS, query=SEARCHED)
    world = World((Connection("diary", "diary", "Diary", (notes,), rows),))
    api = worlds.build(world, tmp_path).api({"connection_id": "diary", "stream": "notes"})
    hit = api.get("/v1/search?q=quokka+juggles+common").body["data"][0]
    shown = [" ".join(sorted(marked(one["preview_text"]))) for one in hit["evidence_excerpts"]]
    assert shown == windows[:3]


def card_of(text: str, rank: int) -> str:
    """The lines of a hit."""
    after = f"{text}\n".partition(f"\n{rank} diary/")[2]
    return re.split(rf"\n(?:{rank + 1} diary/|to read any|sources|recall|next_page|narrow)", after)[
        0
    ]


def marked(shown: str) -> list[str]:
    return [word for one in re.findall("<mark>(.*?)</mark>", shown) for word in one.split()]
