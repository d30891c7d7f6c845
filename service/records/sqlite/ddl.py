"""The schema of the embedded store, and its versioned migrations.

How it fits together:

* `scope` gives each (stream, field) an ordinal; ordinals come in blocks, connection > stream >
  field, so that a grant of a whole connection is one range of full-text row ids.
* A full-text row is one (record, searchable field) of at most 2,048 characters: rowid = ordinal <<
  32 | seq. `fts` keeps the folded text, which search ranks records by; `document` has the original.
* A longer value is indexed as passages that overlap: rowid = ordinal << 32 | number in
  `fts_passage`, numbers count through the whole store. `passage` says whose they are and where they
  start, `value` which passages a value has, or how many words a short one. See passages.py.
* `word` is the vocabulary, `word_count` how many records hold a word in a field. A pair of adjacent
  characters of a script without spaces is a word too. `scope.words` is the length of all values of
  a field. See indexing.py. `word_key` leads from a misspelled word to those that may have been
  meant; see vocabulary.py. Its `ordinal` is `EVERY_FIELD` for the first `SHARED_MOST` words of a
  key. Further words have a row for each field, so that those of other fields cost a search nothing;
  `word.crowded` is 1 if a key of the word has such rows.
* `record` is narrow: the time limit of a grant probes it once per match. `document` holds the JSON
  of a record without its large fields; `document.big` says where those are:
  {field: [first chunk, chunks, chars, bytes, JSON type]}. `document.emitted_at` is the time of the
  record's first version, `document.changed` the times of later changes, oldest first:
  {field: emitted_at}. A grant sees the time of the last change among its own fields.
* `record.thread` and `record.place` are the values of the fields with the roles `thread` and
  `position`, so that the neighbours of a record in its conversation are found by index.
* `chunk` rows hold 16,384 code points of a value over 64 KiB.
* `cell` holds the scalar fields a manifest declares for filters, aggregations and relations:
  times as integer microseconds since 1970, booleans as 0 and 1.
* `change` is the log behind `changes_since`: `fields` is NULL for a new or deleted record, else
  the JSON list of the top-level fields that changed. Versions ascend through the whole store; a
  stream that replaces another one has the log of that with the same versions. See staging.py.
  `was_at` is the record's `at` before the change, `NO_TIME` if it had none or was not there; older
  versions of Rung did not store it. `left_at` is when the change was emitted, if it deleted the
  record or changed its `at`.
* `commit_log` has the epoch of each commit by the last version in it. Versions repeat after
  an older backup is restored, epochs do not.
* A stream whose name begins with NUL is hidden: it is being prepared, or waits to be erased.
* `stream.records` counts the live records, `scope.languages` lists what a field's texts are in.
* `blob` has the bytes that arrived in a connection, keyed by the SHA-256 that Rung computes.
  `blob_use` says which field of which record delivered them, and under which `blob_id`. Only an
  import with the bytes adds such a row; the data of a record that names a blob reaches nothing.
* `vector` has the vectors of texts, `vector_block` their codes in blocks; see engine/vectors.py.
  `hash` is that of a window's text, so that equal texts need one vector; `block` is NULL until the
  vector is in a block. `vectored` has the records whose first windows have vectors, with `whole`
  all windows. `vector_stream` counts them, and has the fields that they were read from.
* `parsed` has the digests of the bytes from which a document was parsed, so that an import need not
  parse them again. Every change of the document removes them.
* `source`, `source_part` and `source_record` are what sources keep; see sql/sources.py.
* `member` is a grant of a package: one of this store, or with `origin` one at another server, whose
  `token` is sealed; `held` is the JSON list of [stream, connection id, connector key, label].
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from service.records.sql.sources import SCRIPT as SOURCES
from service.records.writing.derived import NO_CURSOR

TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
SEQ_BITS = 32
SEQ_MASK = (1 << SEQ_BITS) - 1
STREAM_BLOCK = 64
CONNECTION_BLOCK = 16_384
#: The ordinal of a key that leads to its word in whatever fields have it, and how many words a key
#: has this way.
EVERY_FIELD = -1
SHARED_MOST = 500

#: The steps from one layout to the next. No release wrote the first four.
LAYOUTS = {
    number: Path(__file__)
    .with_name(f"layout_{number}.sql")
    .read_text(encoding="utf-8")
    .format(NO_CURSOR=NO_CURSOR, TOKENIZER=TOKENIZER)
    for number in (5, 6, 7)
}
NEWEST = max(LAYOUTS)
#: Also creates this in older stores. An older version of Rung, which does not know the table,
#: removes its rows as well when it changes documents.
PARSED = (
    """
CREATE TABLE IF NOT EXISTS parsed (
  digest INTEGER PRIMARY KEY,
  connection INTEGER NOT NULL REFERENCES connection(id),
  seq INTEGER NOT NULL REFERENCES document(seq) ON DELETE CASCADE
)
""",
    "CREATE INDEX IF NOT EXISTS parsed_seq ON parsed(seq)",
)

#: Long values by their passages, which a search that scores every match reads after each commit.
LONG_VALUES = """
CREATE INDEX IF NOT EXISTS value_long ON value(first_passage, passages)
WHERE first_passage IS NOT NULL
"""

#: The tables of vectors, which are created in older stores too.
VECTORS = Path(__file__).with_name("vectors.sql").read_text(encoding="utf-8")


def row_id(ordinal: int, seq: int) -> int:
    """The full-text row id of a field of a record."""
    return ordinal << SEQ_BITS | seq


def migrate(db: sqlite3.Connection) -> None:
    """Upgrades a store to the newest layout in one transaction. Never downgrades.

    The version is read under the lock, because two processes may open a new store at the same time.
    """
    if _version(db) == NEWEST:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = _version(db)
        for layout, script in LAYOUTS.items():
            for statement in _statements(script) if layout > found else ():
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {NEWEST}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def add_tables(db: sqlite3.Connection) -> None:
    """Creates the tables and indexes that a store of the newest layout may lack."""
    for statement in (*PARSED, LONG_VALUES, *_statements(VECTORS), *_statements(SOURCES)):
        db.execute(statement)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, which `executescript` would commit one by one."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
