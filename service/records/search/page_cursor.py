"""Where a page begins: in a block, or in the single order of all matches."""

from typing import NamedTuple

from evidence.page_order import Standard
from service.keys import Identity, Sealer

#: In place of the number of a block: the order of all matches.
WHOLE = -1


class PageCursor(NamedTuple):
    """The `block` that a page is cut from, the `offset` there and the `rank` of the first hit.

    `figures` are those that the page before went by; `standard` what the first block set. `last` is
    the value and the record of the last hit from the order of all matches.
    """

    block: int = 0
    offset: int = 0
    rank: int = 1
    figures: str | None = None
    standard: Standard | None = None
    last: tuple[float, int] | None = None

    @classmethod
    def unseal(cls, text: str | None, sealer: Sealer, bound: Identity) -> "PageCursor":
        """The first page without a text."""
        if not text:
            return cls()
        block, offset, rank, figures, *rest = sealer.open(text, bound=bound)
        standard = Standard(*rest[:3]) if len(rest) > 2 else None
        last = (rest[-2], rest[-1]) if len(rest) % 3 else None
        return cls(block, offset, rank, figures, standard, last)

    def seal(self, sealer: Sealer, bound: Identity) -> str:
        rest = [*(self.standard or ()), *(self.last or ())]
        return sealer.seal([self.block, self.offset, self.rank, self.figures, *rest], bound=bound)
