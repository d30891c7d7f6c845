"""How gunicorn runs the service; settings come from the environment. A gunicorn config module."""

import sys
from typing import Any

from evidence.limits import BUDGETS
from service import settings

try:
    found = settings.load()
except settings.SettingsError as error:
    sys.exit(f"rung cannot start:\n{error}")

bind = f"0.0.0.0:{found.port}"
worker_class = "gthread"
workers = found.workers
threads = found.threads
# Above every deadline of ours, below the router's.
timeout = int(BUDGETS.router_seconds) - 2
graceful_timeout = int(BUDGETS.request_seconds)
# Routers keep idle connections for 90 seconds; closing first loses requests.
keepalive = 100
preload_app = True
limit_request_line = 8190
accesslog = None
errorlog = "-"
forwarded_allow_ips = "127.0.0.1"
control_socket_disable = True


def post_worker_init(worker: Any) -> None:
    """Opens the snapshot before the first request, which a bad file could meanwhile replace."""
    papers = worker.app.callable.extensions["rung"].papers
    if papers is not None:
        papers.status()
