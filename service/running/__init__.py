"""Runs the service: the worker, logs, metrics, readiness and response headers."""
