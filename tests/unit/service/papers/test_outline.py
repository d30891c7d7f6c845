"""Headings are where Markdown has them, with offsets that lead there."""

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.papers.text_places import BLOCK_CHARS, HEADINGS_MAX, LINE_CHARS, heading_above, outline
from tests.helpers.asset_files import text_file
from tests.helpers.scale import times
from tests.unit.service.papers.test_texts import real_source

MANY = 1_000_000


def titles(folder: Path, text: str) -> list[tuple[int, str]]:
    """(level, title) of all headings; every offset leads to the line it is about."""
    with text_file(folder, text) as file:
        headings, following = outline(file, 0, MANY)
        assert following is None
        for heading in headings:
            assert heading.title in text[heading.start :].splitlines()[0]
            assert heading.start == 0 or text[heading.start - 1] in "\r\n"
        return [(heading.level, heading.title) for heading in headings]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# One\n## Two\n###### Six", [(1, "One"), (2, "Two"), (6, "Six")]),
        ("####### Seven\n#tag\n    # code\n\\# no", []),
        (
            "   # Indented #\n# C#\n## Closed ##  \n# a # b",
            [*[(1, "Indented"), (1, "C#")], *[(2, "Closed"), (1, "a # b")]],
        ),
        ("#\n##   \n# #\ntext", []),
        ("# One\nTwo\n---\n", [(1, "One")]),
        (
            "```\n# no\n```\n# yes\n~~~~ x\n# no\n~~~\n# no\n~~~~\n# yes 2",
            [(1, "yes"), (1, "yes 2")],
        ),
        ("``` a`b\n# yes\n", [(1, "yes")]),
        ("```\n# never closed\n", []),
        ("# A\r\n\r\n#\r\n## B ##\r\n", [(1, "A"), (2, "B")]),
        ("# 中文 标题\n## **bold** `x`", [(1, "中文 标题"), (2, "**bold** `x`")]),
        ("", []),
    ],
)
def test_headings_are_those_of_markdown(
    tmp_path: Path, text: str, found: list[tuple[int, str]]
) -> None:
    assert titles(tmp_path, text) == found


def test_a_section_runs_to_the_next_heading_of_its_level_or_above(tmp_path: Path) -> None:
    text = "intro\n# A\na\n## A1\nb\n### A1x\n## A2\nc\n# B\nd"
    with text_file(tmp_path, text) as file:
        headings, _ = outline(file, 0, MANY)
        sections = {each.title: text[each.start : each.start + each.size] for each in headings}
    assert sections == {
        "A": "# A\na\n## A1\nb\n### A1x\n## A2\nc\n",
        "A1": "## A1\nb\n### A1x\n",
        "A1x": "### A1x\n",
        "A2": "## A2\nc\n",
        "B": "# B\nd",
    }


def test_headings_come_in_pages(tmp_path: Path) -> None:
    text = "".join(f"# Number {number}\ntext\n" for number in range(25))
    with text_file(tmp_path, text) as file:
        found: list[str] = []
        offset: int | None = 0
        while offset is not None:
            headings, offset = outline(file, offset, 10)
            found += [heading.title for heading in headings]
        assert found == [f"Number {number}" for number in range(25)]
        assert outline(file, file.total, 10) == ([], None)
        with pytest.raises(InvalidRequest):
            outline(file, file.total + 1, 10)


def test_a_place_stands_under_the_heading_above_it(tmp_path: Path) -> None:
    with text_file(tmp_path, "text\n# A\ntext\n## B\ntext") as file:
        above = [heading_above(file, place) for place in (0, 4, 5, 12, 14, 20)]
    assert above == [None, None, "A", "A", "B", "B"]


def test_very_long_titles_are_cut(tmp_path: Path) -> None:
    with text_file(tmp_path, f"# {'long ' * 2_000}\ntext") as file:
        (heading,), _ = outline(file, 0, 10)
        assert len(heading.title) == BUDGETS.title_chars and heading.title.endswith("…")


def test_very_many_headings_are_not_all_listed(tmp_path: Path) -> None:
    with text_file(tmp_path, "# x\n" * (HEADINGS_MAX + 5)) as file:
        headings, following = outline(file, 0, MANY)
        assert len(headings) == HEADINGS_MAX and following is None


LINES = st.sampled_from(
    [
        "# A",
        "## B ##",
        "text",
        "",
        "```",
        "~~~",
        "- item",
        " ",
        "    code",
        "中",
        "\t",
    ]
)


@settings(max_examples=times(60, 30))
@given(
    st.lists(LINES, max_size=12),
    st.integers(-40, 40),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["\n", "filler filler filler\n", "x"]),
)
def test_it_does_not_matter_where_blocks_end(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], shift: int, end: str, filler: str
) -> None:
    """The same lines give the same headings at the start of a text and across a block's edge."""
    folder = tmp_path_factory.mktemp("text")
    text = end.join(lines)
    before = (filler * (BLOCK_CHARS // len(filler) + 1))[: BLOCK_CHARS + shift] + "\n\n"
    with text_file(folder, text) as near, text_file(folder, before + text) as far:
        wanted, _ = outline(near, 0, MANY)
        found, _ = outline(far, 0, MANY)
    moved = [(each.title, each.level, each.start - len(before), each.size) for each in found]
    assert moved == [(each.title, each.level, each.start, each.size) for each in wanted]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_edge_may_lie_anywhere_in_a_heading(tmp_path: Path, end: str) -> None:
    lines = ["# One", "", "```", "# no", "```", "## Two ##"]
    text = end.join(lines)
    for shift in range(len(text) + 4):
        before = ("x" * (BLOCK_CHARS - shift - 4)) + end * 2
        found = titles(tmp_path, before + text)
        assert found == [(1, "One"), (2, "Two")], shift


def test_a_line_longer_than_memory_should_hold_is_passed_over(tmp_path: Path) -> None:
    text = "# A\n" + "x" * (3 * BLOCK_CHARS) + " # no\n# B\n" + "y" * LINE_CHARS
    assert titles(tmp_path, text) == [(1, "A"), (1, "B")]


@pytest.mark.parametrize("line", ["\n", "=\n", "# \n", "#" * 60_000, "# " + " " * 60_000, "```\n"])
def test_text_made_to_be_slow_is_not(tmp_path: Path, line: str) -> None:
    text = line * (400_000 // len(line))
    with text_file(tmp_path, text) as file:
        assert outline(file, 0, 10) == ([], None)


def test_the_headings_of_the_longest_real_source_lead_to_their_lines() -> None:
    file, text = real_source()
    with file:
        headings, _ = outline(file, 0, MANY)
    assert len(headings) > 100
    for heading in headings:
        line = text[heading.start :].partition("\n")[0]
        assert line == f"{'#' * heading.level} {heading.title}"
    top = [heading for heading in headings if heading.level == 1]
    assert sum(heading.size for heading in top) == len(text) - top[0].start
