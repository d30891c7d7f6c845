"""Text is found in chunk rows just where it is found in the whole."""

from random import Random

import pytest

from evidence.limits import CONTRACT
from evidence.question import Term
from evidence.ranking import Group
from service.records.sqlite.snapshot import SqliteSnapshot
from tests.helpers.filling import put
from service.records.intake import Row
from service.records.engine.later import iterate
from service.records.engine.scopes import StreamHandle
from service.records.view.texts import ChunkedText, InlineText, matches
from service.records.sqlite.writer import Writer

CHUNK = CONTRACT.chunk_chars
NEEDLE = "yrkonfal"


def kept(writer: Writer, notes: StreamHandle, text: str) -> ChunkedText:
    """The text as the store keeps it: in chunk rows."""
    put(writer, notes, [Row({"id": "a", "text": text})])
    (seq,) = writer.db.execute("SELECT seq FROM record").fetchone()
    (ordinal,) = writer.db.execute("SELECT ordinal FROM scope WHERE field = 'text'").fetchone()
    snapshot = SqliteSnapshot(writer.db, (0, 0))
    return ChunkedText(snapshot, seq, snapshot.load([seq]).get()[seq].big["text"], ordinal)


@pytest.mark.parametrize("around", ["z", "ß", "é", "ﬁ", "Ж", "\u0301"])
def test_parts_of_words_are_found_at_every_border_of_chunks(
    writer: Writer, notes: StreamHandle, around: str
) -> None:
    random = Random(around)
    letters = list("".join(random.choices("yrkonfalé", k=5 * CHUNK + 100)))
    for border in range(CHUNK, 5 * CHUNK, CHUNK):
        begin = border - random.randrange(len(NEEDLE) + 2)
        letters[begin : begin + len(NEEDLE) + 2] = f"{around}{NEEDLE.upper()}{around}"
    text = "".join(letters)
    text = text[: -len(NEEDLE) - 1] + f"z{NEEDLE}"
    found = list(iterate(matches(kept(writer, notes, text), NEEDLE, [])))
    assert found == list(iterate(matches(InlineText(text), NEEDLE, [])))
    assert len(found) >= 5
    assert all(text[start:end].lower().startswith(NEEDLE) for start, end in found)


def test_words_apart_are_found_at_every_border_of_passages_and_at_the_end(
    writer: Writer, notes: StreamHandle
) -> None:
    groups = [Group(Term((word,)), count=1, idf=1.0) for word in ("harbour", "violet")]
    filler = "and so the days went on as they always do "
    apart = "violet boats in the harbour"
    stride = CONTRACT.passage_stride_chars
    # The last passage has its full length: its end is in no other.
    chars = 43 * stride + CONTRACT.passage_chars - len(apart) - 2
    text = (filler * (chars // len(filler) + 1))[:chars]
    for border in (stride, 2 * stride, CONTRACT.passage_chars, CHUNK, chars):
        place = border - len("violet boats") * (border < chars)
        changed = f"{text[:place]} {apart} {text[place:]}"
        found = list(iterate(matches(kept(writer, notes, changed), "harbour violet", groups)))
        assert [changed[start:end] for start, end in found] == [apart]
