"""Measures how close in meaning the granted texts are to a question, using a store's vectors.

Cosines are measured against a sample of the grant: a nearness is the number of standard deviations
above its mean. Nothing outside the grant changes one.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy

from evidence.cached import cached_property
from evidence.work import Deadline
from service.records.engine import Scope, Snapshot
from service.records.engine.later import Later
from service.records.engine.vectors import NUMBER_BYTES, VectorRow, VectorSet, code_of

#: The fewest vectors whose mean and deviation mean much.
FEWEST: Final = 20
#: The share of what the texts of a grant have in common that is taken out of a question, so that a
#: text that is near to all others is not near to every question.
COMMON: Final = 0.25
#: Vectors whose cosines are computed because their codes are nearest, and those that tie, at most.
RESCORED, TIED = 2_000, 4_000
#: A scope with at most so many records is filtered by these, a larger one by parts.
LISTED_MOST: Final = 20_000
#: Blocks whose codes are compared at once.
BLOCKS_TOGETHER: Final = 64
LEAST_DEVIATION: Final = 1e-6


class NearText(NamedTuple):
    """A window of a record and how near it is."""

    nearness: float
    row: VectorRow


class Nearness:
    """How near texts are to a question.

    `whole` is everything that the grant shows, `sample` some vectors of it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        vectors: VectorSet,
        question: bytes,
        whole: Scope,
        sample: Sequence[bytes],
        calibration: tuple[float, float],
    ) -> None:
        self.vectors = vectors
        self._snapshot, self._whole, self._sample = snapshot, whole, sample
        self._bytes, self._calibration = question, calibration
        self._question = numpy.frombuffer(question, numpy.int8).astype(numpy.float32)
        self._length = max(1.0, float(numpy.linalg.norm(self._question)))
        self._sampled = _rows_of(sample) if len(sample) >= FEWEST else None
        if self._sampled is not None:
            rows, lengths = self._sampled
            common = (rows / lengths[:, None]).mean(axis=0)
            self._question -= numpy.rint(COMMON * self._length * common).astype(numpy.float32)

    @property
    def version(self) -> tuple[str, bytes]:
        """The model, and a hash of the sample: what the grant shows of the state of the vectors."""
        return self.vectors.model, blake2b(b"".join(self._sample), digest_size=8).digest()

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """Mean and deviation of the cosines in the grant."""
        if self._sampled is None:
            return self._calibration
        cosines = self._cosines(*self._sampled)
        return float(cosines.mean()), max(LEAST_DEVIATION, float(cosines.std()))

    def _cosines(self, rows: Any, lengths: Any) -> Any:
        # Products of whole numbers are exact, so equal vectors are equally near in any order.
        return rows @ self._question / (lengths * self._length)

    def of(self, seqs: Iterable[int]) -> Later[dict[int, NearText]]:
        """The nearest window of each record that has a vector."""
        fields = self._whole.fields
        return self._snapshot.vectors(self.vectors.id, fields, list(seqs)).then(self._nearest)

    def _nearest(self, rows: Sequence[VectorRow]) -> dict[int, NearText]:
        nearest = dict[int, NearText]()
        if rows:
            mean, deviation = self._scale
            cosines = self._cosines(*_rows_of([row.vector for row in rows])).tolist()
            for cosine, row in sorted(
                zip(cosines, rows), key=lambda pair: (pair[0], -pair[1].start, -pair[1].ordinal)
            ):
                nearest[row.seq] = NearText((cosine - mean) / deviation, row)
        return nearest

    def search(self, scope: Scope, deadline: Deadline) -> tuple[dict[int, NearText], int | None]:
        """(the nearest records of a scope, None; or the vectors compared before the deadline).

        Those of the `RESCORED` nearest codes, each with its nearest window. In a part of a stream
        only these vectors are counted as compared: the others may be of hidden records.
        """
        seqs, ids, distances, whole = self._compared(scope, deadline)
        order = numpy.argsort(distances, kind="stable")
        order = order[ids[order] > 0]
        chosen = list[int]()
        for part, furthest in self._inside(scope, seqs, order):
            chosen += part.tolist()
            if len(chosen) >= RESCORED and distances[chosen[RESCORED - 1]] < distances[furthest]:
                break
        if len(chosen) > RESCORED:
            last = distances[chosen[RESCORED - 1]]
            chosen = [n for n in chosen[:TIED] if distances[n] <= last]
        near_ids = ids[chosen].tolist()
        rows = self._snapshot.vectors_by_id(self.vectors.id, near_ids).get() if near_ids else []
        compared = len(rows) if scope.limited else len(order)
        return self._nearest(rows), None if whole else compared

    def _compared(self, scope: Scope, deadline: Deadline) -> tuple[Any, Any, Any, bool]:
        """(records, ids and distances of the codes of a scope, whether that is all of them)."""
        code = numpy.frombuffer(code_of(self._bytes, self.vectors.centre), numpy.uint8)
        size, start = 2 * NUMBER_BYTES + len(code), 2 * NUMBER_BYTES
        word = numpy.uint64 if len(code) % 8 == 0 else numpy.uint8
        parts = [(numpy.zeros(0, "<i8"), numpy.zeros(0, "<i8"), numpy.zeros(0, numpy.uint16))]
        blocks, whole = self._snapshot.vector_blocks(self.vectors.id, scope.fields), True
        while together := b"".join(islice(blocks, BLOCKS_TOGETHER)):
            entries = numpy.frombuffer(together, numpy.uint8).reshape(-1, size)
            numbers = entries[:, :start].copy().view("<i8")
            differing = entries[:, start:].copy().view(word) ^ code.view(word)
            distances = numpy.bitwise_count(differing).sum(axis=1, dtype=numpy.uint16)
            parts.append((numbers[:, 0], numbers[:, 1], distances))
            if deadline.expired():
                whole = not next(blocks, b"")
                break
        seqs, ids, all_distances = (numpy.concatenate(each) for each in zip(*parts))
        return seqs, ids, all_distances, whole

    def _inside(self, scope: Scope, seqs: Any, order: Any) -> Iterator[tuple[Any, int]]:
        """The places of `order` whose records are in the selections of the scope, in parts.

        Each with the last place that was looked at.
        """
        if not len(order):
            return
        if not scope.limited:
            yield order[:TIED], order[-1]
            return
        members = self._snapshot.members(scope, LISTED_MOST).get()
        if members is not None:
            yield order[numpy.isin(seqs[order], numpy.array(members, "<i8"))][:TIED], order[-1]
            return
        size, start = TIED, 0
        while start < len(order):
            part = order[start : start + size]
            inside = self._snapshot.within(scope, numpy.unique(seqs[part]).tolist()).get()
            yield part[numpy.isin(seqs[part], numpy.array(inside, "<i8"))], part[-1]
            start, size = start + size, size * 2


def _rows_of(vectors: Sequence[bytes]) -> tuple[Any, Any]:
    """(the vectors as rows of whole numbers, their lengths)."""
    matrix = numpy.frombuffer(b"".join(vectors), numpy.int8).reshape(len(vectors), -1)
    rows = matrix.astype(numpy.float32)
    return rows, numpy.maximum(numpy.linalg.norm(rows, axis=1), 1.0).astype(numpy.float64)
