"""The results of an engine that ranks records itself: all matching records, with score bounds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from evidence.ranking import Ranker, Text

#: What a searched field is, as bits: its words count twice, are near every place, name the actor.
TITLE, EVERYWHERE, ACTOR = 1, 2, 4
#: A passage of a long value; the first field of streams that lie apart from those before.
PART, FIRST = 8, 16


class Match(NamedTuple):
    """A record, a score that its own does not exceed, and the groups that it holds, as bits.

    `passages` are those of its long values that hold a group: (ordinal, start, groups).
    """

    seq: int
    bound: float
    groups: int
    names_actor: int
    passages: Sequence[tuple[int, int, int]]


class Matches(NamedTuple):
    """How many records match, and how many hold every group; the `best` by their bounds.

    No other record has a bound above `rest`, none that names the actor one above `rest_actor`.
    """

    some: int
    all: int
    rest: float
    rest_actor: float
    best: Sequence[Match]


class Scoring(Protocol):
    """Ranks the records of a snapshot."""

    def matches(
        self, fields: Mapping[int, int], ranker: Ranker, *, every: bool, most: int
    ) -> Matches | None:
        """The records whose `fields` hold a group, or every one, without a limit but the fields.

        `fields` are ordinals, ascending, with what they are. None if the index cannot be read this
        way, or if there is too much of it.
        """

    def scores(
        self, ranker: Ranker, records: Sequence[tuple[float, Sequence[Text]]]
    ) -> list[float]:
        """The scores of records, each given by its length and texts; see `Ranker.score`."""
