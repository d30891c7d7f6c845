"""The interface of an encoder, which turns texts into vectors."""

from array import array
from collections.abc import Sequence
from typing import Final, Protocol

from evidence.errors import Unavailable

#: Embedded for the centre of all texts, and at each start of an endpoint to know its model.
PROBES: Final = (
    "The meeting was moved to Thursday at ten.",
    "Das rote Fahrrad steht seit dem Sommer im Keller.",
    "Preheat the oven, then mix flour, sugar and butter.",
)


class MeaningUnavailable(Unavailable, code="semantic_unavailable"):
    """A text could not be embedded, or not in time. Search goes on by words alone."""


class Encoder(Protocol):
    """Embeds texts. A vector is `dimensions` signed bytes in the direction of the unit vector.

    Any method and property may load the model or ask the endpoint, and raise `MeaningUnavailable`.
    """

    @property
    def id(self) -> str:
        """The model and its weights. Vectors of different ids are compared only if `matches`."""

    @property
    def dimensions(self) -> int:
        """The components of a vector."""

    @property
    def calibration(self) -> tuple[float, float]:
        """Mean and standard deviation of the cosines between questions and unrelated texts."""

    @property
    def patience(self) -> float:
        """The seconds that embedding a question may take."""

    def matches(self, id: str) -> bool:
        """True if the vectors of an encoder with this id can be compared with those of this one."""

    def load(self) -> None:
        """Loads the model, so that no later call has to. Call it only after a fork."""

    def question(self, text: str, seconds: float) -> bytes:
        """The vector of a question; raises `MeaningUnavailable` if it takes longer."""

    def passage(self, text: str) -> bytes:
        """The vector of one text of a record."""

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of several texts, in their order."""

    def tokens(self, text: str) -> int:
        """How many tokens the text has; an endpoint estimates it."""


def quantized(components: Sequence[float]) -> bytes:
    """A vector as signed bytes: the greatest component becomes 127 or -127."""
    scale = 127 / (max(map(abs, components), default=0) or 1)
    return array("b", (round(component * scale) for component in components)).tobytes()
