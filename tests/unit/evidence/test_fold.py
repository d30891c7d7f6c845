"""The fold, alone and against the full-text index that reads it."""

import sqlite3
import sys
import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidence.find import spans
from evidence.fold import FOLD_VERSION, Folded, extends, fold, fold_literal
from evidence.question import Query, parse_query

TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"

SCRIPTS = (
    "Zürich Łódź Ærø Straße İstanbul Việt Nam ﬁle ½ № ™",
    "ΟΔΟΣ οδός Съешь ещё этих булок",
    "東京都に行く、ガイド ｶﾞｲﾄﾞ ＡＢＣ会社 ㍿",
    "한국어 검색을 지원 使用Docker部署服务 ㄅㄆㄇ",
    "ภาษาไทยง่าย คุณ ພາສາລາວ ភាសាខ្មែរ မြန်မာဘာသာ",
    "كِتَابٌ جديد שָׁלוֹם हिन्दी में खोज தமிழ் తెలుగు",
    "🚀 👩‍💻 👍🏽 🇩🇪 ❤️ 1️⃣ ☃ ™ \U0001faf8",
    "C++ foo_bar don't 38.101 a\x00b\u2028c\ud800d \ue000 \U000f0041",
)
# All that is assigned, without the bulk of Han and Hangul and with the borders of later planes.
CODE_POINTS = [
    chr(code)
    for code in (
        *(*range(0x3500), *range(0x9F00, 0xAC80), *range(0xD780, 0x20000)),
        *(0x20000, 0x3FFFF, 0xE0001, 0xE0100, 0xF0000, 0xFFFFD, 0x100000, sys.maxunicode),
    )
    if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co") or code % 64 == 0
]
texts = st.one_of(
    st.text(),
    st.text(st.sampled_from("".join(SCRIPTS))),
    st.text("plain text, some of it, é’ß\u0301"),  # mostly ASCII
)


def indexed(texts: Iterable[str]) -> dict[int, list[str]]:
    """The words that the full-text index finds in each text, by its number, in order."""
    database = sqlite3.connect(":memory:")
    database.execute(f'CREATE VIRTUAL TABLE f USING fts5(body, tokenize="{TOKENIZER}")')
    database.execute("CREATE VIRTUAL TABLE words USING fts5vocab(f, 'instance')")
    rows = enumerate(texts, start=1)
    database.executemany("INSERT INTO f(rowid, body) VALUES (?, ?)", rows)
    found: dict[int, list[str]] = {}
    for number, word in database.execute("SELECT doc, term FROM words ORDER BY doc, offset"):
        found.setdefault(number - 1, []).append(word)
    database.close()
    return found


def index_finds(text: str, query: Query) -> bool:
    """Whether the full-text index finds the wanted terms in the text."""
    database = sqlite3.connect(":memory:")
    database.execute(f'CREATE VIRTUAL TABLE f USING fts5(body, tokenize="{TOKENIZER}")')
    database.execute("INSERT INTO f VALUES (?)", (fold(text),))
    words = " ".join(f'"{" ".join(t.words)}"{"*" * t.prefix}' for t in query.wanted)
    found = database.execute("SELECT count(*) FROM f WHERE f MATCH ?", (words,)).fetchone()[0]
    database.close()
    return bool(found)


WANTED = [
    ("東京都に行く", "東京", True),
    ("東京都に行く", "都", True),
    ("私は学生です", "学生", True),
    ("私は学生です", "生", True),
    ("Python入門ガイド", "python", True),
    ("Python入門ガイド", "入門", True),
    ("使用Docker部署服务", "docker", True),
    ("使用Docker部署服务", "部署", True),
    ("使用Docker部署服务", "使用Docker部署", True),
    ("한국어 검색을 지원", "검색", True),
    ("한국어 검색을 지원", "한국", True),
    ("ｶﾀｶﾅ", "カタカナ", True),
    ("ｶﾞｲﾄﾞ", "ガイド", True),
    ("ＡＢＣ会社", "abc", True),
    ("ภาษาไทยง่าย", "ไทย", True),
    ("ภาษาไทยง่าย", "ง่าย", True),
    ("كِتَابٌ جديد", "كتاب", True),
    ("الكتاب الجديد", "كتاب", False),
    ("हिन्दी में खोज", "हिन्दी", True),
    ("हिन्दी में खोज", "हन्द", False),
    ("हिन्दी में खोज", "खोज", True),
    ("Zürich Café résumé", "zurich", True),
    ("Zürich Café", "café", True),
    ("Cafe\u0301 NFD", "cafe", True),
    ("Việt Nam", "viet", True),
    ("Straße", "strasse", True),
    ("Straße", "straße", True),
    ("İstanbul", "istanbul", True),
    ("ΟΔΟΣ", "οδός", True),
    ("ﬁle", "file", True),
    ("foo_bar baz", "bar", True),
    ("Łódź", "lodz", True),
    ("Ship it 🚀 now", "🚀", True),
    ("Ship it 🚀 now", "🛳", False),
    ("by 👩‍💻 and 👍🏽", "👩", True),
    ("by 👩‍💻 and 👍🏽", "👍", True),
    ("Foo™ 2½ ㎏", "foo 2 kg", True),
    # Extra hits that we accept: o for ø, and a word of an unspaced script across punctuation.
    ("Ærø Øre", "ore", True),
    ("東、京", "東京", True),
]


@pytest.mark.parametrize(("text", "words", "wanted"), WANTED)
def test_a_word_is_found_in_every_script(text: str, words: str, wanted: bool) -> None:
    query = parse_query(words)
    assert bool(spans(text, query)) is wanted
    assert index_finds(text, query) is wanted


def test_the_index_finds_the_same_words_in_every_script() -> None:
    found = indexed(map(fold, SCRIPTS))
    assert [found[number] for number in range(len(SCRIPTS))] == [fold(t).split() for t in SCRIPTS]


def test_the_index_and_the_fold_agree_on_every_kind_of_code_point() -> None:
    found = indexed(fold(f"a{char}b {char}") for char in CODE_POINTS)
    differing = [
        char
        for number, char in enumerate(CODE_POINTS)
        if found[number] != fold(f"a{char}b {char}").split()
    ]
    assert differing == []


@given(st.lists(texts, min_size=1, max_size=20))
def test_the_index_finds_the_same_words_in_any_text(many: list[str]) -> None:
    found = indexed(map(fold, many))
    assert [found.get(number, []) for number in range(len(many))] == [fold(t).split() for t in many]


@given(texts, texts)
def test_texts_can_be_folded_in_pieces(left: str, right: str) -> None:
    assert fold(left + right) == fold(left) + fold(right)
    assert fold_literal(left + right) == fold_literal(left) + fold_literal(right)


@given(texts, st.lists(st.sampled_from("".join(SCRIPTS)), max_size=40), st.integers(0, 9))
@example("", list("ｱアｲイｳウｴエｵオｶカ㍿株"), 9)  # many are written with another
def test_a_text_folds_as_its_code_points_do(text: str, others: list[str], plain: int) -> None:
    """However many of them are not ASCII, of however many kinds."""
    text += (" Plain, " * plain).join(others)
    assert fold(text) == "".join(map(fold, text))
    assert fold_literal(text) == "".join(map(fold_literal, text))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_keeps_its_length(text: str) -> None:
    words = "".join(char.lower() if char.isalnum() else " " for char in text)
    assert fold(text) == words
    assert fold_literal(text) == text.lower()


def test_composed_and_decomposed_letters_are_the_same_except_hangul_syllables() -> None:
    letters = [c for c in CODE_POINTS if not "가" <= c <= "힣"]
    for form in ("NFC", "NFD"):
        spelled = [unicodedata.normalize(form, char) for char in letters]
        assert [fold(s).split() for s in spelled] == [fold(c).split() for c in letters]


def test_no_two_symbols_become_the_same_word() -> None:
    alone = (char for char in CODE_POINTS if not unicodedata.decomposition(char))
    symbols = [char for char in alone if fold(char).strip() > "\U000f0000"]
    assert len(symbols) > 5_000
    assert len({fold(char) for char in symbols}) == len(symbols)


def test_a_literal_fold_is_final_and_keeps_punctuation() -> None:
    folded = list(map(fold_literal, CODE_POINTS))
    assert list(map(fold_literal, folded)) == folded
    assert fold_literal("Straße, ＡＢＣ！ (Café) 🚀") == "strasse, abc! (cafe) 🚀"


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("Die Straße", "strasse", "Straße"),
        ("Die Straße", "ss", "ß"),
        ("in İstanbul", "istanbul", "İstanbul"),
        ("a ﬁle", "file", "ﬁle"),
        ("a ﬁle", "i", "ﬁ"),
        ("une Cafe\u0301 ici", "cafe", "Cafe\u0301"),
        ("東京都", "京", "京"),
        ("ＡＢＣ会社", "bc", "ＢＣ"),
        ("soft\u00adhyphen here", "softhyphen", "soft\u00adhyphen"),
        ("a ❤\ufe0f b", fold("❤").strip(), "❤\ufe0f"),
        ("a 👍🏽 b", fold("👍").strip(), "👍🏽"),
        ("Some Straße, plain words, e\u0301t", "et", "e\u0301t"),
    ],
)
def test_a_place_in_the_fold_leads_back_to_the_text(text: str, part: str, expected: str) -> None:
    at = fold(text).index(part)
    start, end = Folded(text).original(at, at + len(part))
    assert text[start:end] == expected


@given(texts, st.booleans(), st.data())
def test_the_way_back_covers_the_folded_range_with_nothing_to_spare(
    text: str, literal: bool, data: st.DataObject
) -> None:
    apply = fold_literal if literal else fold
    folded = Folded(text * 9, literal=literal)
    assert folded.folded == apply(folded.text)
    start = data.draw(st.integers(0, len(folded.folded)))
    end = data.draw(st.integers(start, len(folded.folded)))
    first, last = folded.original(start, end)
    assert len(apply(folded.text[:first])) <= start
    if start == end:
        assert first == last
        return
    assert len(apply(folded.text[:last])) >= end
    assert len(apply(folded.text[: first + 1])) > start
    tail = last
    while len(apply(folded.text[: tail - 1])) >= end:
        tail -= 1
    assert all(map(extends, folded.text[tail:last]))
    assert last == len(folded.text) or folded.text.isascii() or not extends(folded.text[last])


def test_the_way_back_leads_past_any_number_of_accents() -> None:
    text = "a" + "\u0301" * 300 + "b"
    assert Folded(text).original(0, 1) == (0, 301)
    assert Folded(text).original(1, 2) == (301, 302)


def test_the_fold_has_a_version() -> None:
    assert FOLD_VERSION == f"1/{unicodedata.unidata_version}"
