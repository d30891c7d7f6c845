"""A prefix of very many words: a bounded search that says so, and depends on the grant alone."""

import pytest

from evidence.limits import BUDGETS
from service.records.finding import SPANS_CONSIDERED
from tests.helpers.caller import Local
from tests.helpers.stores import BODY, TITLE, Connection, Stream, build
from tests.helpers.worlds import House

WORDS = [f"wren{number:04}" for number in range(BUDGETS.prefix_words + 50)]
SHORT = "wry"
LONGEST = "wrenthelongest"
#: Long enough to lie in chunks; its longest word stands in the first, all others in the last.
LONG = f"owl {LONGEST} {'filler ' * 12_000} {' '.join(WORDS)}"
TYPED = "w*"


def notes(*bodies: str) -> Stream:
    records = [{"id": f"n{at}", "title": "A note", "body": body} for at, body in enumerate(bodies)]
    return Stream("notes", {"title": TITLE, "body": BODY}, records, ("title", "body"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A connection with more words than a prefix may stand for, one with three, one long text."""
    crowded = notes(*(f"owl {word}" for word in WORDS), f"owl {SHORT}")
    calm = notes("owl wren0001", "owl wren0002 wrenlet", "owl", "hare")
    connections = [
        Connection("crowded", (crowded,), "list"),
        Connection("calm", (calm,), "list"),
        Connection("long", (notes(LONG),), "list"),
    ]
    return build(connections, tmp_path_factory.mktemp("prefixes"))


def client(house: House, *connections: str) -> Local:
    return Local(house.app, house.grant(*({"connection_id": name} for name in connections))[1])


def test_a_prefix_of_too_many_words_finds_some_and_says_that_there_are_more(house: House) -> None:
    found = client(house, "crowded").ok("search", query=TYPED, limit=100)
    assert "complete=false" in found.text and "more letters" in found.text
    assert "narrow with streams" not in found.text
    meta = found.structured["data"]["meta"]
    assert meta["count_accuracy"] == "lower_bound" and meta["recall"]["truncated"] is True
    assert found.structured["results"]


def test_the_shortest_words_are_searched_for_first(house: House) -> None:
    reader, shown, cursor = client(house, "crowded"), "", ""
    while cursor is not None:
        page = reader.get(f"/v1/search?q={TYPED}&limit=100{cursor and f'&cursor={cursor}'}")
        shown += str(page["data"])
        cursor = page.get("next_cursor")
    assert SHORT in shown and WORDS[0] in shown and WORDS[-1] not in shown


def test_what_other_connections_hold_neither_cuts_nor_shows(house: House) -> None:
    found = client(house, "calm").ok("search", query=TYPED)
    meta = found.structured["data"]["meta"]
    assert meta["recall"]["complete"] is True and meta["warnings"] == []
    assert (meta["count"], meta["count_accuracy"]) == (2, "exact")


def test_nothing_in_scope_begins_so_although_much_of_the_store_does(house: House) -> None:
    found = client(house, "calm").ok("search", query="wren03*")
    assert found.structured["results"] == [] and "complete=true" in found.text


def test_an_excluded_prefix_excludes_all_of_its_words_or_is_refused(house: House) -> None:
    calm = client(house, "calm").ok("search", query="owl -w*")
    assert [hit["id"] for hit in calm.structured["results"]] == ["calm/notes:n2"]
    refused = client(house, "crowded").fails("search", query="owl -w*").error
    assert refused["code"] == "invalid_request" and "more letters" in refused["message"]


def test_a_long_text_is_read_by_such_a_prefix_in_every_part_of_it(house: House) -> None:
    reader = client(house, "long")
    (hit,) = reader.ok("search", query=f"{TYPED} owl").structured["results"]
    assert "wren" in hit["evidence_preview"]
    read = {"id": hit["id"], "field_path": "body", "query": TYPED}
    first = reader.ok("read_record_field", **read)
    assert WORDS[0] in first.text and LONGEST not in first.text
    assert LONGEST in reader.ok("read_record_field", **read, match=SPANS_CONSIDERED + 1).text
