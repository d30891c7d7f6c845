"""The details, summaries, source and translations of a paper equal the files."""

import sqlite3
from pathlib import Path

import orjson
import pytest

from evidence.limits import CONTRACT
from evidence.text import unescape
from tests.helpers.caller import Answer
from tests.helpers.papers import (
    ATTENTION,
    DEEP_LEARNING,
    NO_SOURCE,
    NO_SUMMARY,
    Known,
    Library,
    Release,
    known,
    papers_app,
)
from tests.helpers.reading import fenced, printed_calls, structured_calls
from tests.helpers.snapshots import changed, copied
from tests.spec.scenarios import scenario


def assert_window(answer: Answer, text: str, start: int, size: int) -> None:
    """Fails unless both channels have this window of `text`, its position, and the same calls."""
    expected, left = text[start : start + size], len(text) - start - size
    found = answer.structured
    assert found["text"] == expected
    assert (found["offset_chars"], found["end_chars"]) == (start, start + len(expected))
    assert found["total_chars"] == len(text)
    marker = f"\n[truncated: {left} more chars]" if left > 0 else ""
    assert answer.blocks[0]["text"] == expected + marker
    assert found["truncation_marker"] == (marker.strip() or None)
    beside = answer.blocks[1]["text"]
    assert f"chars={start}..{start + len(expected)} of={len(text)} " in beside
    assert f"version={found['version']}" in beside and found["paper_id"] in beside
    assert {c.key() for c in printed_calls(beside)} == {c.key() for c in structured_calls(found)}
    following = [call.args["offset_chars"] for call in printed_calls(beside) if call.why == "next"]
    assert following == ([start + size] if left > 0 else [])
    assert found["complete"] is (start == 0 and left <= 0)


@scenario("002/details/metadata-lists-templates")
def test_metadata_says_what_a_paper_is_and_what_there_is_to_read(library: Library) -> None:
    for paper in known().values():
        assert_metadata(library, paper)


def assert_metadata(library: Library, paper: Known) -> None:
    answer = library.ok("get_paper_metadata", paper_id=paper.paper_id)
    found = answer.structured
    assert found["paper_id"] == paper.paper_id and found["title"] == paper.title
    assert (found["year"], found["month"], found["venue"]) == (
        paper.year,
        paper.month,
        paper.venue,
    )
    assert found["preferred_summary_template"] == paper.preferred
    assert found["available_summary_templates"] == paper.available
    assert found["languages"] == sorted(paper.translations)
    assert found["has_source"] is (paper.source_hash is not None)
    (has_pdf,) = library.release.rows(
        "SELECT coalesce(pdf_content_hash, '') <> '' FROM paper WHERE paper_id = ?", paper.paper_id
    )
    assert (found["has_pdf"],) == has_pdf
    assert found["doi"] == paper.doi
    if paper.source_hash:
        source = library.release.source(paper.paper_id)
        assert len(source) == paper.source_chars
        assert found["source_bytes"] == len(source.encode())
    said = answer.lines
    assert f"preferred_summary_template={paper.preferred}" in answer.text
    assert f"available_summary_templates=[{', '.join(paper.available)}]" in answer.text
    assert f"translations=[{', '.join(sorted(paper.translations))}]" in answer.text
    assert f"title: {orjson.dumps(paper.title).decode()}" in said
    assert all(orjson.dumps(author).decode() in answer.text for author in found["authors"])
    calls = {call.key() for call in printed_calls(answer.text)}
    assert calls == {call.key() for call in structured_calls(found)}


def test_authors_stand_as_the_paper_has_them(library: Library) -> None:
    for paper in known().values():
        summary = orjson.loads(library.release.summary(paper.paper_id))
        found = library.ok("get_paper_metadata", paper_id=paper.paper_id).structured
        assert [name.lower() for name in found["authors"]] == [
            name.lower() for name in summary["paper_authors"] if name != "unknown"
        ]


def test_the_arxiv_id_is_given_where_an_alias_has_it(library: Library) -> None:
    rows = library.release.rows(
        "SELECT paper_id, substr(paper_key, 7) FROM paper_key_alias WHERE paper_key LIKE 'arxiv:%'"
    )
    assert len(rows) >= 20
    for paper_id, arxiv_id in rows:
        found = library.ok("get_paper_metadata", paper_id=paper_id).structured
        assert found["arxiv_id"] == arxiv_id


@scenario("002/details/summary-is-content")
def test_a_summary_is_the_whole_json_of_its_file(library: Library) -> None:
    for paper in known().values():
        assert_summaries(library, paper)


def assert_summaries(library: Library, paper: Known) -> None:
    preferred = library.ok("get_paper_summary", paper_id=paper.paper_id)
    text = library.release.summary(paper.paper_id)
    assert_window(preferred, text, 0, CONTRACT.summary_chars)
    assert orjson.loads(preferred.blocks[0]["text"])["paper_id"] == paper.paper_id
    for template in paper.available:
        answer = library.ok("get_paper_summary", paper_id=paper.paper_id, template=template)
        text = library.release.summary(paper.paper_id, template)
        assert_window(answer, text, 0, CONTRACT.summary_chars)
        assert orjson.loads(answer.blocks[0]["text"])["template_tag"] == template
        assert answer.structured["template"] == template


def test_a_deep_read_comes_as_content_and_nothing_like_an_address(library: Library) -> None:
    answer = library.ok("get_paper_summary", paper_id=ATTENTION, template="deep_read")
    assert orjson.loads(answer.blocks[0]["text"])["template_tag"] == "deep_read"
    said = answer.blocks[1]["text"] + str({**answer.structured, "text": ""})
    assert not any(part in said for part in ("http", "static", "/summary", ".json"))


def test_a_paper_without_templates_still_has_its_preferred_summary(library: Library) -> None:
    answer = library.ok("get_paper_summary", paper_id=NO_SUMMARY)
    assert answer.blocks[0]["text"] == library.release.summary(NO_SUMMARY)


def test_a_source_is_the_markdown_of_its_file(library: Library) -> None:
    for paper in known().values():
        if paper.source_hash is None:
            answer = library.fails("get_paper_source", paper_id=paper.paper_id)
            assert answer.error["code"] == "source_not_available"
            continue
        answer = library.ok("get_paper_source", paper_id=paper.paper_id)
        text = library.release.source(paper.paper_id)
        assert_window(answer, text, 0, CONTRACT.source_chars)
        assert answer.structured["media_type"] == "text/markdown"


def test_every_translation_is_the_markdown_of_its_file(library: Library) -> None:
    for paper in known().values():
        for lang in paper.translations:
            answer = library.ok("get_paper_source", paper_id=paper.paper_id, lang=lang.upper())
            text = library.release.translation(paper.paper_id, lang)
            assert_window(answer, text, 0, CONTRACT.source_chars)
            assert answer.structured["lang"] == lang


@scenario("002/details/missing-source-is-said")
def test_a_paper_without_source_says_so_and_what_to_read_instead(library: Library) -> None:
    answer = library.fails("get_paper_source", paper_id=NO_SOURCE)
    assert answer.error["code"] == "source_not_available"
    assert answer.error["paper_id"] == NO_SOURCE
    assert NO_SOURCE in answer.text and "source_not_available" in answer.lines[0]
    (instead,) = printed_calls(answer.text)
    library.ok(instead.tool, **instead.args)


@pytest.mark.parametrize("start", [0, 1, 170_000, 340_735, 340_736])
@scenario("002/sizes/tool-cuts-with-a-marker")
def test_a_window_is_these_characters_and_a_marker_where_more_follow(
    library: Library, start: int
) -> None:
    text = library.release.source(DEEP_LEARNING)
    for size in (1, 100, 9_999, 10_000, 50_000):
        where = {"offset_chars": start, "max_chars": size}
        answer = library.ok("get_paper_source", paper_id=DEEP_LEARNING, **where)
        assert_window(answer, text, start, size)


@pytest.mark.parametrize(("more", "marked"), [(0, False), (-1, True), (1, False)])
@scenario("002/sizes/tool-cuts-with-a-marker")
def test_a_text_of_exactly_the_size_is_not_marked(
    library: Library, more: int, marked: bool
) -> None:
    for tool, text in (
        ("get_paper_source", library.release.source(ATTENTION)),
        ("get_paper_summary", library.release.summary(ATTENTION)),
    ):
        answer = library.ok(tool, paper_id=ATTENTION, max_chars=len(text) + more)
        assert_window(answer, text, 0, len(text) + more)
        assert ("[truncated: 1 more chars]" in answer.text) is marked


@pytest.mark.parametrize(
    ("given", "paper_id"),
    [
        ("10.1038/nature14539", DEEP_LEARNING),
        ("https://doi.org/10.1038/NATURE14539", DEEP_LEARNING),
        ("doi:10.1038/nature14539", DEEP_LEARNING),
        ("Deep learning", DEEP_LEARNING),
        ("1706.03762", ATTENTION),
        ("arXiv:1706.03762v5", ATTENTION),
        ("https://arxiv.org/abs/1706.03762", ATTENTION),
        ("Attention Is All You Need", ATTENTION),
        ("attention is all you need", ATTENTION),
    ],
)
def test_a_paper_is_known_by_its_other_names_and_answers_with_its_id(
    library: Library, given: str, paper_id: str
) -> None:
    for tool in ("get_paper_metadata", "get_paper_summary", "get_paper_source"):
        assert library.ok(tool, paper_id=given).structured["paper_id"] == paper_id


def test_every_title_names_its_paper(library: Library) -> None:
    for paper in known().values():
        answer = library.call("get_paper_metadata", paper_id=paper.title)
        same = library.release.rows("SELECT paper_id FROM paper WHERE title = ?", paper.title)
        if len(same) == 1:
            assert answer.structured["paper_id"] == paper.paper_id
        else:
            assert answer.error["code"] == "ambiguous_paper"


def test_an_outline_lists_headings_at_their_offsets(library: Library) -> None:
    for paper_id in (DEEP_LEARNING, ATTENTION):
        text = library.release.source(paper_id)
        answer = library.ok("get_paper_source", paper_id=paper_id, outline=True)
        headings = answer.structured["data"]
        assert headings
        for heading, line in zip(headings, answer.lines[2:], strict=False):
            place = heading["offset_chars"]
            assert text[place:].startswith("#" * heading["level"] + " ")
            assert heading["title"][:20] in text[place:].partition("\n")[0]
            assert line.startswith("#" * heading["level"] + " ")
            (call,) = structured_calls(heading)
            assert call.args["offset_chars"] == place
        assert len(answer.text.encode()) <= 24_576
        assert len(orjson.dumps(answer.structured)) <= 40_960


def test_a_find_shows_places_of_the_text_with_the_call_that_opens_them(library: Library) -> None:
    text = library.release.source(DEEP_LEARNING)
    answer = library.ok("get_paper_source", paper_id=DEEP_LEARNING, query="backpropagation")
    matches = answer.structured["data"]
    assert matches and len(matches) <= 10
    for match in matches:
        start, end = match["match_start_chars"], match["match_end_chars"]
        assert text[start:end].lower() == "backpropagation"
        assert f"{match['start_chars']}..{match['end_chars']} match={start}..{end}" in answer.text
        assert match["excerpt_markdown"] in answer.text
        (read,) = structured_calls(match)
        opened = library.ok(read.tool, **read.args).structured
        assert opened["offset_chars"] <= start and end <= opened["end_chars"]
    calls = {call.key() for call in printed_calls(answer.text)}
    assert calls == {call.key() for call in structured_calls(answer.structured)}


@pytest.mark.parametrize("query", ["backpropagation", "deep learning", "the"])
def test_finding_on_walks_over_every_place_once(library: Library, query: str) -> None:
    text = library.release.source(DEEP_LEARNING).lower()
    places: list[int] = []
    args = {"paper_id": DEEP_LEARNING, "query": query}
    for _ in range(40):
        answer = library.ok("get_paper_source", **args)
        places += [match["match_start_chars"] for match in answer.structured["data"]]
        following = [call for call in printed_calls(answer.text) if call.why == "next_match"]
        if not following:
            break
        args = following[0].args
    assert places and places == sorted(set(places))
    assert all(text[place:].startswith(query) for place in places if query != "deep learning")


@pytest.mark.parametrize("query", ["注意力机制", "深度学习", "实验验证"])
def test_words_are_found_in_a_translation(library: Library, query: str) -> None:
    text = library.release.translation(ATTENTION, "zh")
    answer = library.ok("get_paper_source", paper_id=ATTENTION, lang="zh", query=query)
    assert query in text and answer.structured["data"]
    for match in answer.structured["data"]:
        assert text[match["match_start_chars"] : match["match_end_chars"]] == query


def test_what_hides_or_forges_in_a_preview_or_bibtex_is_written_out(tmp_path: Path) -> None:
    text = "a\u202eb \x1b[31m c\\u{202E}"

    def poison(db: sqlite3.Connection) -> None:
        db.execute("UPDATE paper SET summary_preview = ?", (text,))
        db.execute(
            "INSERT OR REPLACE INTO paper_bibtex VALUES (?, ?, 'k', 'misc')", (ATTENTION, text)
        )

    release = Release(changed(copied("papers", tmp_path), poison).parent)
    answer = Library(papers_app(release.snapshot), release).ok(
        "get_paper_metadata", paper_id=ATTENTION
    )
    assert answer.lines[0].endswith(" escaped=6")
    assert [unescape(shown) for shown in fenced(answer.text)] == [text, text]
    assert not any("\u202e" in block or "\x1b" in block for block in fenced(answer.text))
    assert answer.structured["summary_preview"] == answer.structured["bibtex"] == text
