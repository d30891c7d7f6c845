"""A gunicorn configuration like production, except that the worker's bounds are small."""

from service.running.draining import DrainingWorker
from service.serving import *  # noqa: F401,F403
from tests.helpers.slow_clients import BOUNDS


class ImpatientWorker(DrainingWorker):
    """The production worker with these bounds."""

    bounds = BOUNDS


worker_class = "tests.helpers.impatient.ImpatientWorker"
worker_connections = 150
