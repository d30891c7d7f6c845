"""Matches query words to the snapshot's words: inflected forms and spelling corrections.

Forms are words of the index with the same Snowball stem, in the languages of the papers. A word of
five letters or more that occurs in no form also matches the words one edit away.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from string import ascii_lowercase

import orjson

from evidence.fold import fold
from evidence.language import (
    REPAIRED_CHARS,
    REPAIRS_MAX,
    detect,
    edits,
    inflected,
    umlauts,
)
from evidence.limits import BUDGETS
from evidence.query import Term
from evidence.question import is_unspaced
from evidence.ranking import Group
from service.papers.query import PaperQuery
from service.lru import LruCache
from service.papers.snapshot import Snapshot
from service.papers.vocabulary import Vocabulary, tokens_table, vocabulary

#: The forms of one word to search, the most frequent first.
FORMS_MAX = 24
#: Words whose forms begin with fewer letters have none: too many words share the prefix.
BEGIN_CHARS = 3
#: Papers whose language is detected. Their ids are hashes, so the first ones are a fair sample.
SAMPLED_PAPERS = 500
WORDS_KEPT = 4_096
_ENGLISH = "en"
_BLOCK = 128  # code points of the part of Unicode that holds one alphabet
_LAST = chr(0x10FFFF)


def languages(snapshot: Snapshot) -> tuple[str, ...]:
    """The languages of the papers, most frequent first. English is always among them."""

    def read() -> tuple[str, ...]:
        with snapshot.connection() as db:
            rows = db.execute(
                "SELECT title || ' ' || summary_preview FROM paper ORDER BY paper_id LIMIT ?",
                (SAMPLED_PAPERS,),
            )
            detected = detect(text for (text,) in rows)
        return detected if _ENGLISH in detected else (*detected, _ENGLISH)

    return snapshot.once("languages", read)


def groups(snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery) -> list[Group]:
    """A group for each term of a query, without counts. Required terms have no other forms."""
    lexicon = _Lexicon(db, vocabulary(snapshot), languages(snapshot))
    recent = snapshot.once("forms", lambda: LruCache[str, Group](WORDS_KEPT))
    strict = {*query.required, *query.titles}
    listed = []
    for term in query.terms:
        if term in strict or len(term.words) > 1 or not term.words[0].isalpha():
            listed.append(Group(term))
            continue
        group = recent.once(term.words[0], lambda: lexicon.group(term))  # noqa: B023
        listed.append(replace(group, word=term))
    return listed


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """The words of the index."""

    db: sqlite3.Connection
    tokens: Vocabulary
    languages: tuple[str, ...]

    def group(self, term: Term) -> Group:
        """A word with its forms, or with its corrections if it occurs in none."""
        word = term.words[0]
        if is_unspaced(word):
            return Group(term)
        bases = [word, *self._known(umlauts(word))]
        known, repaired = self._known([word]) | self._forms(bases), False
        if not known and len(word) >= REPAIRED_CHARS:
            near = self._known(edits(word, _alphabet(word)))
            bases = _frequent(near, REPAIRS_MAX)
            known, repaired = self._forms(bases), bool(near)
        known.pop(word, None)
        forms = _frequent(known, FORMS_MAX)
        if repaired:  # the corrections before their forms
            forms = list(dict.fromkeys((*bases, *forms)))[:FORMS_MAX]
        return Group(term, tuple(Term((form,)) for form in forms), repaired)

    def _forms(self, words: Iterable[str]) -> dict[str, int]:
        """The words with the stem of one of these, in any of the languages, and their counts."""
        counts: dict[str, int] = {}

        def beginning(prefixes: list[str]) -> dict[str, int]:
            for prefix in prefixes:
                counts.update(self._beginning(prefix))
            return counts

        words = list(words)
        forms = inflected(words, self.languages, beginning, least=BEGIN_CHARS)
        return self._known(words) | {word: counts[word] for word in forms}

    def _known(self, words: Iterable[str]) -> dict[str, int]:
        """The words among these that occur, and their numbers of papers."""
        wanted = list(words)
        rows = self.db.execute(
            f"SELECT term, doc FROM json_each(?) CROSS JOIN {tokens_table(self.db)} "
            "ON term = json_each.value",
            (orjson.dumps(wanted).decode(),),
        )
        return {word: 1 for word in wanted if word in self.tokens.tokens} | dict(rows)

    def _beginning(self, begin: str) -> dict[str, int]:
        """The words with this prefix, and their numbers of papers."""
        rows = self.db.execute(
            f"SELECT term, doc FROM {tokens_table(self.db)} WHERE term >= ? AND term < ? LIMIT ?",
            (begin, begin + _LAST, BUDGETS.prefix_words_read),
        )
        counts = {word: 1 for word in self.tokens.beginning(begin)}
        return counts | {token: count for token, count in rows if token in fold(token).split()}


def _frequent(known: dict[str, int], most: int) -> list[str]:
    return sorted(known, key=lambda word: (-known[word], word))[:most]


@lru_cache(maxsize=256)
def _alphabet(word: str) -> str:
    """The letters that a correction of a word may bring in."""
    if word.isascii():
        return ascii_lowercase
    start = max(map(ord, word)) // _BLOCK * _BLOCK
    return "".join(
        char for char in map(chr, range(start, start + _BLOCK)) if fold(char).split() == [char]
    )
