"""Names are nouns for what they name: words that could name anything may only become fewer."""

import keyword
import tokenize
from collections.abc import Iterator

from tests.architecture.sources import PACKAGES, ROOT, files

#: Participles, pronouns and the like, which name anything.
VAGUE = frozenset(
    "one found known given kept asked shown held wanted named each listed other others more added"
    " made left seen typed here spelled place piece".split()
)
EMPTY = frozenset("result results item items data value values info obj thing".split())
#: The most of 10,000 names; lower them when fewer remain.
VAGUE_MOST, EMPTY_MOST = 64, 231


def names() -> Iterator[str]:
    """Every name in the code, in lower case, as often as it occurs."""
    for path in files(*PACKAGES):
        with (ROOT / path).open(encoding="utf-8") as lines:
            for token in tokenize.generate_tokens(lines.readline):
                if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                    yield token.string.lower()


def test_vague_and_empty_names_become_fewer() -> None:
    total = vague = empty = 0
    for name in names():
        total += 1
        vague += not VAGUE.isdisjoint(name.split("_"))
        empty += name in EMPTY
    assert 10_000 * vague <= VAGUE_MOST * total, "Name the variable after what it is."
    assert 10_000 * empty <= EMPTY_MOST * total, "Name the variable after what it is."
