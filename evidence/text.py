"""Prepares text for readers: excerpts, marked matches and visible control characters.

Invisible characters that could mislead are written `\\u{HEX}`, with as many digits as needed. A
backslash that would begin such an escape in the text itself is written `\\u{5C}`, so that
unescaping is exact. Marked text is escaped text with tags. `mark` does both at once, because a
stored `<mark>` must differ from ours: its `<` becomes `\\u{3C}`. Never escape marked text again.

    escape(text)            <->  unescape(escaped)
    mark(text, start, end)  <->  unmark(marked)
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import orjson

from evidence.fold import extends
from evidence.find import Span

_NEAR = 16  # code points an edge may move to reach a word boundary
_SHIFT = 40  # the same for the first edge of a read, which also looks for a sentence
_BEFORE_SENTENCE = re.compile(r"(?:[.!?…]\s+|[。！？\n]\s*)(?=\S)")
_BEFORE_WORD = re.compile(r"\s+(?=\S)")
_BEGINS = re.compile(r"(?<=\s)(?!\s)")  # where a piece of text may begin
_LAST_END = re.compile(r"(?s:.*)(?<!\s)(?=\s)")  # up to the last place where a piece may end
_JOINER = "\u200d"

_MISLEADING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls except tab and newline
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    r"\u2028\u2029"  # line and paragraph separators
    r"\ud800-\udfff"  # halves of surrogate pairs cannot be encoded
    r"\U000e0000-\U000e007f"  # tags: invisible letters
)
# One character class, then a lookbehind for a "\\" or "<" that begins nothing: alternatives would
# take twice the time.
_BEGINS_ESCAPE = r"(?<!\\(?!u\{))"
_BEGINS_TAG = "(?<!<(?!/?mark>))"
_ESCAPED_ALONE = re.compile(rf"[{_MISLEADING}\\]{_BEGINS_ESCAPE}")
_ESCAPED_IN_MARKED = re.compile(rf"[{_MISLEADING}\\<]{_BEGINS_ESCAPE}{_BEGINS_TAG}")
_MISLEADING_ALONE = re.compile(f"[{_MISLEADING}]")
_HARMLESS = b"\t\n" + bytes(range(0x20, 0x7F))  # ASCII that is never escaped, except "\\u{"
_ESCAPE = re.compile(r"\\u\{((?:10|[0-9A-F])?[0-9A-F]{1,4})\}")
_TAG = re.compile("</?mark>")
_MARKED = re.compile("<mark>((?:[^<]|<(?!mark>))*?)</mark>")

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_BASE64_URI = re.compile(r"data:[^,\s]*;base64,")
BASE64_MIN = 256  # code points; shorter values are hashes, keys and long words
_SAME_KIND = re.compile("[a-z]+|[A-Z]+|[0-9]+")


def excerpt(text: str, span: Span, *, size: int) -> tuple[int, int]:
    """A range of at most `size` code points that shows the span and some text on both sides.

    A third of the free space goes before the span; space that one side cannot use goes to the
    other. Edges are between words if a word ends nearby, otherwise between characters: not inside
    an emoji or between a letter and its accents, unless the span itself ends there. A span longer
    than `size` is shown by its first mark, a longer mark by its first `size` code points.
    """
    start, end, marks = span
    if end - start > size:
        start, end = marks[0]
    if end - start > size:
        return start, start + size
    total = len(text)
    if total <= size:
        return 0, total
    first = max(0, min(start - (size - end + start) // 3, total - size))
    last = first + size
    return _later_edge(text, first, start), _earlier_edge(text, last, end)


def _later_edge(text: str, edge: int, limit: int) -> int:
    """The nearest place after `edge`, up to `limit`, where a piece of text may begin."""
    if edge == 0:
        return 0
    last = edge + _NEAR if edge + _NEAR < limit else limit
    # One more than `last`: the end of the searched range looks like the end of the text.
    if (match := _BEGINS.search(text, edge, last + 1)) and (start := match.start()) <= last:
        return start
    while edge < limit and _inside_character(text, edge):
        edge += 1
    return edge


def beginning(text: str, offset: int) -> int:
    """The start of a read near `offset`: the next sentence, or else the next word.

    At most 40 code points later; if neither begins there, between two characters.
    """
    if offset <= 0:
        return 0
    for gap in (_BEFORE_SENTENCE, _BEFORE_WORD):
        for match in gap.finditer(text, max(0, offset - 2), offset + _SHIFT):
            if match.end() >= offset:
                return match.end()
    return _later_edge(text, offset, len(text))


def _earlier_edge(text: str, edge: int, limit: int) -> int:
    """The nearest place before `edge`, down to `limit`, where a piece of text may end."""
    if edge == len(text):
        return edge
    first = edge - _NEAR if edge - _NEAR > limit else limit
    if match := _LAST_END.match(text, first, edge + 1):
        return match.end()
    while edge > limit and _inside_character(text, edge):
        edge -= 1
    return edge


def _inside_character(text: str, offset: int) -> bool:
    """True if a cut at `offset` would split a character as a reader sees it."""
    if not 0 < offset < len(text):
        return False
    if text[offset - 1] == _JOINER or extends(text[offset]):
        return True
    flags = offset
    while flags > 0 and _is_flag_letter(text[flags - 1]):
        flags -= 1
    return (offset - flags) % 2 == 1 and _is_flag_letter(text[offset])


def _is_flag_letter(char: str) -> bool:
    """True if `char` is half of a flag."""
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def clip(text: str, most: int) -> str:
    """`text` cut to `most` code points, with `…` at its end if it was longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def escape(text: str) -> tuple[str, int]:
    """`text` with everything misleading made visible, and the number of escapes."""
    if _is_harmless(text):
        return text, 0
    return _ESCAPED_ALONE.subn(_visible, text)


def _is_harmless(text: str) -> bool:
    """True if nothing in `text` needs an escape. A quick check that settles nearly every text."""
    if "\\" in text and "\\u{" in text:
        return False
    if text.isascii():
        return not text.encode().translate(None, _HARMLESS)
    return text.replace("\n", " ").isprintable()


def json_line(value: Any, *, indented: bool = False) -> str:
    """JSON on one line, with misleading characters written as `\\uXXXX`.

    It parses to the same value. `indented` uses several lines.
    """
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else None).decode()
    if text.isprintable():
        return text
    return _MISLEADING_ALONE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def visible(text: str) -> str:
    """`text` with misleading characters made visible; escapes from `escape` stay unchanged."""
    return _MISLEADING_ALONE.sub(_visible, text)


def unescape(escaped: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), escaped)


def mark(text: str, *, start: int, end: int, marks: Iterable[tuple[int, int]]) -> tuple[str, int]:
    """`text[start:end]`, escaped, with `<mark>` tags around the marks, and the number of escapes.

    Marks are clipped to the range, so the tags are always balanced.
    """
    window = text[start:end]
    if "<" not in window and _is_harmless(window):
        return _tagged(text, start, end, marks), 0
    # At one position a tag closes before the next opens, and both precede the escaped character.
    edits: list[tuple[int, int, int, str]] = []
    for match in _ESCAPED_IN_MARKED.finditer(window):
        edits.append((start + match.start(), 2, 1, _visible(match)))
    escapes = len(edits)
    for first, last in marks:
        first, last = max(first, start), min(last, end)
        if first < last:
            edits += [(first, 1, 0, "<mark>"), (last, 0, 0, "</mark>")]
    pieces = []
    done = start
    for position, _, replaced, written in sorted(edits):
        pieces += [text[done:position], written]
        done = position + replaced
    pieces.append(text[done:end])
    return "".join(pieces), escapes


def _tagged(text: str, start: int, end: int, marks: Iterable[tuple[int, int]]) -> str:
    """`text[start:end]` with tags around ascending marks; nothing in it needs an escape."""
    tagged, done = "", start
    for first, last in marks:
        if first < done:
            first = done
        if last > end:
            last = end
        if first < last:
            tagged += f"{text[done:first]}<mark>{text[first:last]}</mark>"
            done = last
    return tagged + text[done:end]


def split(marked: str, *, escaped: bool = True) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The plain text of a marked text, and its marked ranges.

    With `escaped=False` nothing is unescaped: another program marked the text. A mark that is not
    closed is ignored.
    """
    plain, marks, opened, position = "", list[tuple[int, int]](), -1, 0
    escaped = escaped and "\\u{" in marked
    for tag in _TAG.finditer(marked):
        segment = marked[position : tag.start()]
        plain += unescape(segment) if escaped else segment
        position = tag.end()
        if tag.group() == "<mark>":
            opened = len(plain)
        elif opened >= 0:
            marks.append((opened, len(plain)))
            opened = -1
    segment = marked[position:]
    return plain + (unescape(segment) if escaped else segment), tuple(marks)


def marked_texts(marked: str) -> list[str]:
    """The texts of the marks of a text from `mark`, as `split` finds them."""
    texts: list[str] = _MARKED.findall(marked)
    return list(map(unescape, texts)) if "\\u{" in marked else texts


def is_marked(marked: str) -> bool:
    """True if `mark` may have written it: nothing in it misleads, and every mark is closed."""
    if not marked.replace("\n", " ").isprintable() and _MISLEADING_ALONE.search(marked):
        return False
    return marked.count("<mark>") == marked.count("</mark>")


def balanced(marked: str) -> str:
    """Text that another program marked, with balanced marks and escaped control characters."""
    plain, marks = split(marked, escaped=False)
    return mark(plain, start=0, end=len(plain), marks=marks)[0]


def unmark(marked: str) -> str:
    """The original of a text from `mark`, without its marks."""
    return unescape(_TAG.sub("", marked))


def _visible(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match[0]):X}}}"


def looks_binary(value: object) -> bool:
    """True if `value` is bytes in disguise: a long base64 text, a data URI or a blob reference.

    Long runs of one kind of character, such as only lower-case letters or only digits, are text.
    """
    if isinstance(value, dict):
        return "blob_id" in value or "fetch_url" in value
    if not isinstance(value, str) or len(value) < BASE64_MIN:
        return False
    if uri := _BASE64_URI.match(value):
        return len(value) - uri.end() > BASE64_MIN
    return (
        len(value) % 4 == 0
        and _BASE64.fullmatch(value) is not None
        and _SAME_KIND.fullmatch(value.rstrip("=")) is None
        and len(set(value)) >= 4
    )
