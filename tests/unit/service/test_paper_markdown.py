"""The blocks of a Markdown text, as the pages of papers show them."""

from service.pages.reading.markdown import Run, blocks, open_fence


def text(piece: Run) -> str:
    return "".join(part for _, part in piece.parts)


def shown(markdown: str) -> list[tuple[str, list[str], int]]:
    """The blocks, with an opening tag before a piece that has an element."""
    return [
        (
            kind,
            [
                "".join(f"<{one.element}>{text(one)}" if one.element else text(one) for one in line)
                for line in lines
            ],
            n,
        )
        for kind, lines, n in blocks(markdown)
    ]


def test_headings_lists_and_paragraphs_are_blocks() -> None:
    markdown = "# One\nfirst\nsecond\n\n- a\n- b\n  more\n\n- c\n\n3. third\n4. fourth\n###### Deep"
    assert shown(markdown) == [
        ("h2", ["One"], 1),
        ("p", ["first\nsecond"], 1),
        ("ul", ["a", "b\n  more", "c"], 1),
        ("ol", ["third", "fourth"], 3),
        ("h6", ["Deep"], 1),
    ]


def test_code_formulae_and_tables_keep_their_lines() -> None:
    markdown = (
        "```py\n# no *heading*\n\n- no item\n```\n$$\nx\n$$\ntext\n| a |\n|---|\nafter\n~~~\nopen"
    )
    assert shown(markdown) == [
        ("pre", ["# no *heading*\n\n- no item"], 1),
        ("pre", ["x"], 1),
        ("p", ["text"], 1),
        ("table", ["a"], 1),
        ("p", ["after"], 1),
        ("pre", ["open"], 1),
    ]


def test_emphasis_and_code_in_a_line_are_pieces() -> None:
    markdown = "**strong** and *weak* and `a*b*c`, but 2 * 3 * 4, $a_i*b*c$ and <b>\x1b"
    assert shown(markdown) == [
        (
            "p",
            [
                "<strong>strong and <em>weak and <code>a*b*c, but 2 * 3 * 4, $a_i*b*c$ and <b>"
                "\\u{1B}"
            ],
            1,
        )
    ]


def test_the_fence_that_is_open_at_the_end_of_a_text_is_known() -> None:
    assert open_fence("text\n```py\ncode") == "```"
    assert open_fence("```\n~~~\n```py\n") == "```"
    assert open_fence("````\n```\n````\n") == "" and open_fence("$$\nx\n$$\n") == ""
    kinds = [kind for kind, *_ in blocks("code\n```\ntext\n```\nmore", "```")]
    assert kinds == ["pre", "p", "pre"]
