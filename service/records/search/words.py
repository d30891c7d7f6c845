"""A question's words in the grant's vocabulary: forms, corrections, and how rare each word is.

Everything here is counted over the whole grant, never narrowed by a request, so that all pages and
reads of one question use the same figures; and never over more than the grant.

A search without hits reports its absent words, words like them, and a call that has hits.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from evidence.language import REPAIRS_MAX, Inflections, umlauts
from evidence.limits import BUDGETS
from evidence.question import Question, Term
from evidence.ranking import Group, idf
from evidence.word_parts import PART_CHARS, linking, splits
from service.lru import LruCache
from service.ports import NARROWING, SearchQuery
from service.records.engine.later import Later, gather, run
from service.records.view.granted_words import Vocabulary, words_in

#: Languages whose umlauts are also written out.
_UMLAUTS: Final = "de"
#: The most compounds of one word.
COMPOUNDS_MAX: Final = 20
#: The groups of recent questions; further pages, reads and retries have the same words.
_recent = LruCache[tuple[Hashable, ...], Group](BUDGETS.words_cached)


def groups_of(question: Question, vocabulary: Vocabulary, *, strict: bool) -> list[Group]:
    """The wanted words of a question with everything that counts as them; `strict`: no repair.

    A word that an earlier one stands for is left out.
    """
    groups: list[Group] = []
    taken: set[tuple[str, ...]] = set()
    all_groups = run(gather(_group(word, vocabulary, strict) for word in question.words))
    for word, group in zip(question.words, all_groups):
        if word.words in taken:
            continue
        longest = len("".join(word.words)) + PART_CHARS  # a compound is another word
        taken.update(term.words for term in group.spellings if len("".join(term.words)) < longest)
        groups.append(group)
    return groups


async def _group(word: Term, vocabulary: Vocabulary, strict: bool) -> Group:
    key = vocabulary.version, word.words, word.typed, word.joined, strict
    group = _recent.get(key)
    if group is None:
        group = await _counted(word, vocabulary, strict)
        _recent.put(key, group)
    return group


async def _counted(word: Term, vocabulary: Vocabulary, strict: bool) -> Group:
    text, size = "".join(word.words), vocabulary.size
    repaired = False
    if len(word.words) > 1:
        counts = await vocabulary.counts([text])
    elif strict:
        counts = await _forms(text, vocabulary, word.joined)
    else:
        counts, compounds = await gather(
            (_forms(text, vocabulary, word.joined), _compounds(text, vocabulary))
        )
        if not counts and not compounds:
            counts, repaired = await _repairs(text, vocabulary), True
            compounds = {} if counts else await _parts(text, vocabulary)
        counts = compounds | counts
    records, _ = await size
    number = min(records, sum(counts.values()))
    variants = sorted(counts.keys() - {text}, key=lambda form: (-counts[form], form))
    forms = tuple(Term(words_in(form)) for form in variants)
    return Group(word, forms, bool(forms) and repaired, number, idf(records, number))


async def _forms(word: str, vocabulary: Vocabulary, together: str | None = None) -> dict[str, int]:
    """The word, its inflected forms and other spellings that occur, with their counts.

    `together` is the word or the number that a hyphen or a separator makes it a part of, or empty.
    With None, entries in parts are no forms.

    A form counts if at least half of the records with it are in languages that it is a form in: a
    word of another language is not matched by accident.
    """
    words = [word, *filter(None, [together])]
    promises = {
        fields: _forms_in(words, languages, vocabulary, fields)
        for languages, fields in vocabulary.languages.items()
    }
    alike = [vocabulary.joined(spelling) for spelling in words if together is not None]
    forms = {fields: await promise for fields, promise in promises.items()}
    same = {*words, *chain.from_iterable([await entries for entries in alike])}
    counts = await vocabulary.counts(same.union(*forms.values()))
    doubtful = {form for form in counts if any(form not in some for some in forms.values())}
    if doubtful := doubtful - same:
        inside = Counter[str]()
        for there in await gather(
            vocabulary.counts(some & doubtful, fields) for fields, some in forms.items()
        ):
            inside.update(there)
        return {form: n for form, n in counts.items() if form in same or 2 * inside[form] >= n}
    return counts


def _forms_in(
    words: Iterable[str],
    languages: tuple[str, ...],
    vocabulary: Vocabulary,
    fields: frozenset[int],
) -> Later[set[str]]:
    """The forms of words and of their other spellings in some languages."""
    spellings = {*words}.union(*(map(umlauts, words) if _UMLAUTS in languages else ()))
    inflections = Inflections(spellings, languages)
    near = vocabulary.like(fields, inflections.prefixes())
    return near.then(lambda near: spellings | inflections.among(near))


async def _compounds(word: str, vocabulary: Vocabulary) -> dict[str, int]:
    """The counts of the most frequent compounds that begin or end with a word."""
    counts = Counter[str]()
    for compounds in await gather(
        vocabulary.compounds(word, links, fields)
        for languages, fields in vocabulary.languages.items()
        if (links := linking(languages)) and len(word) >= PART_CHARS and word.isalpha()
    ):
        counts.update(compounds)
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:COMPOUNDS_MAX])


async def _parts(compound: str, vocabulary: Vocabulary) -> dict[str, int]:
    """The counts of the two parts of a compound that occurs nowhere."""
    for languages, fields in vocabulary.languages.items():
        pairs = list(splits(compound, linking(languages)))
        counts = await vocabulary.counts(chain.from_iterable(pairs), fields) if pairs else {}
        for pair in sorted(pairs, key=lambda parts: -sum(counts.get(part, 0) for part in parts)):
            if counts.keys() >= {*pair}:
                return {part: counts[part] for part in pair}
    return {}


async def _repairs(word: str, vocabulary: Vocabulary) -> dict[str, int]:
    """The most frequent words one edit away that occur, four at most, with their forms."""
    near = await vocabulary.near(word)
    best = sorted(near, key=lambda spelling: (-near[spelling], spelling))[:REPAIRS_MAX]
    counts: dict[str, int] = {}
    for forms in await gather(_forms(spelling, vocabulary) for spelling in best):
        counts |= forms
    return counts


#: Similar words that are named for each absent one.
NEAREST_MAX = 3
#: Further searches that are tried for one that has hits.
RETRIES_MAX = 5


def absent(groups: list[Group]) -> list[str]:
    """The words that occur nowhere in the grant."""
    return [group.label for group in groups if not group.count]


def nearest(groups: list[Group], vocabulary: Vocabulary) -> dict[str, list[str]]:
    """{absent word: words of the grant one edit away}, the most frequent first."""
    nearest_words = {}
    for group in groups:
        word, *rest = group.word.words
        counts = {} if group.count or rest else run(vocabulary.near(word))
        near = sorted(counts, key=lambda near_word: (-counts[near_word], near_word))[:NEAREST_MAX]
        if near:
            nearest_words[group.label] = near
    return nearest_words


def retries(question: Question, groups: list[Group], *, every: bool) -> Iterator[dict[str, Any]]:
    """Arguments that ask for less, in place of those without hits; the nearest come first."""
    present = [group.word.typed for group in groups if group.count]
    excluded = [part.term.typed for part in question.required if part.term.excluded]
    required = [part.term.typed for part in question.required if not part.term.excluded]
    mode = {"words": "any"} if every else {}
    if every and present:
        yield mode
    if groups and required:
        yield _asking(part.term.typed for part in question.required)
    if present and required:
        yield _asking([*present, *excluded]) | mode
    if len(required) > 1:
        yield from (_asking([*excluded, part]) for part in required)
    if excluded and (present or required):
        yield _asking([*present, *required]) | mode
        if present and required:
            yield _asking(present) | mode


def repaired(question: Question, groups: list[Group]) -> str | None:
    """The query with every corrected word as it occurs; None if no word was corrected."""
    if not any(group.repaired for group in groups):
        return None
    words = [
        " ".join(group.forms[0].words) if group.repaired else group.word.typed for group in groups
    ]
    return str(_asking([*words, *(part.term.typed for part in question.required)])["query"])


def wider(request: SearchQuery) -> Iterator[dict[str, Any]]:
    """Arguments that search more of the grant: without some of those that narrow it, then all.

    None leaves an argument out.
    """
    limits = [name for name in NARROWING if name in request.identity()]
    attempts = sorted({attempt for turns in NARROWING.values() for attempt in turns})
    options = [{n: None for n in limits if attempt in NARROWING[n]} for attempt in attempts]
    options.append(dict.fromkeys(limits))
    yield from (
        changes
        for number, changes in enumerate(options)
        if changes and changes not in options[:number]
    )


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
