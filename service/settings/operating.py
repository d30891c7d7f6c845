"""The settings of operations: logs, metrics, limits, answers kept, the end of a worker.

Rows of `SETTINGS`.
"""

from typing import Any, Final

from service.settings import parsing

ROWS: Final[tuple[tuple[Any, ...], ...]] = (
    (
        "log_format",
        "RUNG_LOG_FORMAT",
        None,
        parsing.one_of("json", "text"),
        "json",
        "json or text; text on a terminal, json elsewhere.",
    ),
    (
        "log_level",
        "RUNG_LOG_LEVEL",
        "info",
        parsing.one_of("debug", "info", "warning", "error"),
        "info",
        "The least that is logged: debug adds health checks, warning leaves requests out.",
    ),
    (
        "metrics",
        "RUNG_METRICS",
        "local",
        parsing.one_of("local", "open", "off"),
        "open",
        "Who may read /metrics: this machine, everybody, or nobody.",
    ),
    (
        "metrics_token",
        "RUNG_METRICS_TOKEN",
        None,
        parsing.token,
        "a-long-random-word",
        "A token that reads /metrics from elsewhere.",
        True,
    ),
    (
        "rate_limit_token",
        "RUNG_RATE_LIMIT_TOKEN",
        None,
        parsing.rate,
        "600/minute",
        "Requests one token may make; unlimited without it.",
    ),
    (
        "rate_limit_address",
        "RUNG_RATE_LIMIT_ADDRESS",
        None,
        parsing.rate,
        "1200/minute",
        "Requests one client address may make; unlimited without it.",
    ),
    (
        "rate_limit_failures",
        "RUNG_RATE_LIMIT_FAILURES",
        "30/minute",
        parsing.rate,
        "30/minute",
        "Refused tokens one client address may send before it has to wait, or off.",
    ),
    (
        "rate_limit_storage",
        "RUNG_RATE_LIMIT_STORAGE",
        None,
        parsing.storage,
        "redis://redis.internal:6379/0",
        "Where all workers count together; each counts for itself otherwise.",
        True,
    ),
    (
        "drain_seconds",
        "RUNG_DRAIN_SECONDS",
        5,
        parsing.whole,
        "5",
        "How long a worker told to stop goes on accepting, while /readyz says 503.",
    ),
    (
        "answer_cache_bytes",
        "RUNG_ANSWER_CACHE_BYTES",
        1_000_000,
        parsing.whole,
        "0",
        "How many bytes of answers a worker keeps for calls that are repeated while nothing was "
        "committed; 0 keeps none.",
    ),
)
