"""Ranks every match of a question with the compiled `scorer`, if it was built."""

import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evidence.limits import BUDGETS
from evidence.question import Term
from evidence.ranking import (
    CHUNKED_PASSAGES,
    LENGTH_SHARE,
    LONGEST,
    NEAR_CHARS,
    PASSAGE_WORDS,
    SATURATION,
    TITLE_WEIGHT,
    Ranker,
    Text,
)
from evidence.work import check, left
from service.records.engine.matches import EVERYWHERE, PART, TITLE, Match, Matches
from service.records.sqlite.ddl import SEQ_MASK
from service.records.sqlite.doclists import Damaged, pages_of
from service.records.writing.passages import STRIDE

try:
    from service.records.sqlite import scorer
except ImportError:  # there was no C compiler
    CAN_SCORE = False
else:
    CAN_SCORE = True

#: The tables, and whether their rows are passages.
TABLES = {"fts": False, "fts_passage": True}
_RUNS = f"""
SELECT first_passage, id & {SEQ_MASK}, passages FROM value
WHERE first_passage IS NOT NULL ORDER BY first_passage
"""


class Runs(NamedTuple):
    """Long values by columns of 32-bit numbers: their first passage, record and passages."""

    first: bytes
    seqs: bytes
    passages: bytes


class PassageRuns:
    """The long values of a store as they are after one commit, which all threads share."""

    def __init__(self) -> None:
        self._cached = "", Runs(b"", b"", b"")

    def of(self, db: sqlite3.Connection, epoch: str) -> Runs:
        """The long values; `epoch` is that of the last commit."""
        cached_epoch, runs = self._cached
        if cached_epoch != epoch:
            columns = tuple(zip(*db.execute(_RUNS))) or ((), (), ())
            runs = Runs(*(array("I", column).tobytes() for column in columns))
            self._cached = epoch, runs
        return runs


class SqliteScoring:
    """See `engine.matches.Scoring`."""

    def __init__(self, db: sqlite3.Connection, runs: PassageRuns, epoch: str) -> None:
        self._db, self._runs, self._epoch = db, runs, epoch

    def matches(
        self, fields: Mapping[int, int], ranker: Ranker, *, every: bool, most: int
    ) -> Matches | None:
        words = list(_words(ranker))
        if any(term.prefix or len(term.words) > 1 for _, term in words):
            return None
        if not (fields and self._epoch):
            return None
        texts = [term.words[0] for _, term in words]
        (last_seq,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM record").fetchone()
        try:
            pages = {table: pages_of(self._db, table, texts) for table in TABLES}
            check("ranking records")
            some, all_, rest, rest_actor, best = scorer.match(
                _question(ranker),
                tuple(
                    (number, is_passage, b"0" + word.encode(), segments)
                    for table, is_passage in TABLES.items()
                    for (number, _), word, segments in zip(words, texts, pages[table])
                ),
                (array("I", fields).tobytes(), bytes(fields.values())),
                self._runs.of(self._db, self._epoch),
                last_seq,
                most,
                every,
                min(map(len, texts), default=1) - 1,
                BUDGETS.passages_ranked,
                STRIDE,
                BUDGETS.postings,
                left(BUDGETS.store_seconds),
            )
        except (Damaged, ValueError, OverflowError):
            return None
        except TimeoutError:
            check("ranking records")
            return None
        return Matches(some, all_, rest, rest_actor, [Match(*row) for row in best])

    def scores(
        self, ranker: Ranker, records: Sequence[tuple[float, Sequence[Text]]]
    ) -> list[float]:
        check("ranking records")
        words = tuple((number, term.words[0].encode()) for number, term in _words(ranker))
        return scorer.score(
            _question(ranker),
            words,
            [
                (length, tuple([(text.folded, _flags(text)) for text in texts]))
                for length, texts in records
            ],
        )


def _words(ranker: Ranker) -> Iterator[tuple[int, Term]]:
    """The spellings of the groups that occur, each with the number of its group."""
    for number, group in enumerate(ranker.groups):
        if group.count:
            yield from ((number, term) for term in group.spellings)


def _question(
    ranker: Ranker,
) -> tuple[bytes, float, float, int, float, float, float, float, int, float, float, int]:
    """The figures that scores go by."""
    idfs = array("d", [group.idf for group in ranker.groups]).tobytes()
    constants = SATURATION, LENGTH_SHARE, LONGEST, NEAR_CHARS, TITLE_WEIGHT
    long = PASSAGE_WORDS, ranker.length_of(CHUNKED_PASSAGES), CHUNKED_PASSAGES
    return idfs, ranker.mean, ranker.total, ranker.centres, *constants, *long


def _flags(text: Text) -> int:
    return TITLE * (text.weight > 1) | EVERYWHERE * text.everywhere | PART * text.part


class Scorers:
    """Makes what ranks the records of each snapshot of one store."""

    def __init__(self) -> None:
        self._runs = PassageRuns()

    def __call__(self, db: sqlite3.Connection, epoch: str) -> SqliteScoring | None:
        """What ranks a snapshot at an epoch; None without the compiled scorer."""
        return SqliteScoring(db, self._runs, epoch) if CAN_SCORE else None
