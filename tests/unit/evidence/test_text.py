"""Windows, excerpts, marks and escapes."""

import sys
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha512

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidence.find import Span, spans
from evidence.fold import extends
from evidence.question import parse_query
from evidence.text import (
    balanced,
    beginning,
    escape,
    excerpt,
    is_marked,
    json_line,
    looks_binary,
    mark,
    marked_texts,
    split,
    unescape,
    unmark,
)

TRICKY = ["<mark>", "</mark>", "<", "\\", "\\u{", "\\u{41}", "u{", "}", "\u202e", "\x00", "a", "é"]
tricky = st.lists(st.one_of(st.sampled_from(TRICKY), st.text())).map("".join)
CHARACTERS = [
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "🇩🇪",
    "❤\ufe0f",
    "हि",
    "東",
    "word",
    " ",
    "\n",
]


def test_a_short_text_is_its_own_excerpt() -> None:
    assert excerpt("a lag b", Span(2, 5, ((2, 5),)), size=100) == (0, 7)


def test_an_excerpt_shows_more_after_the_span_than_before_it() -> None:
    text = "word " * 100 + "lag " + "word " * 100
    (span,) = spans(text, parse_query("lag"))
    start, end = excerpt(text, span, size=100)
    assert text[start:end].startswith("word ") and text[start:end].endswith(" word")
    assert 25 <= span.start - start <= 33
    assert 55 <= end - span.end <= 66


def test_room_that_one_side_cannot_use_goes_to_the_other() -> None:
    text = "lag " + "word " * 100
    assert excerpt(text, Span(0, 3, ((0, 3),)), size=53) == (0, 53)
    text = "word " * 100 + "lag"
    assert excerpt(text, Span(500, 503, ((500, 503),)), size=53) == (450, 503)


def test_a_span_that_is_too_long_is_shown_by_its_first_mark() -> None:
    text = "x " * 50 + "lag " + "word " * 100 + "node " + "x " * 50
    (span,) = spans(text, parse_query("lag node"))
    start, end = excerpt(text, span, size=60)
    assert "lag" in text[start:end] and start < span.start and end - start <= 60


def test_a_mark_that_is_too_long_is_cut_to_the_size() -> None:
    text = "so " + "a" * 50 + " it is"
    assert excerpt(text, Span(3, 53, ((3, 53),)), size=20) == (3, 23)


@given(st.lists(st.sampled_from(CHARACTERS), max_size=60), st.integers(0, 59), st.integers(12, 80))
def test_an_excerpt_is_never_too_long_and_never_splits_a_character(
    characters: list[str], before: int, size: int
) -> None:
    left = "".join(characters[:before])
    text = left + " lag " + "".join(characters[before:])
    span = Span(len(left) + 1, len(left) + 4, ((len(left) + 1, len(left) + 4),))
    start, end = excerpt(text, span, size=size)
    assert 0 <= start <= span.start and span.end <= end <= len(text)
    assert end - start <= size
    for edge in (start, end):
        if 0 < edge < len(text):
            assert not extends(text[edge]) and text[edge - 1] != "\u200d"
    assert text[start:end].count("🇩") == text[start:end].count("🇪")


def is_space(text: str, place: int) -> bool:
    return text[place : place + 1].isspace()


def edges_by_hand(text: str, span: Span, size: int) -> tuple[int, int]:
    """The edges `excerpt` promises between words, looked for place by place; else where it cuts."""
    first = max(0, min(span.start - (size - (span.end - span.start)) // 3, len(text) - size))
    last = min(len(text), first + size)
    later = range(first, min(first + 16, span.start) + 1)
    earlier = range(last, max(last - 16, span.end) - 1, -1)
    begins = (p for p in later if p == 0 or (is_space(text, p - 1) and not is_space(text, p)))
    ends = (
        p for p in earlier if p == len(text) or (is_space(text, p) and not is_space(text, p - 1))
    )
    return next(begins, first), next(ends, last)


@given(
    st.text("aaab \n\u2003\x1c\x85é東", min_size=60, max_size=120),
    st.integers(8, 60),
    st.lists(st.integers(0, 60), min_size=2, max_size=2, unique=True),
)
@example("lag " + "a" * 60, 10, [0, 3])
def test_the_edges_of_an_excerpt_are_the_nearest_between_words(
    text: str, size: int, ends: list[int]
) -> None:
    start, end = sorted(ends)
    end = min(end, start + size)
    span = Span(start, end, ((start, end),))
    assert excerpt(text, span, size=size) == edges_by_hand(text, span, size)


def test_marks_are_tagged_and_clipped_to_the_range() -> None:
    text = "one two three"
    marks = ((0, 3), (4, 7), (8, 13))
    assert mark(text, start=0, end=13, marks=marks) == (
        "<mark>one</mark> <mark>two</mark> <mark>three</mark>",
        0,
    )
    assert mark(text, start=2, end=9, marks=marks)[0] == (
        "<mark>e</mark> <mark>two</mark> <mark>t</mark>"
    )
    assert mark(text, start=3, end=4, marks=marks)[0] == " "


def test_stored_tags_and_controls_are_told_from_ours() -> None:
    text = "a <mark>b</mark> \\u{41} \u202e 1 < 2"
    assert mark(text, start=0, end=len(text), marks=[(3, 7)]) == (
        "a \\u{3C}<mark>mark</mark>>b\\u{3C}/mark> \\u{5C}u{41} \\u{202E} 1 < 2",
        4,
    )


@given(tricky, st.lists(st.integers(0, 40), max_size=6), st.integers(0, 40), st.integers(0, 40))
def test_marked_text_can_be_read_back(text: str, edges: list[int], start: int, end: int) -> None:
    start, end = min(start, len(text)), min(end, len(text))
    edges = sorted(min(edge, len(text)) for edge in edges)
    shown, escapes = mark(text, start=start, end=end, marks=list(zip(edges[::2], edges[1::2])))
    assert unmark(shown) == text[start:end]
    assert shown.count("<mark>") == shown.count("</mark>")
    assert shown.count("\\u{") == escapes


@given(tricky)
def test_the_texts_of_marks_are_those_of_their_ranges(marked: str) -> None:
    text, marks = split(marked)
    assert marked_texts(marked) == [text[start:end] for start, end in marks]


@given(tricky)
def test_marking_nothing_escapes_as_usual(text: str) -> None:
    shown, _ = mark(text, start=0, end=len(text), marks=())
    assert unescape(shown) == unescape(escape(text)[0]) == text


@pytest.mark.parametrize(
    ("text", "shown", "escapes"),
    [
        ("plain, tab\t and\nnewline", "plain, tab\t and\nnewline", 0),
        ("a\x00b\r\x7f\x85", "a\\u{0}b\\u{D}\\u{7F}\\u{85}", 4),
        ("\u202eevil\u2066", "\\u{202E}evil\\u{2066}", 2),
        ("\U000e0041\u2028", "\\u{E0041}\\u{2028}", 2),
        ("\\u{202E} \\n \\\\u{", "\\u{5C}u{202E} \\n \\\\u{5C}u{", 2),
        ("👩\u200d💻 می\u200cخواهم", "👩\u200d💻 می\u200cخواهم", 0),
        ("half \ud83d", "half \\u{D83D}", 1),
        ("<mark>", "<mark>", 0),
    ],
)
def test_what_could_mislead_is_made_visible(text: str, shown: str, escapes: int) -> None:
    assert escape(text) == (shown, escapes)


@given(tricky)
def test_escaped_text_can_be_read_back(text: str) -> None:
    shown, escapes = escape(text)
    assert unescape(shown) == text
    assert escapes == shown.count("\\u{")
    assert (escapes == 0) is (shown == text)
    shown.encode()


@given(st.one_of(tricky, st.text(st.characters(max_codepoint=127))), st.data())
def test_a_text_is_shown_alike_whatever_stands_before_it(text: str, data: st.DataObject) -> None:
    """Texts that need no escape take a short way; after one that is escaped they do not."""
    shown, escapes = escape(text)
    assert escape("\x00" + text) == ("\\u{0}" + shown, escapes + 1)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    shown, escapes = mark(text, start=0, end=len(text), marks=[(start, end)])
    after = mark("\x00" + text, start=0, end=len(text) + 1, marks=[(start + 1, end + 1)])
    assert after == ("\\u{0}" + shown, escapes + 1)


def test_of_ascii_only_controls_are_escaped() -> None:
    escaped = [code for code in range(128) if escape(chr(code))[1]]
    assert escaped == [*range(9), *range(11, 32), 127]


def test_every_code_point_can_be_escaped_and_read_back() -> None:
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    shown, escapes = escape(text)
    assert unescape(shown) == text
    assert escapes == 30 + 33 + 12 + 2 + 2_048 + 128


def test_reading_back_leaves_what_is_no_escape() -> None:
    assert unescape("\\u{} \\u{110000} \\u{zz} \\u41") == "\\u{} \\u{110000} \\u{zz} \\u41"


def noise(size: int) -> bytes:
    return b"".join(sha512(bytes([number])).digest() for number in range(size // 64 + 1))[:size]


@pytest.mark.parametrize(
    "value",
    [
        b64encode(noise(192)).decode(),
        b64encode(noise(400)).decode(),
        urlsafe_b64encode(noise(1000)).decode(),
        "data:image/png;base64," + b64encode(noise(300)).decode(),
        {"blob_id": "b1"},
        {"fetch_url": "https://example.org/x", "size": 3},
    ],
)
def test_bytes_in_disguise_are_recognised(value: object) -> None:
    assert looks_binary(value)


@pytest.mark.parametrize(
    "value",
    [
        b64encode(noise(180)).decode(),
        sha512(b"").hexdigest(),
        "a" * 1024,
        "abcdefgh" * 128,
        "ACGTTGCA" * 128,
        "12345678" * 128,
        "Ab1" * 4 + "=" * 300,
        b64encode(noise(300)).decode() + "\n",
        "Plain text with words. " * 64,
        "data:text/plain;base64,aGk=",
        {"text": "blob_id"},
        None,
        12,
    ],
)
def test_text_and_short_values_are_not_binary(value: object) -> None:
    assert not looks_binary(value)


@given(tricky)
def test_json_on_a_line_reads_back_and_holds_nothing_that_misleads(text: str) -> None:
    line = json_line({"title": text})
    assert orjson.loads(line) == {"title": text}
    assert "\n" not in line and escape(line.replace("\\", ""))[1] == 0


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("instead. If it rains", 2, 9),  # a sentence
        ("instead. If it rains", 9, 9),  # it begins there
        ("instead. If it rains", 8, 9),
        ("one two three. Four", 1, 15),  # a sentence before a nearer word
        ("one two three four", 1, 4),  # a word
        ("one two", 4, 4),
        ("x\n\ny", 1, 3),
        ("猫。犬が", 1, 2),
        ("a" * 100, 50, 50),  # nothing begins
        ("a" * 60 + " b", 10, 10),  # too far
        ("ab e\u0301" + "e" * 50, 4, 5),  # never between a letter and its accent
        ("anything", 0, 0),
        ("anything", -3, 0),
        ("word", 4, 4),
    ],
)
def test_a_read_begins_at_a_sentence_or_word_that_begins_soon(
    text: str, place: int, found: int
) -> None:
    assert beginning(text, place) == found


@given(st.text("ab .\n。é", max_size=120), st.integers(0, 120))
def test_a_beginning_moves_forward_and_not_far(text: str, place: int) -> None:
    assert place <= beginning(text, min(place, len(text))) <= place + 41 or place > len(text)


def test_text_that_pretends_to_be_marked_is_told_from_text_that_is() -> None:
    raw = "tab\t <mark> \x1b[31m \u202e \\u{41} é🚀\nend"
    for start, end in ((0, len(raw)), (3, 9), (8, 20)):
        shown, _ = mark(raw, start=start, end=end, marks=((4, 5), (9, 12)))
        assert is_marked(shown), shown
    for pretended in ("\x1b[31m", "<mark>\u202e</mark>", "\x9b", "<mark>open", "shut</mark>"):
        assert not is_marked(pretended), pretended
        assert is_marked(balanced(pretended))
