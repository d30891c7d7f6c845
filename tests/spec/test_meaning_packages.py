"""Related hits of a package: those of its sources in turn, few, once, and on the first page."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from evidence.page_order import related_most
from renderers.rendering import Context
from renderers.search import fit, render
from service.ports import SearchQuery
from tests.helpers.sources import Crowd, Plan, of_grants
from tests.helpers.stores import BODY, WORD, Connection, Stream, build
from tests.helpers.trigrams import embed_all

FIELDS = {
    "id": WORD,
    "title": {**WORD, "x_pdpp_role": "primary-title"},
    "body": BODY,
    "remark": WORD,
}
#: No word of it is in a record, but its trigrams are.
UNPROVEN = "xxlanternxxx yylightyyy"


def plans(draw: st.DrawFn, number: int) -> Plan:
    coverage = draw(st.sampled_from([0.2, 0.9, None]))
    hits = draw(st.integers(0, 12))
    return Plan(
        hits=hits,
        most=draw(st.sampled_from([1, 3, 100])),
        more=tuple({"coverage": coverage} for _ in range(hits)) if coverage else (),
        related=tuple(f"related {number}-{n}" for n in range(draw(st.integers(0, 5)))),
        meta={"ranking": "words+meaning"},
    )


@st.composite
def crowds(draw: st.DrawFn) -> list[Plan]:
    return [plans(draw, number) for number in range(draw(st.integers(2, 14)))]


def kind(row: dict[str, Any]) -> str:
    return str(row.get("kind", "proven"))


@given(crowds(), st.integers(1, 30))
def test_pages_have_each_record_once_and_few_related_ones_first(
    drawn: list[Plan], limit: int
) -> None:
    crowd = Crowd(drawn)
    first, *others = list(crowd.pages(limit))
    pages = [first, *others]
    rows = [row for body in pages for row in body["data"]]
    proven = [row["record_key"] for row in rows if kind(row) == "proven"]
    related = [row["record_key"] for row in rows if kind(row) == "related"]
    everything = [row["record_key"] for server in crowd.servers for row in server.rows]
    assert sorted(proven) == sorted(everything)
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(len(body["data"]) <= limit for body in pages)
    assert all(kind(row) == "proven" for body in others for row in body["data"])
    most = related_most(limit) if any(kind(row) == "proven" for row in first["data"]) else limit
    assert len(set(related)) == len(related) <= most
    kinds = [kind(row) for row in first["data"]]
    assert kinds == sorted(kinds)
    for row in rows:
        assert row["connection_id"] and row["evidence_excerpts"] == []


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8), st.integers(1, 12))
def test_sources_take_turns_if_no_record_holds_a_word(counts: list[int], limit: int) -> None:
    drawn = [
        Plan(hits=0, related=tuple(f"{number} {n}" for n in range(size)))
        for number, size in enumerate(counts)
    ]
    shown = [hit.ref.record_id for hit in Crowd(drawn).search(limit=limit).value.hits]
    most = min(limit, max(counts))  # a source was asked for no more
    turns = [f"{n} {at}" for at in range(most) for n, size in enumerate(counts) if at < size]
    assert shown == turns[:limit]


def test_members_of_a_store_have_related_hits_with_their_connections(tmp_path: Path) -> None:
    """One member shares records with another and hides titles, one has no vectors."""
    connections = [
        Connection(
            name,
            [
                Stream(
                    "notes",
                    FIELDS,
                    [
                        {"id": f"{n}", "title": f"Number {n}", "body": body, "remark": body}
                        for n, body in enumerate(bodies)
                    ],
                    ["title", "body", "remark"],
                )
            ],
            "key",
        )
        for name, bodies in (
            ("one", ["lantern lights", "a gate", "lanterns light"]),
            ("two", ["lantern light kettle", "nothing"]),
            ("three", ["lantern lights"]),
        )
    ]
    house = embed_all(build(connections, tmp_path))
    grants: dict[str, tuple[dict[str, Any], ...]] = {
        "first": ({"connection_id": "one", "stream": "notes"},),
        "again": ({"connection_id": "one", "stream": "notes", "fields": ["id", "body"]},),
        "second": ({"connection_id": "two", "stream": "notes"},),
        "bare": ({"connection_id": "three", "stream": "notes", "fields": ["id", "remark"]},),
    }
    package = of_grants(house, grants)
    page: SearchPage = package().search(SearchQuery(UNPROVEN, limit=10)).value
    ids = [hit.id for hit in page.hits]
    assert len(set(ids)) == len(ids) and {"one/notes:0", "one/notes:2", "two/notes:0"} <= {*ids}
    assert not any(id.startswith("three") for id in ids)
    for hit in page.hits:
        assert hit.related is not None and hit.related.read.args["id"] == hit.id
    assert (page.ranking, page.model) == ("words+meaning", "trigrams")
    assert page.recall["ranked_by_words"] == ["again", "bare"]
    text = "\n".join(render(fit(page, BUDGETS), Context()).blocks)
    assert "recall: these sources ranked by words alone, not by meaning: again, bare." in text
    both = list[str]()
    cursor = None
    while True:
        query = SearchQuery("gate nothing kettle", limit=2, cursor=cursor)
        page = package().search(query).value
        both += [hit.id for hit in page.proven]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(both) == ["one/notes:1", "two/notes:0", "two/notes:1"]
