"""What renderers share: their result and context, the pieces of a line, and cutting to limits.

Items of a page are rendered in the current thread, or by a pool if together they exceed
`HEAVY_PAGE_CHARS` (a heavy page). Each item then has `render_seconds`: one that takes longer is
shown without its text, and the page continues.
"""

import hmac
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from evidence.hits import Hit, SearchPage
from evidence.limits import BUDGETS, Budgets
from evidence.model import Buckets, Continuation, Source, as_of_json, label_of, spelled
from evidence.papers import PaperMatch
from evidence.records import RecordPage
from evidence.text import clip, escape
from evidence.values import Bytes
from evidence.wire import bytes_line
from evidence.work import Deadline, Done, Each, check

Spell = Callable[[Continuation], str]
#: Writes how to fetch the bytes of a field, or that they are missing.
SpellBlob = Callable[[Bytes], str]
#: Keys whose values are ids: printed without quotes, exactly as they are accepted.
IDS = ("id", "first_id")

# Words that need no quotes: no separators, brackets or hidden characters.
_PLAIN = re.compile(r"[\w./:@%+~|*()#!?&$^'-]+")
FENCE_DIGITS = 12
#: The most words that a line lists; structured content has all.
WORDS_LISTED = 8
#: Placeholder for the fence while a text is built; escaped text never contains NUL.
FENCE_SLOT = "\x00fence\x00"


@dataclass(frozen=True, slots=True)
class Rendering:
    """One answer in both channels: text blocks and `structured`; `hidden` goes to `_meta` only."""

    blocks: tuple[str, ...]
    structured: dict[str, Any]
    hidden: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What rendering needs besides the answer: sizes, the fence key, the public address.

    `spell` writes a next call as one line, as the reader would make it; `blob` writes how to get
    bytes.
    """

    budgets: Budgets = BUDGETS
    fence_key: bytes = b"rung"
    base_url: str = ""
    spell: Spell = spelled
    blob: SpellBlob = bytes_line

    def step(self, continuation: Continuation) -> str:
        """A call on its own line, labelled with its purpose."""
        return step(continuation, self.spell)

    def rendering(self, lines: Sequence[str], structured: dict[str, Any]) -> Rendering:
        """Both channels of an answer, with the fence in every placeholder."""
        text = "\n".join(lines)
        if FENCE_SLOT in text:
            text = text.replace(FENCE_SLOT, self.fence(text))
        return Rendering((text,), structured)

    def fence(self, text: str) -> str:
        """Returns 12 hex digits that record text cannot predict. Equal texts get equal digits."""
        digest = hmac.digest(self.fence_key, text.encode("utf-8", "surrogatepass"), "sha256")
        return digest.hex()[:FENCE_DIGITS]


def header(operation: str, **facts: Any) -> str:
    """`operation key=value …` without the values that are None."""
    pairs = [
        f"{name}={value if name in IDS else value_of(value)}"
        for name, value in facts.items()
        if value is not None
    ]
    return " ".join([operation, *pairs])


def value_of(value: Any) -> str:
    """A value on one of our lines: plain if it is one word, otherwise a JSON string."""
    if isinstance(value, int):
        return str(value) if not isinstance(value, bool) else "true" if value else "false"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else quoted(text)


#: Words of questions: each is on the lines of many hits.
word_of = lru_cache(maxsize=1024)(value_of)


def quoted(text: str, limit: int | None = None) -> str:
    """Foreign text for one of our lines: on one line, quoted, control characters escaped."""
    clipped = text if limit is None else clip(text, limit)
    if clipped.isprintable() and '"' not in clipped and "\\" not in clipped:
        return f'"{clipped}"'
    return orjson.dumps(escape(clipped)[0]).decode()


@lru_cache(maxsize=512)
def name_source(source: Source) -> str:
    """`Label (connection_id)`, quoted if necessary."""
    if source.connection_id is None or source.label == source.connection_id:
        return value_of(label_of(source) or "unknown")
    return f"{value_of(label_of(source))} ({value_of(source.connection_id)})"


def step(continuation: Continuation, spell: Spell = spelled) -> str:
    """A call on its own line, labelled with its purpose; `spell` writes the call."""
    return f"{continuation.why}: {spell(continuation)}"


def size_of(content: Bytes) -> str:
    """The media type and size of bytes, as far as known."""
    media_type, size = content.known.media_type, content.known.size
    parts = [value_of(media_type)] if media_type else []
    parts += [f"{size[0]} {size[1]}"] if size else []
    return ", ".join(parts) or "binary"


def warning(notice: dict[str, Any]) -> str:
    """One warning as a line."""
    message = quoted(str(notice.get("message", "")))
    return f"warning {value_of(notice.get('code', 'warning'))}: {message}"


def warnings(page: SearchPage | RecordPage | Buckets) -> list[str]:
    """The warnings of a page as lines, then the connections that are not up to date."""
    lines, entries = [*map(warning, page.warnings)], as_of_json(page.as_of) or ()
    stale = [f"{name_source(source)} {_as_of(row)}" for source, row in zip(page.as_of, entries)]
    if rest := len(page.as_of) - len(stale):
        stale.append(f"{rest} more")
    return [*lines, f"as_of: {', '.join(stale)}"] if stale else lines


def _as_of(entry: dict[str, Any]) -> str:
    until = entry.get("complete_until")
    return f"{f'complete until {until}' if until else 'never complete'} ({entry['state']})"


def listed(words: Sequence[str]) -> str:
    """Words separated by commas; if there are many, the first ones and the number of the others."""
    rest = len(words) - WORDS_LISTED
    return ", ".join([*words[:WORDS_LISTED], *([f"{rest} more"] if rest > 0 else [])])


def words_matched(
    match: Hit | PaperMatch, suffix: str = "", join: Callable[[list[str]], str] = ", ".join
) -> str:
    """The words of a query that a hit has in another form or lacks; "" if neither.

    `suffix` is appended to their number.
    """
    matched, missing, forms = match.matched_words, match.missing_words, match.forms.items()
    if not missing and not forms:
        return ""
    line = f" matched {len(matched)} of {len(matched) + len(missing)}{suffix}"
    if forms:
        line += f" ({join([f'{quoted(form)} for {quoted(word)}' for word, form in forms])})"
    return line + (f", missing: {join(list(map(word_of, missing)))}" if missing else "")


def fenced(text: str, fence: str = FENCE_SLOT) -> str:
    """Record text between two lines that it cannot forge."""
    return f"<<<{fence} untrusted record text\n{text}\n{fence}>>>"


T = TypeVar("T")
R = TypeVar("R")

#: The code of the warning that some items are shown without their text.
TIMED_OUT = "rendering_timed_out"
#: A page of more code points than this is heavy.
HEAVY_PAGE_CHARS = BUDGETS.heavy_page_chars


def rendered_each(
    fn: Callable[[T], R], items: Sequence[T], apply: Each, *, late: Callable[[T], R]
) -> tuple[list[R], list[int]]:
    """(`fn` of every item, the indexes of those that took too long or failed).

    These have `late` of the item instead.
    """
    results: list[R] = []
    missed: list[int] = []
    outcomes = apply(fn, items, Deadline.after(BUDGETS.render_seconds))
    for position, (item, outcome) in enumerate(zip(items, outcomes)):
        if isinstance(outcome, Done):
            results.append(outcome.value)
        else:
            results.append(late(item))
            missed.append(position)
    return results, missed


def late_warning(count: int) -> dict[str, Any]:
    """The warning for a page on which this many items are shown without their text."""
    subject = "One item is" if count == 1 else f"{count} items are"
    return {
        "code": TIMED_OUT,
        "message": f"{subject} shown without text, because rendering took too long. To read an "
        "item, make the call that is printed with it.",
    }


def timed_out(result: Any) -> bool:
    """True if a page shows items without their text because they took too long."""
    warnings = getattr(result, "warnings", None) or ()
    return any(notice.get("code") == TIMED_OUT for notice in warnings)


def most(
    count: int,
    cut: Callable[[int, Context], Rendering],
    budgets: Budgets,
    *,
    text_bytes: int | None = None,
) -> int:
    """The largest number of `count` items that fits when rendered, at least 1 if there are any.

    `cut` renders a result cut to so many items.
    """
    room = budgets.text_bytes if text_bytes is None else text_bytes
    context = Context(budgets)

    def is_fit(length: int) -> bool:
        check("shortening a page")
        return fits(cut(length, context), budgets, room)

    if count == 0 or is_fit(count):
        return count
    return 1 + bisect_left(range(2, count), True, key=lambda length: not is_fit(length))


def fits(rendering: Rendering, budgets: Budgets, text_bytes: int) -> bool:
    """Whether both channels of an answer are within their limits."""
    text_size = sum(len(block.encode()) for block in rendering.blocks)
    return (
        text_size <= text_bytes
        and len(orjson.dumps(rendering.structured)) <= budgets.structured_bytes
    )


def shortened(
    result: T,
    name: str,
    render: Callable[[T, Context], Rendering],
    budgets: Budgets,
    *,
    text_bytes: int | None = None,
) -> T:
    """The result with as many items of the list `name` as fit when rendered."""
    whole = getattr(result, name) or ()

    def cut(count: int) -> T:
        return replace(result, **{name: whole[:count]})  # type: ignore[type-var]

    def render_cut(count: int, context: Context) -> Rendering:
        return render(cut(count), context)

    length = most(len(whole), render_cut, budgets, text_bytes=text_bytes)
    return result if length == len(whole) else cut(length)


# A code point takes at least one byte and at most this many, as an escape.
MOST_BYTES = 10


def json_bytes(text: str) -> int:
    """The UTF-8 bytes of a text as a JSON string, without its quotes."""
    return len(orjson.dumps(text)) - 2


def fit_json(text: str, room: int) -> str:
    """The longest beginning of `text` that takes at most `room` bytes inside JSON."""
    return text[: _longest(text, room, json_bytes)]


def fit_both(text: str, *, shown: int, json: int) -> str:
    """The longest beginning that takes at most `shown` bytes as text and `json` bytes in JSON.

    In text, its control characters are escaped.
    """
    text = text[: _longest(text, shown, lambda part: len(escape(part)[0].encode()))]
    return fit_json(text, json)


def _longest(text: str, room: int, measure: Callable[[str], int]) -> int:
    """A binary search: a longer prefix is never smaller."""
    if room <= 0:
        return 0
    high = min(len(text), room)
    excess = measure(text[:high]) - room
    if excess <= 0:
        return high
    low, high = max(0, high - excess), high - -(-excess // MOST_BYTES)
    longer = range(low + 1, high + 1)
    return low + bisect_right(longer, room, key=lambda end: measure(text[:end]))
