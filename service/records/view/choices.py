"""Lists the connections that a request may mean, and counts the records that match the request."""

from collections.abc import Iterable, Sequence

from evidence.errors import Ambiguous
from evidence.model import members
from service import port_rules
from service.records.engine import Snapshot
from service.records.engine.selections import Selection
from service.records.view import View
from service.records.view.streams import Streams


def require_shared(view: View, streams: Streams, fields: Iterable[str], param: str) -> None:
    """Refuses a field that is granted in only some connections of a stream.

    Raises 409 `ambiguous_connection` with those connections; 403 `field_not_granted` if there are
    none.
    """
    for field in fields:
        having = [stream for stream in streams if stream.shows(field)]
        if not having:
            streams[0].require(field, param=param)
        if len(having) < len(streams):
            error = ambiguous(view, having)
            error.message = (
                f"Several connections have this stream, but only {len(having)} of them have the "
                f"field {field!r}. Retry with a connection_id from available_connections."
            )
            raise error


def ambiguous(view: View, streams: Streams, *, stream: str | None = None) -> Ambiguous:
    """The 409 that lists the connections to choose from; see `port_rules.ambiguous`."""
    connections = [
        {
            **members(candidate, "connection_id", "connector_key"),
            "grant_id": view.grant.grant_id,
            **({"display_name": candidate.display_name} if candidate.display_name else {}),
        }
        for candidate in streams
    ]
    return port_rules.ambiguous(connections, stream=stream)


def count(snapshot: Snapshot, selections: Sequence[Selection]) -> int:
    """The number of selected records; the store knows that of a whole stream."""
    whole = [entry.stream for entry in selections if not (entry.limit or entry.tests)]
    counts = [snapshot.count(entry) for entry in selections if entry.limit or entry.tests]
    if whole:
        counts.append(snapshot.statistics(whole, ()).then(lambda numbers: numbers[0]))
    return sum(count.get() for count in counts)
