"""The memory that stems take."""

import tracemalloc

from evidence.language import stems

WORDS = 12_000


def test_no_stemmer_keeps_words_of_its_own() -> None:
    """Each thread has a stemmer for each language, so their caches would add up."""
    tracemalloc.start()
    try:
        for number in range(WORDS):
            stems([f"{number:x}ations"], "en")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10 * WORDS, "bytes after all words are stemmed"
