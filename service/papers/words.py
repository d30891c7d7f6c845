"""Matches query words to words in the full-text index: spellings, forms and corrections.

The index keeps letters that our fold does not (`łukasz`, `русский`), and has adjacent Latin and CJK
letters in one token (`与transformer之`). Such tokens are collected once; a term is then searched in
all of its spellings. Forms are words of the index with the same Snowball stem, in the languages of
the papers. A word of five letters or more that occurs in no form also matches the words one edit
away.
"""

import sqlite3
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from string import ascii_lowercase

import orjson

from evidence.fold import fold
from evidence.language import REPAIRED_CHARS, REPAIRS_MAX, Inflections, detect, edits, umlauts
from evidence.limits import BUDGETS
from evidence.question import Term, is_unspaced
from evidence.ranking import Group
from service.lru import LruCache
from service.papers.query import PaperQuery
from service.papers.snapshot import Snapshot, once

SPELLINGS_MAX = 64
"""The most spellings searched for one term; each costs a lookup, and the rarest are dropped."""

STARRED_MAX = 8
"""The most spellings of one term that may continue: each scans all tokens with that beginning."""

TOKENS_MAX = 2_000
"""The most tokens kept for one word, the most frequent ones, and the most words read for one
prefix."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens that differ from their fold, by each word in them, the most frequent first."""

    tokens: dict[str, list[str]]
    words: list[str]  # the keys of `tokens`, sorted

    def expression(self, term: Term, *, fused: bool) -> str:
        """The FTS5 expression of a term; uses tokens of several words only if `fused`."""
        last, _ = _plain(term, _last(term))
        star = term.prefix or (fused and self._goes_on(term))
        plain: list[str] = []
        starred: list[str] = []
        for row in islice(self._rows(term, star, fused), SPELLINGS_MAX):
            phrase = f'"{" ".join(row)}"'
            if star and row[-1] == last:
                starred.append(f"{phrase} *")
            else:
                plain.append(phrase)
        plain = starred[:STARRED_MAX] + plain
        return f"({' OR '.join(plain)})" if len(plain) > 1 else plain[0]

    def _rows(self, term: Term, star: bool, fused: bool) -> Iterator[tuple[str, ...]]:
        """Every sequence of tokens that matches the term, plain ones first."""
        started: list[tuple[tuple[str, ...], int]] = [((), 0)]
        while started:
            row, start = started.pop()
            if start == len(term.words):
                yield row
                continue
            tokens = list(self._tokens_at(term, start, star, fused))
            started += [((*row, token), start + read) for token, read in reversed(tokens)]

    def _tokens_at(
        self, term: Term, start: int, star: bool, fused: bool
    ) -> Iterator[tuple[str, int]]:
        """Tokens that can match the words from `start` on, with the number of words each covers."""
        plain, plain_read = _plain(term, start)
        yield plain, plain_read
        last = start + plain_read == len(term.words)
        for token in self._holding(term.words[start], term.prefix and last):
            if token == plain or (star and last and token.startswith(plain)):
                continue
            words = fold(token).split()
            if not fused and sum(map(_is_base, words)) > 1:
                continue
            if read := _words_read(words, term, start):
                yield token, read

    def beginning(self, begin: str) -> Iterator[str]:
        """The words in these tokens with this prefix, at most `TOKENS_MAX`."""
        first = bisect_left(self.words, begin)
        for word in islice(self.words, first, first + TOKENS_MAX):
            if not word.startswith(begin):
                return
            yield word

    def _holding(self, word: str, prefix: bool) -> Iterator[str]:
        """The tokens that contain a word or a word with this prefix."""
        if not prefix:
            yield from self.tokens.get(word, ())
            return
        for longer in self.beginning(word):
            yield from self.tokens[longer]

    def _goes_on(self, term: Term) -> bool:
        """True if the term ends with a CJK character that longer tokens begin with."""
        last = _last(term)
        if not fold(term.words[last]).startswith(" "):
            return False
        plain, _ = _plain(term, last)
        tokens = self.tokens.get(term.words[last], ())
        return any(token.startswith(plain) and token != plain for token in tokens)


def matches_row(db: sqlite3.Connection, expression: str, rowid: int) -> bool:
    """True if a full-text row matches an FTS5 expression."""
    query = "SELECT 1 FROM paper_fts WHERE paper_fts MATCH ? AND rowid = ?"
    return db.execute(query, (expression, rowid)).fetchone() is not None


def tokens_table(db: sqlite3.Connection) -> str:
    """The table of the tokens of the index: `term`, and `doc`, the number of rows that have it."""
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.paper_words "
        "USING fts5vocab(main, paper_fts, row)"
    )
    return "temp.paper_words"


@once
def vocabulary(snapshot: Snapshot) -> Vocabulary:
    """The vocabulary of a generation, read once."""
    with snapshot.connection() as db:
        rows = db.execute(f"SELECT term, doc FROM {tokens_table(db)}")
        wide = [(papers, token) for token, papers in rows if not token.isascii()]
    wide.sort(key=lambda entry: (-entry[0], entry[1]))
    tokens: dict[str, list[str]] = {}
    for _, token in wide:
        words = fold(token).split()
        if words == [token]:
            continue
        for word in dict.fromkeys(words):
            word_tokens = tokens.setdefault(word, [])
            if len(word_tokens) < TOKENS_MAX:
                word_tokens.append(token)
    return Vocabulary(tokens, sorted(tokens))


def _is_base(word: str) -> bool:
    """True if a word has more than marks, such as a vowel sign or the voicing of a kana."""
    return any(map(str.isalnum, word))


def _last(term: Term) -> int:
    """The span of the last word of a term, without trailing punctuation."""
    return max((position for position, word in enumerate(term.words) if _is_base(word)), default=0)


def _plain(term: Term, start: int) -> tuple[str, int]:
    """The word at `start` with the marks that follow, as in the index, and their number."""
    end = start + 1
    while end < len(term.words) and not _is_base(term.words[end]):
        end += 1
    return unicodedata.normalize("NFC", "".join(term.words[start:end])), end - start


def _words_read(token_words: list[str], term: Term, start: int) -> int:
    """The number of words of the term from `start` on that a token covers; 0 if it does not fit.

    Only the first token may begin before the term, and only the last may continue after it.
    """
    for skipped in range(len(token_words) if start == 0 else 1):
        read = min(len(token_words) - skipped, len(term.words) - start)
        after = token_words[skipped + read : skipped + read + 1]
        if after and not _is_base(after[0]):
            continue  # half of a character, such as か of が
        ends = start + read == len(term.words)
        term_words = term.words[start : start + read]
        covered = token_words[skipped : skipped + read]
        if term.prefix and ends:
            if covered[:-1] == list(term_words[:-1]) and covered[-1].startswith(term_words[-1]):
                return read
        elif covered == list(term_words):
            return read
    return 0


#: The forms of one word to search, the most frequent first.
FORMS_MAX = 24
#: Words whose forms share fewer letters have no forms: too many words have the prefix.
BEGIN_CHARS = 3
#: The number of papers whose language is detected. Ids are hashes, so the first ones are a fair
#: sample.
SAMPLED_PAPERS = 500
WORDS_CACHED = 4_096
_ENGLISH = "en"
_BLOCK = 128  # code points of a part of Unicode with one alphabet
_LAST = chr(0x10FFFF)


@once
def languages(snapshot: Snapshot) -> tuple[str, ...]:
    """The languages of the papers, most frequent first. They always include English."""
    with snapshot.connection() as db:
        rows = db.execute(
            "SELECT title || ' ' || summary_preview FROM paper ORDER BY paper_id LIMIT ?",
            (SAMPLED_PAPERS,),
        )
        detected = detect(text for (text,) in rows)
    return detected if _ENGLISH in detected else (*detected, _ENGLISH)


def groups(snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery) -> list[Group]:
    """A group for each term of a query, without counts. Required terms have only one form."""
    lexicon = _Lexicon(db, vocabulary(snapshot), languages(snapshot))
    recent = snapshot.once("forms", lambda: LruCache[str, Group](WORDS_CACHED))
    strict = {*query.required, *query.titles}
    term_groups = []
    for term in query.terms:
        if term in strict or len(term.words) > 1 or not term.words[0].isalpha():
            term_groups.append(Group(term))
            continue
        group = recent.once(term.words[0], lambda: lexicon.group(term))  # noqa: B023
        term_groups.append(replace(group, word=term))
    return term_groups


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """The words of the index."""

    db: sqlite3.Connection
    tokens: Vocabulary
    languages: tuple[str, ...]

    def group(self, term: Term) -> Group:
        """A word with its forms, or with its corrections if no form occurs."""
        word = term.words[0]
        if is_unspaced(word):
            return Group(term)
        bases = [word, *self._occurring(umlauts(word))]
        counts, repaired = self._occurring([word]) | self._forms(bases), False
        if not counts and len(word) >= REPAIRED_CHARS:
            near = self._occurring(edits(word, _alphabet(word)))
            bases = _frequent(near, REPAIRS_MAX)
            counts, repaired = self._forms(bases), bool(near)
        counts.pop(word, None)
        forms = _frequent(counts, FORMS_MAX)
        if repaired:  # the corrections before their forms
            forms = list(dict.fromkeys((*bases, *forms)))[:FORMS_MAX]
        return Group(term, tuple(Term((form,)) for form in forms), repaired)

    def _forms(self, words: Iterable[str]) -> dict[str, int]:
        """The words with the stem of one of these, in any of the languages, and their counts."""
        words, counts = list(words), dict[str, int]()
        inflections = Inflections(words, self.languages)
        for prefix in inflections.prefixes(BEGIN_CHARS):
            counts.update(self._beginning(prefix))
        forms = inflections.among(counts)
        return self._occurring(words) | {word: counts[word] for word in forms}

    def _occurring(self, words: Iterable[str]) -> dict[str, int]:
        """The words among these that occur, and their numbers of papers."""
        candidates = list(words)
        rows = self.db.execute(
            f"SELECT term, doc FROM json_each(?) CROSS JOIN {tokens_table(self.db)} "
            "ON term = json_each.value",
            (orjson.dumps(candidates).decode(),),
        )
        return {word: 1 for word in candidates if word in self.tokens.tokens} | dict(rows)

    def _beginning(self, begin: str) -> dict[str, int]:
        """The words with this prefix, and their numbers of papers."""
        rows = self.db.execute(
            f"SELECT term, doc FROM {tokens_table(self.db)} WHERE term >= ? AND term < ? LIMIT ?",
            (begin, begin + _LAST, BUDGETS.prefix_words_read),
        )
        counts = {word: 1 for word in self.tokens.beginning(begin)}
        return counts | {token: count for token, count in rows if token in fold(token).split()}


def _frequent(counts: dict[str, int], most: int) -> list[str]:
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


@lru_cache(maxsize=256)
def _alphabet(word: str) -> str:
    """The letters that a correction of a word may add."""
    if word.isascii():
        return ascii_lowercase
    start = max(map(ord, word)) // _BLOCK * _BLOCK
    return "".join(
        char for char in map(chr, range(start, start + _BLOCK)) if fold(char).split() == [char]
    )
