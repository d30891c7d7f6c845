"""Terms as FTS5 expressions."""

from collections.abc import Sequence

from evidence.query import Term


def expression(terms: Sequence[Term], *, joined: str = " AND ") -> str:
    """The FTS5 expression of folded terms: each a quoted phrase, a prefix with a star."""
    return joined.join(
        '"' + " ".join(term.words) + '"' + (" *" if term.prefix else "") for term in terms
    )
