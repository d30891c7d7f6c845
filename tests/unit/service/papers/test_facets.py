"""Facets: counted, in order, and each value leads to its papers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evidence.papers import BY_KEYWORD, CATEGORIES, PaperPage
from service.papers.names import facets
from service.papers.search import by_keyword, search
from service.papers.snapshot import Snapshot
from service.ports.papers import KeywordQuery, PaperQuery
from tests.unit.service.papers.making import RELEASES, Made, made, opened


@pytest.fixture(scope="module", params=RELEASES)
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    found = opened(request.param)
    yield found
    found.close()


def all_of(snapshot: Snapshot, category: str) -> list[tuple[str, int]]:
    return facets(snapshot, category, limit=1_000, offset=0).values


@pytest.mark.parametrize("category", CATEGORIES)
def test_values_come_by_papers_then_by_value_and_unknown_ones_do_not(
    snapshot: Snapshot, category: str
) -> None:
    values = all_of(snapshot, category)
    assert values and values == sorted(values, key=lambda value: (-value[1], value[0]))
    assert all(count > 0 and value not in ("", "unknown") for value, count in values)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_value_leads_to_its_papers(snapshot: Snapshot, category: str) -> None:
    found = facets(snapshot, category, limit=1_000, offset=0)
    for value, count in found.values:
        call = found.search(value)
        assert len(papers(snapshot, call.operation, call.args)) >= count, value


def papers(snapshot: Snapshot, operation: str, args: dict[str, str]) -> list[str]:
    page: PaperPage
    if operation == BY_KEYWORD:
        page = by_keyword(snapshot, KeywordQuery(args["keyword"], limit=100))
    else:
        page = search(snapshot, PaperQuery(args["query"], limit=100))
    return [hit.paper_id for hit in page.hits]


ODD = (
    'o\'reilly "media"',
    "%",
    "100%_sure",
    "+++",
    "a:b",
    "-x",
    "“q”",
    "c*",
    "★",
    "北京",
    "ßé",
    "()",
)


@pytest.mark.parametrize("category", ["author", "venue", "keyword", "institution", "tag"])
def test_odd_values_lead_to_their_papers(tmp_path: Path, category: str) -> None:
    odd = (Made(f"odd-{number}", values={category: [value]}) for number, value in enumerate(ODD))
    snapshot = made(tmp_path, *odd)
    found = facets(snapshot, category, limit=1_000, offset=0)
    for number, value in enumerate(ODD):
        call = found.search(value.lower())
        assert f"odd-{number}" in papers(snapshot, call.operation, call.args), value
    snapshot.close()


def test_pages_follow_each_other_to_the_end(snapshot: Snapshot) -> None:
    whole = all_of(snapshot, "author")
    read: list[tuple[str, int]] = []
    page = facets(snapshot, "author", limit=50, offset=0)
    while True:
        read += page.values
        if not (following := page.continuations()):
            break
        page = facets(snapshot, **following[0].args)
    assert read == whole and page.total == len(whole)


def test_values_that_nothing_could_ask_for_are_not_listed(tmp_path: Path) -> None:
    blank = ("\n", "\u00a0", '"', "..", "\u200b", "\u202e")
    paper = Made("odd", values={"author": blank, "keyword": (*blank, "c++", ".net")})
    snapshot = made(tmp_path, paper)
    assert not {value for value, _ in all_of(snapshot, "author")} & set(blank)
    keywords = {value for value, _ in all_of(snapshot, "keyword")}
    assert {"c++", ".net"} <= keywords and not keywords & set(blank)
