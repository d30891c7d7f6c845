"""The windows of a text: they cover it, keep their bounds and do not cut where none should."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from evidence.fold import extends
from evidence.windows import CHARS, TOKENS, windows

#: Pieces of many scripts, with marks, joiners, long words and sentences.
PIECES = st.sampled_from(
    [
        *(
            "The end. ",
            "word ",
            "wort\n",
            "句子。",
            "漢字",
            "नमस्ते ",
            "สวัสดี",
            "e\u0301",
            "👩\u200d👩\u200d👧",
        ),
        *("x" * 700, "a\u0301\u0327" * 300, " " * 50, "?! ", "مرحبا بالعالم ", "\ufdfa" * 40),
        "o" + "\u0301" * 700,
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=3_000))
TOKENIZERS = st.sampled_from(
    [lambda text: len(text.split()), len, lambda text: 2 * len(text), lambda text: 18 * len(text)]
)


@given(TEXTS, TOKENIZERS)
def test_windows_cover_a_text_of_any_script_within_their_bounds(
    text: str, tokens: Callable[[str], int]
) -> None:
    spans = windows(text, tokens)
    assert "".join(text[start:end] for start, end in spans) == text
    for start, end in spans:
        assert 0 < end - start <= CHARS
        assert tokens(text[start:end]) <= TOKENS


@given(st.lists(PIECES.filter(lambda piece: len(piece) < 500), max_size=60).map("".join))
def test_no_window_ends_inside_a_character(text: str) -> None:
    for _, end in windows(text, len)[:-1]:
        assert not extends(text[end])


def test_a_window_ends_after_a_sentence_else_at_a_space() -> None:
    sentence = "Ada wrote the first program in 1843. "
    spans = windows(sentence * 40, lambda text: len(text) // 4)
    assert all(end % len(sentence) == 0 for _, end in spans)
    spans = windows("lorem " * 300, lambda text: len(text) // 4)
    assert all(end % len("lorem ") == 0 for _, end in spans)


def test_a_short_text_is_one_window_and_an_empty_one_none() -> None:
    assert windows("One. Two.", len) == [(0, 9)]
    assert windows("", len) == []
