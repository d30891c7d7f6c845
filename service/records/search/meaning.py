"""Compares one question's meaning with a store's vectors, or explains why it cannot."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from evidence.limits import BUDGETS
from evidence.work import within
from service.meaning.encoder import Encoder, MeaningUnavailable
from service.records.engine import Scope, Snapshot

if TYPE_CHECKING:
    from service.records.search.nearest import Nearness

#: Vectors of a grant that others are measured against.
SAMPLED: Final = 200


@dataclass(frozen=True, slots=True)
class Meaning:
    """How near records are to a question, if that is known, and `error` if it should be."""

    nearness: "Nearness | None" = None
    error: MeaningUnavailable | None = None

    @property
    def model(self) -> str | None:
        """The name of the model, without its weights."""
        return self.nearness.vectors.model.partition(":")[0] if self.nearness else None

    @property
    def warnings(self) -> list[dict[str, Any]]:
        if self.error is None:
            return []
        message = f"{self.error.message} Hits are ranked by words alone."
        return [{"code": self.error.code, "message": message}]


def meaning_of(snapshot: Snapshot, encoder: Encoder, text: str, whole: Scope) -> Meaning:
    """The meaning of a text against the vectors of a grant, whose scope is `whole`.

    A grant without vectors learns nothing of those that others have.
    """
    vectors = snapshot.vector_set()
    sample = vectors and snapshot.vector_sample(vectors.id, whole, SAMPLED).get()
    if not vectors or not sample:
        return Meaning()
    try:
        with within(BUDGETS.sent_question_seconds):  # an endpoint is asked which model it has
            is_same = encoder.matches(vectors.model)
        if not is_same:
            raise MeaningUnavailable(
                "The store's vectors were built with another model; run `rung vectors build`."
            )
        question = encoder.question(text, encoder.patience)
        calibration = encoder.calibration
    except MeaningUnavailable as error:
        return Meaning(error=error)
    from service.records.search.nearest import Nearness

    return Meaning(Nearness(snapshot, vectors, question, whole, sample, calibration))
