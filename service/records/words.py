"""The words of a question as the grant's vocabulary has them: forms, corrections, how rare each is.

Everything here is counted over the whole grant, never narrowed by a request, so that all pages and
reads of one question use the same figures; and never over more than the grant.

A search without hits reports its absent words, words like them, and a call that has hits.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from evidence.hits import LIMITING
from evidence.language import REPAIRED_CHARS, REPAIRS_MAX, inflected, is_one_edit, is_repairable
from evidence.language import lead, shortened, umlauts
from evidence.limits import BUDGETS
from evidence.question import Question, Term, holds
from evidence.ranking import Group, idf
from service.ports import SearchQuery
from service.records.engine import Rows, Scope, Snapshot
from service.records.languages import SAMPLE_CHARS, sure
from service.records.vocabulary import key_of

#: Languages whose umlauts are also written out.
_UMLAUTS: Final = "de"
#: How often a word asks the store: for its forms and their counts, then for those of repairs.
LOOKS: Final = 6
#: {languages: the searched fields of the streams in them}. Each field is in one set.
Languages = dict[tuple[str, ...], frozenset[int]]
#: Newest rows inside a limit that show the languages there.
LANGUAGE_ROWS: Final = 200
#: Words that share a key with a misspelled one and are compared with it.
NEAR_MOST: Final = 500


@dataclass(frozen=True)
class Vocabulary:
    """The words of a grant: `open` are fields of streams that it shows whole, `limited` others."""

    snapshot: Snapshot
    streams: tuple[int, ...]
    open: tuple[int, ...]
    limited: Scope
    languages: Languages
    #: What `size` was before for the same grant and the same state of the store, if it was asked.
    known: list[tuple[int, float]] = field(default_factory=list)

    @property
    def size(self) -> tuple[int, float]:
        """(records, words in a record on average)."""
        if not self.known:
            records, words = self.snapshot.statistics(self.streams, self.open)
            for selection in self.limited.selections:
                records += self.snapshot.count(selection)
            self.known.append((records, words / records if records and words else 1.0))
        return self.known[0]

    def like(self, among: Container[int], prefixes: Iterable[str]) -> list[str]:
        """The words of some fields that begin with one of some prefixes."""
        wanted = sorted(prefixes)
        return self._of(lambda fields: self.snapshot.words_like(fields, wanted), among)

    def counts(self, words: Iterable[str], among: Container[int] | None = None) -> dict[str, int]:
        """How many records hold each of some words, in some fields; those in none are left out."""
        wanted, fields = set(words), self.open
        limited = self.limited
        if among is not None:
            fields = tuple(one for one in fields if one in among)
            there = tuple(one for one in limited.fields if one in among)
            limited = replace(limited, fields=there)
        found = self.snapshot.word_counts(fields, wanted)
        if limited.fields:
            return self._added(found, self.snapshot.word_counts(limited.fields, wanted), limited)
        return found

    def near(self, word: str) -> dict[str, int]:
        """The counts of words that a word may be a misspelling of: those one edit away.

        None if too many share a key with it: then none is more likely to be meant.
        """
        if len(word) < REPAIRED_CHARS or not is_repairable(word):
            return {}
        lacking = set(filter(is_repairable, shortened(word)))
        keys = {key_of(word), *map(key_of, shortened(word))}
        found = self._of(lambda fields: self.snapshot.words_by_key(fields, keys, NEAR_MOST))
        near = {other for other in found if is_one_edit(word, other)}
        return self.counts(near | lacking) if len(found) < NEAR_MOST else {}

    def beginning(self, prefix: str, scope: Scope) -> int:
        """How many words of the grant in the fields of a scope begin with a prefix.

        Counts no further than one more than a prefix may have, and inside a limit the words of the
        newest rows.
        """
        most = BUDGETS.prefix_words_read + 1
        among = set(scope.fields)
        fields = [ordinal for ordinal in self.open if ordinal in among]
        words = {*self.snapshot.words_like(fields, [prefix], most)}
        words = {*self.snapshot.word_counts(fields, words)}
        fields = [ordinal for ordinal in self.limited.fields if ordinal in among]
        if fields and len(words) < most:
            inside = NewestTexts(self.snapshot, replace(self.limited, fields=tuple(fields))).words
            words |= {word for word in inside if word.startswith(prefix)}
        return len(words)

    def _of(
        self, ask: Callable[[Sequence[int]], list[str]], among: Container[int] | None = None
    ) -> list[str]:
        """Words of the fields of both kinds, or of some of them."""
        both = (
            [one for one in fields if among is None or one in among]
            for fields in (self.open, self.limited.fields)
        )
        return [word for fields in both if fields for word in ask(fields)]

    def _added(
        self, found: dict[str, int], candidates: Iterable[str], limited: Scope
    ) -> dict[str, int]:
        """Counts with those inside a limit, which are counted row by row, the newest first."""
        total = dict(found)
        for word in candidates:
            number = self.count(Term(pair_or_word(word)), limited)
            if number:
                total[word] = total.get(word, 0) + number
        return total

    def count(self, term: Term, scope: Scope) -> int:
        """How many records of a scope hold a term, counted no further than `word_matches`."""
        rows = self.snapshot.rows(scope, [[term]], BUDGETS.word_matches, newest=True)
        return len(rows.records)


class NewestTexts:
    """The folded texts of the newest rows of the index in a scope."""

    def __init__(self, snapshot: Snapshot, scope: Scope, most: int = BUDGETS.prefix_rows) -> None:
        self._rows = snapshot.rows(scope, [], most, newest=True)
        values = snapshot.texts(scope.fields, sorted(self._rows.records))
        self._short = {(seq, ordinal): text for seq, ordinal, _, text in values}
        self._passages = snapshot.passages(list(zip(*self._rows.passages)))

    @property
    def texts(self) -> Iterator[tuple[int, str]]:
        """(ordinal, text) of each row."""
        for place in zip(*self._rows.short):
            yield place[1], self._short.get(place, "")
        for part, text in self._passages.items():
            yield part[1], text

    @property
    def words(self) -> set[str]:
        return {word for _, text in self.texts for word in text.split()}

    def holding(self, term: Term) -> Rows:
        """The rows that hold a term; there may be more."""
        short, passages = zip(*self._rows.short), zip(*self._rows.passages)
        found = [place for place in short if holds(self._short.get(place, ""), term)]
        parts = [place for place in passages if holds(self._passages.get(place, ""), term)]
        records, fields = [seq for seq, _ in found], [ordinal for _, ordinal in found]
        long = ([seq for seq, *_ in parts], [n for _, n, _ in parts], [at for *_, at in parts])
        return Rows((records, fields), long, cut=True)


def languages_inside(snapshot: Snapshot, limited: Scope) -> dict[int, tuple[str, ...]]:
    """The languages of the newest texts of each field inside a limit."""
    leads = defaultdict[int, Counter[str]](Counter)
    if limited.fields:
        for ordinal, text in NewestTexts(snapshot, limited, LANGUAGE_ROWS).texts:
            leads[ordinal].update(lead(text[:SAMPLE_CHARS]))
    return {ordinal: tuple(sure(found)) for ordinal, found in leads.items()}


def pair_or_word(text: str) -> tuple[str, ...]:
    """The words of an entry of the vocabulary: two of a pair of unspaced characters, or one."""
    pair = len(text) == 2 and text[0] >= "\u0e00" and text[1] >= "\u0e00"
    return (text[0], text[1]) if pair else (text,)


def groups_of(question: Question, vocabulary: Vocabulary, *, strict: bool) -> list[Group]:
    """The wanted words of a question with everything that counts as them; `strict`: no repair.

    A word that an earlier one stands for is left out.
    """
    found: list[Group] = []
    taken: set[tuple[str, ...]] = set()
    asks = (partial(_group, word, vocabulary, strict) for word in question.words)
    vocabulary.snapshot.ahead(chain([lambda: vocabulary.size], asks), turns=LOOKS)
    for word in question.words:
        if word.words in taken:
            continue
        group = _group(word, vocabulary, strict)
        taken.update(term.words for term in group.spellings)
        found.append(group)
    return found


def _group(word: Term, vocabulary: Vocabulary, strict: bool) -> Group:
    spelled = "".join(word.words)
    counts = vocabulary.counts([spelled]) if len(word.words) > 1 else _forms(spelled, vocabulary)
    repaired = False
    if not counts and not strict and len(word.words) == 1:
        counts, repaired = _repairs(spelled, vocabulary), True
    records, _ = vocabulary.size
    number = min(records, sum(counts.values()))
    others = sorted(counts.keys() - {spelled}, key=lambda one: (-counts[one], one))
    forms = tuple(Term((one,)) for one in others)
    return Group(word, forms, bool(forms) and repaired, number, idf(records, number))


def _forms(word: str, vocabulary: Vocabulary) -> dict[str, int]:
    """The word, its inflected forms and other spellings that occur, with their counts.

    A form counts if at least half of the records with it are in languages that it is a form in: a
    word of another language is not matched by accident.
    """
    asks = {
        fields: partial(_forms_in, word, languages, partial(vocabulary.like, fields))
        for languages, fields in vocabulary.languages.items()
    }
    vocabulary.snapshot.ahead(asks.values())
    forms = {fields: ask() for fields, ask in asks.items()}
    counts = vocabulary.counts({word}.union(*forms.values()))
    doubtful = {form for form in counts if any(form not in some for some in forms.values())}
    if doubtful := doubtful - {word}:
        inside = Counter[str]()
        for fields, some in forms.items():
            inside.update(vocabulary.counts(some & doubtful, fields))
        return {form: n for form, n in counts.items() if form == word or 2 * inside[form] >= n}
    return counts


def _forms_in(
    word: str, languages: tuple[str, ...], like: Callable[[Iterable[str]], list[str]]
) -> set[str]:
    """The forms of a word and of its other spellings in some languages."""
    spelled = {word, *(umlauts(word) if _UMLAUTS in languages else ())}
    return spelled | inflected(spelled, languages, like)


def _repairs(word: str, vocabulary: Vocabulary) -> dict[str, int]:
    """The most frequent words one edit away that occur, four at most, with their forms."""
    near = vocabulary.near(word)
    best = sorted(near, key=lambda one: (-near[one], one))[:REPAIRS_MAX]
    found: dict[str, int] = {}
    for one in best:
        found |= _forms(one, vocabulary)
    return found


#: Similar words that are named for each absent one.
NEAREST_MAX = 3
#: Further searches that are tried for one that has hits.
RETRIES_MAX = 5


def absent(wanted: list[Group]) -> list[str]:
    """The words that occur nowhere in the grant."""
    return [group.label for group in wanted if not group.count]


def nearest(wanted: list[Group], vocabulary: Vocabulary) -> dict[str, list[str]]:
    """{absent word: words of the grant one edit away}, the most frequent first."""
    found = {}
    for group in wanted:
        word, *others = group.word.words
        counts = {} if group.count or others else vocabulary.near(word)
        near = sorted(counts, key=lambda one: (-counts[one], one))[:NEAREST_MAX]
        if near:
            found[group.label] = near
    return found


def retries(question: Question, wanted: list[Group], *, every: bool) -> Iterator[dict[str, Any]]:
    """Arguments that ask for less, in place of those without hits; the nearest come first."""
    present = [group.word.typed for group in wanted if group.count]
    excluded = [part.term.typed for part in question.required if part.term.excluded]
    required = [part.term.typed for part in question.required if not part.term.excluded]
    mode = {"words": "any"} if every else {}
    if every and present:
        yield mode
    if wanted and required:
        yield _asking(part.term.typed for part in question.required)
    if present and required:
        yield _asking([*present, *excluded]) | mode
    if len(required) > 1:
        yield from (_asking([*excluded, part]) for part in required)
    if excluded and (present or required):
        yield _asking([*present, *required]) | mode
        if present and required:
            yield _asking(present) | mode


def repaired(question: Question, wanted: list[Group]) -> str | None:
    """The query with every corrected word as it occurs; None if no word was corrected."""
    if not any(group.repaired for group in wanted):
        return None
    words = [
        " ".join(group.forms[0].words) if group.repaired else group.word.typed for group in wanted
    ]
    return str(_asking([*words, *(part.term.typed for part in question.required)])["query"])


def wider(request: SearchQuery) -> Iterator[dict[str, Any]]:
    """Arguments that search more of the grant: without one of those that limit it, then all.

    None leaves an argument out. A filter is for one stream, so it goes together with `streams`.
    """
    given = [name for name in LIMITING if getattr(request, name)]
    steps = (("filter",), ("since", "until"), ("filter", "streams"), ("connection_id",), LIMITING)
    found = [{name: None for name in step if name in given} for step in steps]
    yield from (one for number, one in enumerate(found) if one and one not in found[:number])


def changed(request: SearchQuery, changes: dict[str, Any]) -> SearchQuery:
    """A request with some arguments changed; None stands for the default."""
    defaults = SearchQuery(request.query)
    values = {
        name: getattr(defaults, name) if value is None else value for name, value in changes.items()
    }
    return replace(request, **values)


def _asking(parts: Iterable[str]) -> dict[str, Any]:
    # A quote that is not closed runs to the end; it is the last part of a question, and here.
    return {"query": " ".join(dict.fromkeys(parts))}
