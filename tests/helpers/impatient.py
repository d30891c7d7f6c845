"""A gunicorn configuration: production, but for a worker whose bounds are small."""

from dataclasses import replace

from evidence.limits import BUDGETS
from service.running.draining import DrainingWorker
from service.serving import *  # noqa: F401,F403

BOUNDS = replace(
    BUDGETS,
    head_seconds=1.0,
    body_seconds=4.0,
    body_grace_seconds=1.0,
    answer_window_seconds=1.0,
    idle_seconds=2.0,
    received_bytes=4_194_304,
    unsent_bytes=4_194_304,
)


class ImpatientWorker(DrainingWorker):
    """The worker of production with these bounds."""

    bounds = BOUNDS


worker_class = "tests.helpers.impatient.ImpatientWorker"
worker_connections = 150
