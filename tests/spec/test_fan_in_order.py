"""The order of a package: coverage, then the best passage, each source in its own order."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evidence.errors import InvalidRequest
from evidence.hits import Counts, SearchPage
from evidence.work import Deadline
from evidence.model import MemberStream
from service.ports import SearchQuery
from service.sources.package import Child, PackageResourceServer
from service.sources.remote.origin import Origin
from service.sources.remote.server import HttpResourceServer
from tests.helpers.all_words import AllWords
from tests.helpers.loopback import answering
from tests.helpers.sources import SEALER, Crowd, Plan, planned

QUESTION = "where is the copper key"


def excerpt(text: str) -> dict[str, Any]:
    return {"evidence_excerpts": [{"field_path": "text", "preview_text": text}]}


def covering(*shares: float, **more: Any) -> Plan:
    """A source that reports the coverage of its hits."""
    return Plan(len(shares), more=tuple({"coverage": share} for share in shares), **more)


def showing(*texts: str) -> Plan:
    """A source that reports no coverage; only its excerpts show what matches."""
    return Plan(len(texts), more=tuple(excerpt(text) for text in texts))


def ask(crowd: Crowd, **args: Any) -> SearchPage:
    return crowd.open().search(SearchQuery(QUESTION, **args)).value


def all_of(crowd: Crowd, **args: Any) -> Iterator[SearchPage]:
    cursor = None
    while True:
        page = ask(crowd, cursor=cursor, **args)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def order(page: SearchPage) -> list[str]:
    """The hits as (source, number)."""
    return [hit.ref.record_id.removeprefix("source ") for hit in page.hits]


def test_better_coverage_comes_first_and_each_source_keeps_its_order() -> None:
    page = ask(Crowd([covering(0.9, 0.2, 0.8), covering(0.7, 0.6), covering(1.0)]), limit=6)
    assert order(page) == ["2-0", "0-0", "1-0", "1-1", "0-1", "0-2"]
    assert [hit.rank for hit in page.hits] == [1, 2, 3, 4, 5, 6]


def test_coverage_that_is_not_reported_is_worked_out_from_the_windows() -> None:
    proving = showing("the <mark>copper</mark> <mark>keys</mark>", "a <mark>key</mark>", "nothing")
    page = ask(Crowd([covering(0.9, 0.4), proving]), limit=5)
    assert order(page) == ["1-0", "0-0", "1-1", "0-1", "1-2"]
    assert [hit.coverage for hit in page.hits] == [1.0, 0.9, 0.5, 0.4, 0.0]
    assert page.hits[0].matched_words == ["copper", "key"]
    assert page.hits[0].forms == {"key": "keys"} and page.hits[0].missing_words == []


def test_of_equal_coverage_the_tighter_passage_comes_first() -> None:
    near, far = "copper key", "copper is a metal that is red and not the key"
    page = ask(Crowd([showing(far), showing(near)]), limit=2)
    assert order(page) == ["1-0", "0-0"]


def test_what_is_equal_takes_turns_and_who_has_shown_nothing_comes_first() -> None:
    crowd = Crowd([covering(1.0, 1.0, 1.0), covering(1.0), covering(1.0, 1.0)])
    assert [order(page) for page in all_of(crowd, limit=2)] == [
        ["0-0", "1-0"],
        ["2-0", "0-1"],
        ["0-2", "2-1"],
    ]


def test_a_source_that_covers_less_waits_for_better_hits_of_others() -> None:
    crowd = Crowd([covering(*[0.9] * 5), covering(0.1, 0.1)])
    assert [order(page) for page in all_of(crowd, limit=3)] == [
        ["0-0", "0-1", "0-2"],
        ["0-3", "0-4", "1-0"],
        ["1-1"],
    ]


SHARES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=8)


@given(
    st.lists(st.builds(lambda s: sorted(s, reverse=True), SHARES), min_size=2, max_size=8),
    st.integers(1, 12),
)
def test_sources_in_order_of_coverage_merge_into_that_order(
    shares: list[list[float]], limit: int
) -> None:
    pages = list(all_of(Crowd([covering(*one) for one in shares]), limit=limit))
    shown = [hit for page in pages for hit in page.hits]
    assert [hit.rank for hit in shown] == [*range(1, len(shown) + 1)]
    assert len(shown) == sum(map(len, shares)) == len({hit.id for hit in shown})
    assert all((one.coverage or 0) >= (two.coverage or 0) for one, two in pairwise(shown))


LEFT = {"code": "newest_page_only", "message": "3 more.", "detail": {"left_out": 3}}


def test_the_newest_come_first_across_sources() -> None:
    days = [["2026-03-09", "2026-03-01T10:00:00Z"], ["2026-03-08T23:30:00-02:00", "2025-12-31"]]
    crowd = Crowd(
        [
            Plan(2, more=tuple({"authored_at": day} for day in listed), meta={"warnings": [LEFT]})
            for listed in days
        ]
    )
    first, second = all_of(crowd, limit=3, sort="newest")
    assert order(first) + order(second) == ["1-0", "0-0", "0-1", "1-1"]
    assert first.left_out == 6
    assert {call.sort for server in crowd.servers for call in server.calls} == {"newest"}


def test_newest_waits_for_the_next_page_of_a_source_that_gives_short_ones() -> None:
    days = [[f"2026-03-{day:02}" for day in range(20, 10, -1)], ["2026-03-15"]]
    crowd = Crowd(
        [
            Plan(len(listed), most=2, more=tuple({"authored_at": day} for day in listed))
            for listed in days
        ]
    )
    shown = [hit for page in all_of(crowd, limit=7, sort="newest") for hit in page.hits]
    times = [hit.authored_at or "" for hit in shown]
    assert times == sorted(times, reverse=True) and len(shown) == 11


def test_counts_of_all_sources_are_added_up() -> None:
    def counting(every: int | None, some: int, accuracy: str = "exact") -> Plan:
        counts = {"some": some, "accuracy": accuracy} | ({} if every is None else {"all": every})
        return Plan(1, meta={"counts": counts})

    both = [counting(2, 5), counting(1, 9)]
    assert ask(Crowd(both), limit=1).counts == Counts(3, 14, True)
    assert ask(Crowd([*both, counting(0, 1, "lower_bound")])).counts == Counts(3, 15, False)
    assert ask(Crowd([*both, counting(None, 1)])).counts == Counts(None, 15, True)


def test_words_are_absent_only_where_every_source_was_asked_and_has_none() -> None:
    one = Plan(0, meta={"absent_words": ["key", "copper"], "nearest_words": {"key": ["keg"]}})
    two = Plan(0, meta={"absent_words": ["key"], "nearest_words": {"key": ["keg", "bey"]}})
    page = ask(Crowd([one, two]))
    assert page.absent_words == ["key"] and page.nearest_words == {"key": ["keg", "bey"]}
    assert ask(Crowd([one, two, Plan(1, ("down",))])).absent_words == []


def test_a_source_that_does_not_take_an_argument_is_told_and_the_others_answer() -> None:
    with answering(AllWords({"n": "the copper key"})) as server:
        origin = Origin(server.url)

        def remote(deadline: Deadline) -> HttpResourceServer:
            return HttpResourceServer(origin, "t", deadline, own=False)

        away = Child("Away", "grant of Away", (MemberStream("notes", "away"),), remote)
        crowd = Crowd([Plan(2)])
        crowd.children.append(away)
        page = ask(crowd, since="2026-01-01")
        (silent,) = page.fan_in.silent if page.fan_in else ()
        assert (silent.name, silent.code) == ("Away", "unsupported_by_source")
        assert len(page.hits) == 2 and page.recall["complete"] is False
        crowd.children = [away]
        with pytest.raises(InvalidRequest) as error:
            ask(crowd, since="2026-01-01")
    assert error.value.code == "unsupported_by_source"


@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.integers(0, 6))
def test_a_widened_source_gives_every_hit_once_whatever_the_limits(
    limits: list[int], others: int
) -> None:
    """Its list depends on the number of hits in the first request; later pages do not change it."""
    notes = {f"k{n}": f"a key, {n}" for n in range(4)} | {f"c{n}": f"copper {n}" for n in range(4)}
    with answering(AllWords(notes | {"both": "copper key"})) as server:
        origin = Origin(server.url)
        held = (MemberStream("notes", "away"),)
        away = Child(
            "Away",
            "grant of Away",
            held,
            lambda deadline: HttpResourceServer(origin, "t", deadline),
        )
        crowd = Crowd([covering(*[0.6] * others)])
        children = [*crowd.children, away]
        shown, cursor = list[str](), None
        for limit in [*limits, *[12] * 3]:
            package = PackageResourceServer(children, planned, Deadline.after(60), SEALER)
            query = SearchQuery("copper key", limit=limit, cursor=cursor, widen=True)
            page = package.search(query).value
            assert len(page.hits) <= limit
            shown += [hit.id for hit in page.hits]
            cursor = page.next_cursor
            if cursor is None:
                break
        alone, rest = set[str](), None
        for _ in range(20):
            query = SearchQuery("copper key", limit=limits[0], cursor=rest, widen=True)
            page = HttpResourceServer(origin, "t", Deadline.after(60)).search(query).value
            alone |= {hit.id for hit in page.hits}
            rest = page.next_cursor
            if rest is None:
                break
    assert len(shown) == len(set(shown)) and "away/notes:both" in shown
    if cursor is None:
        assert {id for id in shown if id.startswith("away/")} == alone
        assert len(shown) == others + len(alone)
