"""Other spellings of a word: one edit away, and with German umlauts written out or not."""

from collections.abc import Iterable
from itertools import islice, product
from typing import Final

#: Words shorter than this are never repaired.
REPAIRED_CHARS: Final = 5
#: Corrections of one word that are used, the most frequent first.
REPAIRS_MAX: Final = 4
_UMLAUTS: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"))
_UMLAUTS_MAX: Final = 3


def edits(word: str, letters: Iterable[str]) -> frozenset[str]:
    """Every word one edit away: a letter dropped, changed, added, or two neighbours swapped.

    The first letter stays. `letters` are those that may come in.
    """
    alphabet = tuple(letters)
    cuts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    dropped = (start + rest[1:] for start, rest in cuts if rest)
    swapped = (start + rest[1] + rest[0] + rest[2:] for start, rest in cuts if len(rest) > 1)
    changed = (start + letter + rest[1:] for start, rest in cuts if rest for letter in alphabet)
    added = (start + letter + rest for start, rest in cuts for letter in alphabet)
    return frozenset((*dropped, *swapped, *changed, *added)) - {word}


def umlauts(word: str) -> frozenset[str]:
    """A folded word with its umlauts written out, and the reverse: `schlussel`, `schluessel`.

    At most three places of a word are varied.
    """
    pieces: list[tuple[str, ...]] = []
    place = varied = 0
    while place < len(word):
        long = next((pair for pair in _UMLAUTS if word.startswith(pair[0], place)), None)
        short = next((pair for pair in _UMLAUTS if word[place] == pair[1]), None)
        pair = long or short
        if pair is None or varied == _UMLAUTS_MAX:
            pieces.append((word[place],))
            place += 1
            continue
        pieces.append(pair)
        place += len(pair[0] if long else pair[1])
        varied += 1
    spelled = ("".join(parts) for parts in product(*pieces))
    return frozenset(islice(spelled, 2**_UMLAUTS_MAX)) - {word}
