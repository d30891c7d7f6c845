"""Running the service: the worker, logs, metrics, readiness, response headers."""
