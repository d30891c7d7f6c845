"""The searches that ours is compared with: SQLite FTS5 with `porter`, bm25s with Snowball stems.

Each searches the documents of a group for any word of a question, without stop words, and ranks
them by BM25. They are a few lines of code, as most people would write them.
"""

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

import bm25s
import Stemmer
from bm25s.tokenization import Tokenizer

from quality.collections import Collection, Document, Query, words_of
from quality.metrics import DEPTH

WORD = re.compile(r"\w+")
#: The longer of the two English lists in bm25s. It comes from NLTK, like the other lists.
STOP_LISTS = {"en": "en_plus"}


def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language; none if bm25s has no list for it."""
    try:
        return frozenset(Tokenizer(stopwords=STOP_LISTS.get(language, language)).stopwords)
    except ValueError:
        return frozenset()


def stemmer(language: str) -> Stemmer.Stemmer | None:
    """Snowball's stemmer of a language, if there is one."""
    try:
        return Stemmer.Stemmer(language)
    except KeyError:
        return None


class Fts5:
    """A table for each group, tokenized by `porter unicode61`; words joined by OR."""

    def __init__(self, collection: Collection) -> None:
        groups = collection.groups
        self._tables = {group: self._table(documents) for group, documents in groups.items()}
        self._stop = {group: stop_words(collection.language(group)) for group in groups}

    def ask(self, query: Query) -> list[str]:
        """The ids of the best ten documents."""
        words = list(dict.fromkeys(WORD.findall(query.text.lower())))
        kept = [word for word in words if word not in self._stop[query.group]] or words
        found = self._tables[query.group].execute(
            f"SELECT id FROM fts WHERE fts MATCH ? ORDER BY bm25(fts) LIMIT {DEPTH}",
            (" OR ".join(f'"{word}"' for word in kept),),
        )
        return [row[0] for row in found]

    def count(self, group: str, word: str) -> int:
        """The number of a group's documents that contain a word or its forms."""
        rows = self._tables[group].execute(
            "SELECT count(*) FROM fts WHERE fts MATCH ?", (f'"{word}"',)
        )
        return int(rows.fetchone()[0])

    @staticmethod
    def _table(documents: Sequence[Document]) -> sqlite3.Connection:
        db = sqlite3.connect(":memory:")
        db.execute(
            "CREATE VIRTUAL TABLE fts USING fts5 "
            "(id UNINDEXED, text, tokenize = 'porter unicode61')"
        )
        rows = ((document["id"], words_of(document)) for document in documents)
        db.executemany("INSERT INTO fts VALUES (?, ?)", rows)
        return db


class Bm25s:
    """An index for each group, with the stems and the stop words of its language."""

    def __init__(self, collection: Collection) -> None:
        self._documents = collection.groups
        self._indexes: dict[str, tuple[Tokenizer, Any]] = {}
        for group, documents in collection.groups.items():
            language = collection.language(group)
            stop = list(stop_words(language))
            tokenizer = Tokenizer(stopwords=stop, stemmer=stemmer(language))
            index = bm25s.BM25()
            texts = [words_of(document) for document in documents]
            index.index(tokenizer.tokenize(texts, show_progress=False), show_progress=False)
            self._indexes[group] = tokenizer, index

    def ask(self, query: Query) -> list[str]:
        """The ids of the best ten documents."""
        tokenizer, index = self._indexes[query.group]
        documents = self._documents[query.group]
        (tokens,) = tokenizer.tokenize([query.text], update_vocab=False, show_progress=False)
        if not len(tokens):
            return []
        depth = min(DEPTH, len(documents))
        rows, scores = index.retrieve([tokens], k=depth, show_progress=False)
        return [documents[int(row)]["id"] for row, score in zip(rows[0], scores[0]) if score > 0]
