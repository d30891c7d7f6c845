"""Notes below the hits of a search: related hits, what was not compared, and missing words."""

from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from evidence.text import clip
from renderers.rendering import WORDS_LISTED, listed, value_of


def meaning(page: SearchPage) -> list[str]:
    """What related hits are, and what search by meaning left out."""
    lines = []
    if len(page.proven) < len(page.hits):
        lines.append(
            "related: no word of the query occurs in these records, so nothing is proven. They "
            "are near the query in meaning; read them before you rely on them."
        )
    compared, by_words = map(page.recall.get, ("vectors_compared", "ranked_by_words"))
    if isinstance(compared, int):
        lines.append(f"recall: time ran out after {compared} vectors; other records may be nearer.")
    if isinstance(by_words, list):
        names = [value_of(clip(str(name), BUDGETS.label_chars)) for name in by_words]
        lines.append(
            f"recall: these sources ranked by words alone, not by meaning: {listed(names)}."
        )
    return lines


def spellings(page: SearchPage) -> list[str]:
    """The words that no record has, and the closest spellings."""
    lines = []
    if page.absent_words:
        lines.append(f"No record contains: {listed(list(map(value_of, page.absent_words)))}.")
    if page.nearest_words:
        near = [
            f"{value_of(word)}: {listed(list(map(value_of, words)))}"
            for word, words in page.nearest_words.items()
        ]
        lines.append(f"Nearest words: {'; '.join(near[:WORDS_LISTED])}.")
    return lines
