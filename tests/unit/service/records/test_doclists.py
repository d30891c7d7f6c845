"""The rows of words, read from pages of FTS5, are those of `MATCH`; damaged pages are refused."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.ranking import PLACES_MAX
from service.records.sqlite.ddl import TOKENIZER
from service.records.sqlite.doclists import Damaged, Segment, pages_of, segments_of

scorer = pytest.importorskip("service.records.sqlite.scorer")
WORDS = [f"w{number}" for number in range(60)] + ["x" * size for size in range(1, 30)]
#: Steps of a history, and how many damaged pages of each step are read.
STEPS, DAMAGES = 60, 20


def history(random: Random, db: sqlite3.Connection) -> Iterator[dict[int, list[str]]]:
    """A table through commits with new, changed and deleted rows, and merges; its texts by row."""
    db.execute(f'CREATE VIRTUAL TABLE fts USING fts5(body, tokenize="{TOKENIZER}")')
    for setting, values in (("pgsz", [64, 128, 512, 4050]), ("automerge", [0, 2, 4, 8])):
        db.execute("INSERT INTO fts (fts, rank) VALUES (?, ?)", (setting, random.choice(values)))
    texts = dict[int, list[str]]()
    for _ in range(STEPS):
        db.execute("BEGIN")
        for _ in range(random.choice([1, 5, 40])):
            id = random.choice([0, 1, 2, 5]) << 32 | random.randrange(1, 300)
            if texts.pop(id, None):
                db.execute("DELETE FROM fts WHERE rowid = ?", (id,))
            if random.random() < 0.8:
                some = WORDS[: random.choice([2, 10, len(WORDS)])]
                texts[id] = random.choices(some, k=random.choice([1, 3, 20, 200]))
                db.execute("INSERT INTO fts (rowid, body) VALUES (?, ?)", (id, " ".join(texts[id])))
        db.execute("COMMIT")
        if random.random() < 0.2:
            pages = random.choice([1, 5, -3, 16])
            db.execute("INSERT INTO fts (fts, rank) VALUES ('merge', ?)", (pages,))
        yield texts


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_the_rows_of_a_word_are_those_of_match(seed: int) -> None:
    random = Random(seed)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for texts in history(random, db):
            words = [*random.sample(WORDS, 4), "absent"]
            for word, pages in zip(words, pages_of(db, "fts", words), strict=True):
                rows = db.execute("SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY 1", (word,))
                assert scorer.rows(b"0" + word.encode(), pages) == [
                    (id, [n for n, each in enumerate(texts[id]) if each == word][:PLACES_MAX])
                    for (id,) in rows
                ]


def damaged(random: Random, page: bytes) -> bytes:
    """A page with other bytes, most of them in its head or its index of words; cut, or longer."""
    changed, size = bytearray(page), len(page)
    index = min(int.from_bytes(page[2:4]), size - 1)
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.choice(
            [random.randrange(size), random.randrange(4), random.randrange(index, size)]
        )
        changed[at] = random.choice([0, 1, 127, 128, 255, random.randrange(256), changed[at] ^ 1])
    if random.random() < 0.1:
        changed[2:4] = max(0, size + random.randrange(-9, 10)).to_bytes(2)
    if random.random() < 0.1:
        del changed[random.randrange(size + 1) :]
    if random.random() < 0.1:
        changed += random.randbytes(random.randrange(9))
    return bytes(changed)


def read_damaged(random: Random, db: sqlite3.Connection) -> tuple[int, int]:
    """How many damaged pages of a word were read one at a time, and how many of them were refused.

    A search ends at the first page that it refuses.
    """
    question = (bytes(8), 1.0, 1.0, 1, 1.5, 0.75, 2.0, 40.0, 2, 256.0, 1.0, 43)
    fields = b"".join(n.to_bytes(4, "little") for n in (0, 1, 2, 5)), bytes([17, 0, 16, 0])
    runs = tuple(n.to_bytes(4, "little") for n in (1, 7, 200))
    word, refused = random.choice(WORDS), 0
    (segments,) = pages_of(db, "fts", [word])
    sound = [segment for segment in segments if segment]
    for _ in range(DAMAGES if sound else 0):
        pages = list(random.choice(sound))
        number = random.choice([0, random.randrange(len(pages))])
        pages[number] = damaged(random, pages[number])
        lists = ((0, random.random() < 0.5, b"0" + word.encode(), (tuple(pages),)),)
        try:
            scorer.match(question, lists, fields, runs, 300, 9, False, 0, 8, 1536, 10**6, 60.0)
        except (ValueError, OverflowError):
            refused += 1
    return DAMAGES if sound else 0, refused


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_damaged_pages_are_refused_or_read_as_others(seed: int) -> None:
    random = Random(seed)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        assert sum(read_damaged(random, db)[1] for _ in history(random, db))


@pytest.mark.parametrize(
    ("structure", "segments"),
    [
        (bytes.fromhex("00000001" "01 01 02 00 01 05 01 07"), [Segment(5, 1, 7)]),
        (bytes.fromhex("00000001" "ff000001 01 01 02 00 01 05 01 07"), None),
        (bytes.fromhex("00000001" "01 01 02 00 01 05"), None),
        (bytes.fromhex("00000001" "01 01 02 00 02 05 01 07 06 01 01"), None),
        (b"", None),
    ],
    ids=["one segment", "a newer format", "cut", "more than it counts", "empty"],
)
def test_the_list_of_segments_is_checked(structure: bytes, segments: list[Segment] | None) -> None:
    if segments is not None:
        assert list(segments_of(structure)) == segments
        return
    with pytest.raises(Damaged):
        list(segments_of(structure))


def test_the_scorer_runs_on_an_older_python_than_it_was_built_with() -> None:
    """Built with the headers of 3.13, formats that give a size with `#` fail on 3.11."""
    source = Path(__file__).parents[4] / "service/records/sqlite/scorer.c"
    formats = re.findall(r'PyArg_ParseTuple\([^"]*"([^"]*)"', source.read_text(encoding="utf-8"))
    assert len(formats) >= 5 and not [each for each in formats if "#" in each]
