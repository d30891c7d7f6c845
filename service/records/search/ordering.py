"""Orders the blocks of a question by its words, the actor it names, and closeness in meaning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evidence.page_order import Standard, standard, with_median, with_neighbours
from evidence.ranking import Ranker
from service.records.engine.later import Later, ready
from service.records.engine.vectors import VectorRow
from service.records.search.blocks import Near, Ranked, Reader

if TYPE_CHECKING:
    from service.records.search.nearest import Nearness, NearText


class RelatedRecord(NamedTuple):
    """A record with its value by `evidence.page_order`, and its nearest window."""

    value: float
    window: VectorRow


class Places(NamedTuple):
    """The ranks of the proven hits of a page, and related records by their ranks."""

    ranks: Sequence[int]
    related: Mapping[int, RelatedRecord] = {}

    @property
    def size(self) -> int:
        return len(self.ranks) + len(self.related)


class Ordering:
    """Orders blocks by `evidence.page_order`, with `nearness` by meaning too.

    Of the words there are `count`. The first block sets the standard, or else a cursor does.
    """

    def __init__(self, ranker: Ranker, count: int, nearness: "Nearness | None") -> None:
        self.nearness, self._ranker, self._count = nearness, ranker, count
        self.standard: Standard | None = None

    def begin(self, seqs: Iterable[int], near: Near) -> "Later[dict[int, NearText]]":
        """Begins to read how near the records of a block and their neighbours are."""
        if self.nearness is None:
            return ready({})
        return self.nearness.of({*seqs, *(n for places in near.values() for n in places)})

    def set_standard(self, matching: Mapping[int, Ranked], scores: Mapping[int, float]) -> None:
        """Takes the standard from the first block."""
        coverages = {
            seq: self._ranker.coverage(ranked.score.held) for seq, ranked in matching.items()
        }
        self.standard = standard(scores, coverages, self._count)

    def values(
        self,
        reader: Reader,
        matching: Mapping[int, Ranked],
        scores: Mapping[int, float],
        near: Near,
        texts: "Mapping[int, NearText]",
    ) -> dict[int, float]:
        """The values of records with these scores by words. One without a vector is average."""
        assert self.standard is not None
        meaning = dict[int, float]()
        if self.nearness:
            nearness = {seq: text.nearness for seq, text in texts.items()}
            meaning = with_neighbours(with_median(nearness, matching), near)
        return {
            seq: self.standard.value(
                scores[seq],
                meaning.get(seq),
                names_actor=reader.names_actor(candidate),
            )
            for seq, candidate in matching.items()
        }
