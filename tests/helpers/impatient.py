"""A gunicorn configuration: production, but for a worker whose bounds are small."""

from service.running.draining import DrainingWorker
from service.serving import *  # noqa: F401,F403
from tests.helpers.slow_clients import BOUNDS


class ImpatientWorker(DrainingWorker):
    """The worker of production with these bounds."""

    bounds = BOUNDS


worker_class = "tests.helpers.impatient.ImpatientWorker"
worker_connections = 150
