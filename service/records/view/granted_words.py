"""The words of a grant: how many records contain each, and which words a query word may mean.

Nothing outside the grant is counted. Inside a limit, records are counted one by one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Final

from evidence.cached import cached_property
from evidence.language import REPAIRED_CHARS, is_one_edit, is_repairable, lead, shortened
from evidence.limits import BUDGETS
from evidence.question import Term, holds
from evidence.word_parts import is_joined, other_parts
from service.records.engine import Rows, Scope, Snapshot
from service.records.engine.later import Later, all_of, ready
from service.records.writing.languages import SAMPLE_CHARS, sure
from service.records.writing.vocabulary import ending_key, joined_key, key_of

#: {languages: the searched fields of the streams in them}. Each field is in one set.
Languages = dict[tuple[str, ...], frozenset[int]]
Counts = dict[str, int]
#: Newest rows inside a limit that show the languages there.
LANGUAGE_ROWS: Final = 200
#: Words that share a key with a misspelled one and are compared with it.
NEAR_MOST: Final = 500
#: Words that begin, and words that end, with a word and may be compounds of it; those inside a
#: limit, which are counted one by one.
COMPOUNDS_READ: Final = 500
LIMITED_COMPOUNDS: Final = 20


@dataclass(frozen=True)
class Vocabulary:
    """The words of a grant: `open` are fields of streams that it shows whole, `limited` others.

    `version` is the same only for the same grant and the same state of the store.
    """

    snapshot: Snapshot
    streams: tuple[int, ...]
    open: tuple[int, ...]
    limited: Scope
    languages: Languages
    version: object
    #: What `size` was before for the same grant and the same state of the store, if it was asked.
    cached_size: list[tuple[int, float]] = field(default_factory=list)

    @cached_property
    def size(self) -> Later[tuple[int, float]]:
        """(records, words in a record on average)."""
        if self.cached_size:
            return ready(self.cached_size[0])
        statistics = self.snapshot.statistics(self.streams, self.open)
        counts = all_of(map(self.snapshot.count, self.limited.selections))
        return statistics.then(lambda numbers: self._size(*numbers, sum(counts.get())))

    def _size(self, open_records: int, words: int, limited_records: int) -> tuple[int, float]:
        records = open_records + limited_records
        self.cached_size.append((records, words / records if records and words else 1.0))
        return self.cached_size[0]

    def like(self, among: frozenset[int], prefixes: Iterable[str]) -> Later[list[str]]:
        """The words of some fields that begin with one of some prefixes."""
        beginnings = sorted(prefixes)
        return self._of(lambda fields: self.snapshot.words_like(fields, beginnings), among)

    async def counts(self, words: Iterable[str], among: frozenset[int] | None = None) -> Counts:
        """How many records hold each of some words, in some fields; those in none are left out."""
        entries, fields = set(words), self.open
        limited = self.limited
        if among is not None:
            fields = _inside(fields, among)
            limited = replace(limited, fields=_inside(limited.fields, among))
        counts = self.snapshot.word_counts(fields, entries)
        if not limited.fields:
            return await counts
        candidates = self.snapshot.word_counts(limited.fields, entries)
        return await self._with_limited(await counts, await candidates, limited)

    async def near(self, word: str) -> Counts:
        """The counts of words that a word may be a misspelling of: those one edit away.

        None if too many share a key with it: then none is more likely to be meant.
        """
        if len(word) < REPAIRED_CHARS or not is_repairable(word):
            return {}
        lacking = set(filter(is_repairable, shortened(word)))
        keys = {key_of(word), *map(key_of, shortened(word))}
        candidates = await self._by_key(keys, NEAR_MOST)
        near = {candidate for candidate in candidates if is_one_edit(word, candidate)}
        return await self.counts(near | lacking) if len(candidates) < NEAR_MOST else {}

    def joined(self, word: str) -> Later[list[str]]:
        """The entries in parts that are a word, and those that are the same number."""
        entries = self._by_key([joined_key(word)], NEAR_MOST)
        return entries.then(lambda entries: [entry for entry in entries if is_joined(entry, word)])

    async def compounds(self, word: str, links: Iterable[str], among: frozenset[int]) -> Counts:
        """The counts of compounds of a word in some fields.

        The other part of a compound is a word there.
        """
        ending = self._by_key([ending_key(word)], COMPOUNDS_READ, among)
        begun = self._of(
            lambda fields: self.snapshot.words_like(fields, [word], COMPOUNDS_READ), among
        )
        longer = {*await ending, *await begun} - {word}
        parts = {compound: other_parts(compound, word, links) for compound in sorted(longer)}
        if self.limited.fields:
            parts = dict(islice(parts.items(), LIMITED_COMPOUNDS))
        counts = await self.counts({*parts, *chain(*parts.values())}, among)
        return {
            compound: counts[compound]
            for compound, partners in parts.items()
            if compound in counts and not counts.keys().isdisjoint(partners)
        }

    def most_beginning(self, prefix: str, scope: Scope) -> Later[int]:
        """As many words as `beginning` counts, or more; found sooner."""
        most = BUDGETS.prefix_words_read + 1
        ask = partial(self.snapshot.words_like, prefixes=[prefix], most=most)
        return self._of(ask, frozenset(scope.fields)).then(len)

    def beginning(self, prefix: str, scope: Scope) -> int:
        """How many words of the grant in the fields of a scope begin with a prefix.

        Counts no further than one more than a prefix may have, and inside a limit the words of the
        newest rows.
        """
        most = BUDGETS.prefix_words_read + 1
        among = frozenset(scope.fields)
        fields = _inside(self.open, among)
        words = {*self.snapshot.words_like(fields, [prefix], most).get()}
        words = {*self.snapshot.word_counts(fields, words).get()}
        fields = _inside(self.limited.fields, among)
        if fields and len(words) < most:
            inside = NewestTexts(self.snapshot, replace(self.limited, fields=fields)).words
            words |= {word for word in inside if word.startswith(prefix)}
        return len(words)

    def _by_key(
        self, keys: Iterable[int], most: int, among: frozenset[int] | None = None
    ) -> Later[list[str]]:
        return self._of(lambda fields: self.snapshot.words_by_key(fields, keys, most), among)

    def _of(
        self,
        ask: Callable[[Sequence[int]], Later[list[str]]],
        among: frozenset[int] | None = None,
    ) -> Later[list[str]]:
        """Words of the fields of both kinds, or of some of them."""
        both = (_inside(fields, among) for fields in (self.open, self.limited.fields))
        words = all_of(ask(fields) for fields in both if fields)
        return words.then(lambda words: list(chain.from_iterable(words)))

    async def _with_limited(
        self, counts: Counts, candidates: Iterable[str], limited: Scope
    ) -> Counts:
        """Counts with those inside a limit, which are counted row by row, the newest first."""
        words, total = list(candidates), dict(counts)
        numbers = await all_of(self.count(Term(words_in(word)), limited) for word in words)
        for word, number in zip(words, numbers):
            if number:
                total[word] = total.get(word, 0) + number
        return total

    def count(self, term: Term, scope: Scope) -> Later[int]:
        """How many records of a scope hold a term, counted no further than `word_matches`."""
        rows = self.snapshot.rows(scope, [[term]], BUDGETS.word_matches, newest=True)
        return rows.then(lambda rows: len(rows.records))


@lru_cache(maxsize=16)
def _inside(fields: tuple[int, ...], among: frozenset[int] | None) -> tuple[int, ...]:
    """Those of some fields that are among others; all with None."""
    return fields if among is None else tuple(field for field in fields if field in among)


class NewestTexts:
    """The folded texts of the newest rows of the index in a scope."""

    def __init__(self, snapshot: Snapshot, scope: Scope, most: int = BUDGETS.prefix_rows) -> None:
        self._rows = snapshot.rows(scope, [], most, newest=True).get()
        values = snapshot.texts(scope.fields, sorted(self._rows.records))
        passages = snapshot.passages(list(zip(*self._rows.passages)))
        self._short = {(seq, ordinal): text for seq, ordinal, _, text in values.get()}
        self._passages = passages.get()

    @property
    def texts(self) -> Iterator[tuple[int, str]]:
        """(ordinal, text) of each row."""
        for key in zip(*self._rows.short):
            yield key[1], self._short.get(key, "")
        for part, text in self._passages.items():
            yield part[1], text

    @property
    def words(self) -> set[str]:
        return {word for _, text in self.texts for word in text.split()}

    def holding(self, term: Term) -> Rows:
        """The rows that hold a term; there may be more."""
        short, passages = zip(*self._rows.short), zip(*self._rows.passages)
        values = [key for key in short if holds(self._short.get(key, ""), term)]
        parts = [key for key in passages if holds(self._passages.get(key, ""), term)]
        records, fields = [seq for seq, _ in values], [ordinal for _, ordinal in values]
        long = ([seq for seq, *_ in parts], [n for _, n, _ in parts], [at for *_, at in parts])
        return Rows((records, fields), long, cut=True)


def languages_inside(snapshot: Snapshot, limited: Scope) -> dict[int, tuple[str, ...]]:
    """The languages of the newest texts of each field inside a limit."""
    leads = defaultdict[int, Counter[str]](Counter)
    if limited.fields:
        for ordinal, text in NewestTexts(snapshot, limited, LANGUAGE_ROWS).texts:
            leads[ordinal].update(lead(text[:SAMPLE_CHARS]))
    return {ordinal: tuple(sure(words)) for ordinal, words in leads.items()}


def words_in(entry: str) -> tuple[str, ...]:
    """The words of an entry of the vocabulary: its parts, a pair of unspaced characters, or one."""
    pair = len(entry) == 2 and entry[0] >= "\u0e00" and entry[1] >= "\u0e00"
    return (entry[0], entry[1]) if pair else tuple(entry.split())
