"""Search over real snapshots: what is found, in what order, and what a hit shows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from evidence.errors import Gone, InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from evidence.papers import PaperHit, PaperPage
from service.papers.search import Paging, by_keyword, search
from service.papers.snapshot import Snapshot
from service.ports.papers import KeywordQuery, PaperQuery
from tests.helpers.scale import times
from tests.unit.service.papers.making import RELEASES, Made, index, made, opened
from tests.unit.service.papers.test_paper_query import SYNTAX

ATTENTION = "acbe5881db11f906e180120c8ce2f93a"
DEEP_LEARNING = "b3b71e88c072bbc4241585aa04a513cc"
TWICE_BUILT = "788b9062eababc7646d451ddad944211"


@pytest.fixture(scope="module", params=RELEASES)
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    found = opened(request.param)
    yield found
    found.close()


def hits(snapshot: Snapshot, query: str, limit: int = 100) -> list[PaperHit]:
    return search(snapshot, PaperQuery(query, limit=limit)).hits


def ids(snapshot: Snapshot, query: str) -> list[str]:
    return [hit.paper_id for hit in hits(snapshot, query)]


def titles(snapshot: Snapshot, query: str) -> list[str]:
    return [hit.title for hit in hits(snapshot, query)]


# What is found


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("schölkopf", "Breaking the"),
        ("SCHOLKOPF", "Breaking the"),
        ("lukasz kaiser", "Attention Is All You Need"),
        ("Łukasz", "Attention Is All You Need"),
        ("luk*", "Attention Is All You Need"),
        ("veličković", "Graph Attention Networks"),
        ("10.1038/nature14539", "Deep learning"),
        ("https://doi.org/10.1038/NATURE14539", "Deep learning"),
        ("arXiv:1706.03762v7", "Attention Is All You Need"),
        ("1706.03762", "Attention Is All You Need"),
        (ATTENTION, "Attention Is All You Need"),
        ("强", "深度强化学习综述:兼论计算机围棋的发展"),
        ("强化学习", "深度强化学习综述:兼论计算机围棋的发展"),
        ("한국어", "한국어 형태소"),
        ('"residual learning"', "Deep Residual Learning"),
        ("multi-head", "Attention Is All You Need"),
        ("title:residual", "Deep Residual Learning"),
        ('author:"yann lecun"', "Deep learning"),
        ('author:"LeCun, Yann"', "Deep learning"),
        ("author:lec*", "Deep learning"),
        ("author:schölkopf", "Breaking the"),
        ("venue:naacl-hlt", "BERT"),
        ('institution:"tu munchen"', ""),
        ("year:1948", "A Mathematical Theory"),
        ("year:..1950", "A Mathematical Theory"),
        ("template:eight_questions", ""),
        ("language:JA", "Attention Is All You Need"),
        ("month:6 year:2017 author:vaswani", "Attention Is All You Need"),
    ],
)
def test_the_paper_is_the_first(snapshot: Snapshot, query: str, title: str) -> None:
    assert titles(snapshot, query)[0].startswith(title)


@pytest.mark.parametrize("query", ["AND", "lidar AND", "OR lidar", "a AND OR b", "NEAR(lidar"])
def test_operators_are_searched_for_as_words(snapshot: Snapshot, query: str) -> None:
    search(snapshot, PaperQuery(query, limit=10))


def test_not_is_a_word_and_minus_excludes(snapshot: Snapshot) -> None:
    lidar = set(ids(snapshot, "lidar"))
    slam = set(ids(snapshot, "slam"))
    assert lidar & slam and lidar - slam
    assert set(ids(snapshot, "lidar -slam")) == lidar - slam
    assert set(ids(snapshot, "lidar NOT slam")) == lidar | slam


def test_excluded_fields_and_titles_are_left_out(snapshot: Snapshot) -> None:
    papers = set(ids(snapshot, "author:hinton"))
    assert DEEP_LEARNING in papers
    assert set(ids(snapshot, "author:hinton -author:lecun")) == papers - {DEEP_LEARNING}
    assert set(ids(snapshot, 'author:hinton -title:"deep learning"')) == papers - {DEEP_LEARNING}


def test_a_phrase_finds_less_than_its_words(snapshot: Snapshot) -> None:
    assert set(ids(snapshot, '"learning deep"')) < set(ids(snapshot, "learning deep"))


def test_a_prefix_finds_more_than_its_word(snapshot: Snapshot) -> None:
    assert set(ids(snapshot, '"transformer"')) < set(ids(snapshot, "transform*"))


def test_year_ranges_are_inclusive_and_leave_out_the_unknown(snapshot: Snapshot) -> None:
    years = {hit.year for hit in hits(snapshot, "year:2014..2016")}
    assert years == {"2014", "2015", "2016"}
    assert {hit.year for hit in hits(snapshot, "year:2016..2014")} == years
    assert "unknown" not in {hit.year for hit in hits(snapshot, "year:1900..")}


def test_a_field_matches_whole_words(snapshot: Snapshot) -> None:
    assert ids(snapshot, "author:lec") == []


def test_wildcards_are_ordinary_characters(snapshot: Snapshot) -> None:
    for query in ('author:"%"', 'tag:"_%"', 'venue:"natur_"'):
        assert ids(snapshot, query) == []


def test_a_paper_built_twice_is_one_hit(snapshot: Snapshot) -> None:
    found = ids(snapshot, "adversarial")
    assert found.count(TWICE_BUILT) == 1
    assert len(found) == len(set(found))


def test_rows_without_their_paper_are_left_out(tmp_path: Path) -> None:
    snapshot = made(tmp_path, change=lambda db: index(db, Made("gone", title="Xylophone")))
    assert hits(snapshot, "xylophone") == []
    snapshot.close()


# Order


def test_a_word_counts_most_in_the_title_and_least_in_a_translation(tmp_path: Path) -> None:
    word, filler = "zymurgy", "other words that all of the texts share"
    texts = {
        "in-title": Made("in-title", title=f"{word} {filler}", summary=filler),
        "in-summary": Made("in-summary", title=filler, summary=f"{word} {filler}"),
        "in-metadata": Made("in-metadata", title=filler, summary=filler, authors=[word]),
        "in-translated": Made("in-translated", title=filler, translated=f"{word} {filler}"),
    }
    snapshot = made(tmp_path, *texts.values())
    assert ids(snapshot, word)[0] == "in-title"
    assert ids(snapshot, word)[-1] == "in-translated"
    assert ids(snapshot, word).index("in-summary") == 1
    snapshot.close()


def test_ties_go_to_the_newer_paper_then_by_id(tmp_path: Path) -> None:
    years = {"b": "2019", "a": "2019", "c": "2021", "d": "unknown"}
    snapshot = made(
        tmp_path,
        *(
            Made(name, title="Zymurgy", year="unknown" if year == "unknown" else year)
            for name, year in years.items()
        ),
        change=lambda db: db.execute("UPDATE paper_fts SET metadata = '' WHERE title = 'Zymurgy'"),
    )
    assert ids(snapshot, "zymurgy") == ["c", "a", "b", "d"]
    snapshot.close()


def test_fields_alone_list_by_year_and_title_with_unknown_years_last(snapshot: Snapshot) -> None:
    found = hits(snapshot, "-year:1800 -title:zzz template:simple", limit=100)
    keys = [(-int(hit.year) if hit.year.isdigit() else 1, hit.title) for hit in found]
    assert keys == sorted(keys) and found[-1].year == "unknown"


@pytest.mark.parametrize("query", ["the", "learning -deep", "year:2014..2022", "transformer"])
def test_pages_have_every_hit_once_in_the_order_of_one_page(snapshot: Snapshot, query: str) -> None:
    whole = ids(snapshot, query)
    page = search(snapshot, PaperQuery(query, limit=3))
    read = [hit.paper_id for hit in page.hits]
    while page.next_cursor:
        assert page.has_more
        page = search(snapshot, PaperQuery(query, limit=3, cursor=page.next_cursor))
        read += [hit.paper_id for hit in page.hits]
    assert read == whole and not page.has_more and len(read) > 3


def test_pages_of_any_size_run_through_the_same_order_past_a_ranked_block(tmp_path: Path) -> None:
    brewed = ("zymurgy", "zymurgies and hops", "hops", "zymurgy zymurgy of hops and malt")
    count = 2 * BUDGETS.paper_block_items + 9
    papers = (
        Made(f"p{n:03}", title=f"Notes {n}", summary=brewed[n % 4], year=str(1900 + n % 7))
        for n in range(count)
    )
    snapshot = made(tmp_path, *papers)

    def walk(size: int) -> list[str]:
        found = list[str]()
        for offset in range(0, count, size):
            wanted = PaperQuery("zymurgy hops", limit=size, offset=offset)
            found += [hit.paper_id for hit in search(snapshot, wanted).hits]
        return found

    whole = walk(100)
    assert len(whole) == len(set(whole)) == count
    assert walk(33) == whole
    snapshot.close()


def test_a_named_paper_is_not_repeated_among_the_matches(snapshot: Snapshot) -> None:
    found = ids(snapshot, "10.1038/nature14539")
    assert found[0] == DEEP_LEARNING and found.count(DEEP_LEARNING) == 1


# Cursors


def test_a_cursor_of_another_generation_is_gone_with_the_search_from_its_start(
    snapshot: Snapshot,
) -> None:
    with pytest.raises(Gone) as gone:
        search(snapshot, PaperQuery("the", limit=3, cursor="0123456789.3"))
    assert gone.value.code == "cursor_expired"
    [again] = gone.value.calls
    assert again.args == {"query": "the", "limit": 3}


@pytest.mark.parametrize(
    "cursor", ["", "3", "x.3", "0123456789.", "0123456789.-3", "0123456789.３"]
)
def test_a_damaged_cursor_is_refused(snapshot: Snapshot, cursor: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        by_keyword(snapshot, KeywordQuery("a", limit=3, cursor=cursor))
    assert refused.value.code == "invalid_cursor"


def test_paging_ends_where_it_is_promised_to(snapshot: Snapshot) -> None:
    deepest = CONTRACT.paper_offset_items
    assert search(snapshot, PaperQuery("the", limit=1, offset=deepest - 1)).hits == []
    with pytest.raises(InvalidRequest, match="Paging is limited"):
        search(snapshot, PaperQuery("the", limit=1, offset=deepest))


def test_the_last_page_has_more_but_no_cursor(snapshot: Snapshot) -> None:
    wanted = PaperQuery("the", limit=100, offset=CONTRACT.paper_offset_items - 100)
    page = Paging.of(snapshot, "search_papers", wanted, query="the").page(
        [], continues=True, did_you_mean=[]
    )
    assert page.has_more and page.next_cursor is None


def test_pages_by_cursor_reach_the_deepest_paper_whatever_their_size(snapshot: Snapshot) -> None:
    deepest = CONTRACT.paper_offset_items
    wanted = PaperQuery("the", limit=7, offset=deepest - 8)
    page = Paging.of(snapshot, "search_papers", wanted, query="the").page(
        [], continues=True, did_you_mean=[]
    )
    assert page.next_cursor is not None
    wanted = PaperQuery("the", limit=7, cursor=page.next_cursor)
    last = Paging.of(snapshot, "search_papers", wanted, query="the")
    assert (last.offset, last.limit) == (deepest - 1, 1)


def test_a_year_of_thousands_of_digits_is_no_year(tmp_path: Path) -> None:
    snapshot = made(tmp_path, Made("odd", "Quokka", year="9" * 5_000), Made("new", "Quokka"))
    assert ids(snapshot, "quokka") == ["new", "odd"]
    assert "odd" not in ids(snapshot, "quokka year:1..")
    snapshot.close()


# When nothing is found


@pytest.mark.parametrize(
    ("query", "near"),
    [
        ("atenton", "attention"),
        ("title:recogniton", "title:recognition"),
        ("rsidaul lernung", "residual learning"),
    ],
)
def test_words_too_far_from_any_to_be_corrected_are_suggested(
    snapshot: Snapshot, query: str, near: str
) -> None:
    page = search(snapshot, PaperQuery(query, limit=10))
    assert page.hits == [] and len(page.did_you_mean) <= BUDGETS.paper_suggestions
    assert near in page.did_you_mean
    for text in page.did_you_mean:
        assert hits(snapshot, text)


def test_what_would_find_nothing_either_is_not_suggested(snapshot: Snapshot) -> None:
    assert ids(snapshot, "kaiming") and ids(snapshot, "title:attention")
    page = search(snapshot, PaperQuery("title:attenton title:kaiming", limit=10))
    assert page.hits == [] and page.did_you_mean == []


def test_what_was_found_needs_no_suggestion(snapshot: Snapshot) -> None:
    assert search(snapshot, PaperQuery("transformer", limit=10)).did_you_mean == []
    assert search(snapshot, PaperQuery("transformer", limit=10, offset=9_000)).did_you_mean == []


# Whatever is typed


def run(snapshot: Snapshot, text: str) -> PaperPage | None:
    try:
        return search(snapshot, PaperQuery(text, limit=3))
    except InvalidRequest as refused:
        assert refused.code == "invalid_query"
        return None


@settings(
    max_examples=times(150, 30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.one_of(st.text(max_size=60), SYNTAX))
def test_any_text_gets_a_page_or_a_reason(snapshot: Snapshot, text: str) -> None:
    if page := run(snapshot, text):
        assert page.args == {"query": text, "limit": 3}


@pytest.mark.parametrize(
    "text", ["a " * 250, "深" * 500, "㍿" * 500, '"' * 500, "が" * 500, "-x " * 166]
)
def test_the_longest_queries_are_answered(snapshot: Snapshot, text: str) -> None:
    run(snapshot, text)
