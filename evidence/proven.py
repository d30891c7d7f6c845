"""Computes hits' coverage and best passages from proven windows, in the same way for all sources.

Sources report coverage by their own statistics or not at all. If a source reports none, every
wanted word of the question counts the same, and words that no window shows do not count.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from evidence.fold import fold
from evidence.hits import Hit
from evidence.language import detect, stems
from evidence.find import passages
from evidence.question import Question, Term, parse, spelling
from evidence.ranking import Group, Ranker


class Order(NamedTuple):
    """The sort key of a hit, best first: coverage, words in the best passage, its length.

    All three numbers are smaller for better hits.
    """

    coverage: float = 0.0
    worth: float = 0.0
    length: int = 0


class Judge:
    """Orders the hits of several sources for one question."""

    def __init__(self, text: str) -> None:
        self._languages = languages_of(text)
        self._words = wanted(parse(text, self._languages))
        groups = [Group(word, count=1, idf=1.0) for word in self._words]
        self._ranker = Ranker(groups, 1.0)

    def judged(self, hit: Hit) -> tuple[Order, Hit]:
        """The sort key of a hit, and the hit with the coverage that its windows prove."""
        texts = [match.plain[0] for match in hit.matches]
        if not texts or not self._words:
            return Order(-(hit.coverage or 0.0)), hit
        groups = self._groups(texts)
        candidates = [passage for text in texts for passage in passages(text, groups)]
        present = {number for passage in candidates for number in passage.held}
        best = min(
            ((-passage.worth, passage.span.end - passage.span.start) for passage in candidates),
            default=(0.0, 0),
        )
        if hit.coverage is not None:
            return Order(-hit.coverage, *best), hit
        coverage = self._ranker.coverage(present)
        forms = {
            group.label: group.forms[0].words[0]
            for number, group in enumerate(groups)
            if number in present and group.forms and not self._literal(group.word, texts)
        }
        matched = [spelling(self._words[number]) for number in sorted(present)]
        judged = replace(hit, coverage=coverage, matched_words=matched, forms=forms)
        return Order(-coverage, *best), judged

    def coverage(self, hit: Hit) -> float | None:
        """The coverage that the source reports or the windows prove; None if neither exists."""
        if not hit.matches or not self._words:
            return hit.coverage
        return self.judged(hit)[1].coverage

    def _groups(self, texts: list[str]) -> list[Group]:
        """The words of the question, each with its forms that occur in the texts."""
        words = list({word for text in texts for word in fold(text).split()})
        by_stem = defaultdict[str, set[str]](set)
        for language in self._languages:
            for word, stem in zip(words, stems(words, language)):
                by_stem[stem].add(word)
        return [
            Group(
                word,
                tuple(Term((form,)) for form in sorted(self._forms(word, by_stem))),
                count=1,
                idf=1.0,
            )
            for word in self._words
        ]

    def _forms(self, word: Term, by_stem: Mapping[str, set[str]]) -> set[str]:
        if len(word.words) > 1 or word.prefix:
            return set()
        own = [word.words[0]]
        forms = (by_stem.get(stems(own, language)[0], set()) for language in self._languages)
        return set().union(*forms) - {*own}

    def _literal(self, word: Term, texts: list[str]) -> bool:
        """True if a text contains the word as it was typed."""
        return any(passages(text, [Group(word, count=1, idf=1.0)], limit=1) for text in texts)


def languages_of(text: str) -> tuple[str, ...]:
    """The languages of a question; English if it is too short to detect one."""
    return detect([text]) or ("en",)


def wanted(question: Question) -> tuple[Term, ...]:
    """The words of a question, or else its required parts."""
    if question.words or question.only_period:
        return question.words
    return tuple(part.term for part in question.required if not part.term.excluded)
