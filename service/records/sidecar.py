"""Opens a store's sidecar. Setting the clock back does not reactivate expired grants."""

from datetime import datetime

from service.access.registry import Registry
from service.access.sidecar import Sidecar
from service.place import Place
from service.records.opening import engine_of

#: How long ending grants waits for other writers of the store.
LOCK_SECONDS = 5


def open_sidecar(location: Place, *, fixed: bool = False) -> Sidecar:
    """The sidecar of the store at a place; opens nothing yet."""

    engine = engine_of(location)

    def end_grants(mark: datetime, at: datetime) -> None:
        with engine.open_writer(lock_seconds=LOCK_SECONDS) as writer:
            Registry(writer).end_expired(mark, at)

    return Sidecar(engine.access_tables(fixed=fixed), end_grants)
