"""aggregate: one figure, or counts by group, over a stream."""

from typing import Any

from evidence.limits import CONTRACT
from evidence.model import GRANULARITIES, Buckets
from renderers import aggregate as renderer
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session, run_of
from service.ports import AggregateQuery, Answer

METRICS = ("count", "sum", "min", "max", "count_distinct")


class AggregateArguments(Arguments):
    stream = arguments.stream(required=True)
    metric = arguments.Choice("What to compute.", METRICS, required=True)
    field = arguments.Text("Field for sum, min, max and count_distinct.")
    group_by = arguments.Text("Count by the values of this field.")
    group_by_time = arguments.Text("Count by time in this field; needs granularity.")
    granularity = arguments.Choice("Size of the time buckets.", GRANULARITIES)
    time_zone = arguments.Text("IANA time zone of the buckets, UTC by default.")
    filter = arguments.TypedFilter()
    limit = arguments.Number("Maximum groups, 10 by default.", 1, CONTRACT.page_items)
    cursor = arguments.cursor()
    connection_id = arguments.connection_id()


def ask(session: Session, *, stream: str, metric: str, **args: Any) -> Answer[Buckets]:
    """The figure or a page of groups."""
    return session.rs.aggregate(AggregateQuery(stream, metric, **args))


OPERATION = RecordOperation(
    name="aggregate",
    title="Count and summarize",
    description=(
        "Computes one metric over a stream (count, sum, earliest, latest), or counts grouped "
        "by a field or by time."
    ),
    arguments=AggregateArguments(),
    ask=ask,
    run=run_of(ask),
    render=renderer.render,
    fit=renderer.fit,
    route=Route("/v1/streams/<stream>/aggregate"),
    examples=({"stream": "messages", "metric": "count"},),
)
