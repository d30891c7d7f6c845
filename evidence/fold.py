"""Normalizes text in the same way for indexing and for searching.

`fold` writes a text as lower-case words with spaces around them. Words lose their accents and their
width; each character of a script without spaces between words is a word, and so is each emoji. The
fold handles one code point at a time, so `fold(a + b) == fold(a) + fold(b)`: texts can be folded in
pieces, and every offset in the fold maps to one code point of the text.

The words of a text are `fold(text).split()`. The full-text index finds the same words with
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

FOLD_VERSION: str = f"1/{unicodedata.unidata_version}"
"""Stored with every index: our version, raised whenever `fold` changes the words of any text, and
that of Unicode, whose tables come with the interpreter. An index of another version is rebuilt."""

_PLAIN_LETTERS = str.maketrans(
    dict(zip("łđðøħŧŋıȷƀɓɖɗɨƒǥɠƙƚɲɍɏƴƶ", "lddohtnijbbddifggklnryyz"))
    | {"æ": "ae", "œ": "oe", "þ": "th", "ꜳ": "aa", "ꝏ": "oo"}
)

_UNSPACED = re.compile(
    "[\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3000-\u312f\u31a0-\u31ff\U0001aff0-\U0001b16f"  # Hiragana, Katakana, Bopomofo
    "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7a3]"  # Hangul syllables
)

# Invisible code points that are letters or marks by category, and the Arabic stretching stroke.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff\u0640]"
)

_DRAWING = re.compile("[\u2500-\u259f]")  # boxes and bars: ornament that nobody searches for
_EMOJI_BLOCKS = re.compile("[\U0001f000-\U0001faff]")
_SKIN_TONES = re.compile("[\U0001f3fb-\U0001f3ff]")

# Adding this moves planes 0 and 1, where all symbols are, onto the private planes 15 and 16.
_PRIVATE_PLANES = 0xF0000

_WIDE = re.compile("([^\x00-\x7f])")
_ASCII = bytes(range(128))
_KINDS = 16  # code points replaced one after the other; with more, the text is split at all of them
_BLOCK = 64  # code points


def _vanishes(char: str) -> bool:
    """True if `char` is an accent, a vowel point or invisible. Vowel signs of Indic scripts stay.

    Combining classes: 0 spacing and vowel signs, 7 to 9 nukta, kana voicing and virama, 84 to 132
    the vowel signs and tones of Telugu, Thai, Lao and Tibetan; the others are accents and points.
    """
    kind = unicodedata.combining(char)
    if kind:
        return not (7 <= kind <= 9 or 84 <= kind <= 132)
    return unicodedata.category(char) == "Cf" or _INVISIBLE.match(char) is not None


def _readable(char: str) -> str:
    """`char` without case, accents, width and other variants of form."""
    decomposed = "".join(
        letter if "가" <= letter <= "힣" else unicodedata.normalize("NFKD", letter)
        for letter in unicodedata.normalize("NFKC", char)
    )
    bare = "".join(letter for letter in decomposed if not _vanishes(letter))
    return bare.casefold().translate(_PLAIN_LETTERS)


def _is_symbol(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "So":
        return not _DRAWING.match(char)
    # Emoji newer than the tables of this Python are unassigned in them.
    return category == "Cn" and _EMOJI_BLOCKS.match(char) is not None


def _as_word(char: str) -> str:
    """The fold of one plain code point: itself, itself as a separate word, or a space."""
    if _is_symbol(char):
        return f" {chr(ord(char) + _PRIVATE_PLANES)} "
    category = unicodedata.category(char)
    if category[0] not in "LN" and category not in ("Mn", "Mc", "Co"):
        return " "
    if ord(char) >= _PRIVATE_PLANES:
        return " "
    return f" {char} " if _UNSPACED.match(char) else char


def _searched(char: str) -> str:
    """The fold of one code point. ™, ½ and ㎏ are separated from the word before them."""
    folded = "".join(map(_as_word, _readable(char)))
    if " " in folded or unicodedata.category(char) == "So":
        return " ".join(["", *folded.split(), ""])
    return folded


class _Table(dict[str, str]):
    """A map of code points to their replacements, each computed on first use."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule
        self._ascii = "".join(map(rule, map(chr, range(128)))).encode() + bytes(range(128, 256))

    def __missing__(self, char: str) -> str:
        folded = self._rule(char)
        if unicodedata.category(char) not in ("Cn", "Co", "Cs"):  # caches 150,000 assigned ones
            self[char] = folded
        return folded

    def apply(self, text: str) -> str:
        """`text` with every code point replaced. Fastest for mostly ASCII text."""
        if text.isascii():
            return text.encode().translate(self._ascii).decode()
        return self._apply(text)[0]

    def apply_with_alignment(self, text: str) -> tuple[str, bool]:
        """(folded text, True if each code point became exactly one)."""
        if text.isascii():
            return text.encode().translate(self._ascii).decode(), True
        folded, vanished = self._apply(text)
        return folded, not vanished and len(folded) == len(text)

    def _apply(self, text: str) -> tuple[str, bool]:
        """(folded text, True if a code point vanished) of a text that is not ASCII."""
        encoded = text.encode("utf-8", "surrogatepass")
        if len(encoded) > len(text) * 1.15:
            folds = list(map(self.__getitem__, text))
            return "".join(folds), "" in folds
        narrow = encoded.translate(self._ascii).decode("utf-8", "surrogatepass")
        kinds = set(encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
        if len(kinds) <= _KINDS:
            written = {char: self[char] for char in kinds}
            # Replacing in sequence is correct only if no replacement contains another key.
            if kinds.isdisjoint("".join(written.values())):
                for char, folded in written.items():
                    narrow = narrow.replace(char, folded)
                return narrow, "" in written.values()
        parts = _WIDE.split(narrow)
        wide = parts[1::2] = list(map(self.__getitem__, parts[1::2]))
        return "".join(parts), "" in wide


_SEARCHED = _Table(_searched)
_READABLE = _Table(_readable)


def fold(text: str) -> str:
    """The normalized text: plain words with spaces around them. Never raises."""
    return _SEARCHED.apply(text)


def folded_words(text: str) -> str:
    """The words of a text, normalized, with one space between them."""
    return " ".join(fold(text).split())


def unfold(words: str) -> str:
    """Folded words with their original symbols."""
    return "".join(
        chr(ord(char) - _PRIVATE_PLANES) if ord(char) >= _PRIVATE_PLANES else char for char in words
    )


def fold_literal(text: str) -> str:
    """`text` without case, accents and width; punctuation and spacing stay as they are."""
    return _READABLE.apply(text)


def extends(char: str) -> bool:
    """True if `char` belongs to the one before: a mark, a selector, a joiner, a skin tone."""
    return (
        unicodedata.category(char)[0] == "M"
        or not _SEARCHED[char]
        or _SKIN_TONES.match(char) is not None
    )


class Folded:
    """A text, its folded form, and the map between their offsets. All offsets are code points."""

    def __init__(self, text: str, *, literal: bool = False) -> None:
        self.text = text
        self._table = _READABLE if literal else _SEARCHED
        self.folded, self._aligned = self._table.apply_with_alignment(text)
        self._ascii = text.isascii()
        self._starts = [0]  # offset in the fold of each block indexed so far

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The smallest range of the text that folds to all of `folded[start:end]`.

        Marks and invisible code points that follow belong to it. An empty range stays empty.
        """
        if self._ascii:
            return start, end
        text = self.text
        first = start if self._aligned else self._source(start)
        if start >= end:
            return first, first
        last = end if self._aligned else self._source(end - 1) + 1
        while last < len(text) and text[last] > "\x7f" and extends(text[last]):
            last += 1
        return first, last

    def _source(self, offset: int) -> int:
        """The index of the code point that `folded[offset]` came from."""
        self._index_through(offset)
        block = bisect_right(self._starts, offset) - 1
        ahead = offset - self._starts[block]
        first = block * _BLOCK
        block_text = self.text[first : first + _BLOCK]
        if block_text.isascii():
            return min(first + ahead, len(self.text))
        for index, char in enumerate(block_text, start=first):
            ahead -= len(self._table[char])
            if ahead < 0:
                return index
        return len(self.text)

    def _index_through(self, offset: int) -> None:
        """Indexes blocks until one begins after `offset`."""
        starts, end = self._starts, self._starts[-1]
        index = (len(starts) - 1) * _BLOCK
        while end <= offset and index < len(self.text):
            block = self.text[index : index + _BLOCK]
            end += len(block) if block.isascii() else len(self._table.apply(block))
            starts.append(end)
            index += _BLOCK
