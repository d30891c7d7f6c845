"""The settings of operations: logs, metrics, limits, the answer cache, worker shutdown.

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
        "json or text. Default: text on a terminal, otherwise json.",
    ),
    (
        "log_level",
        "RUNG_LOG_LEVEL",
        "info",
        parsing.one_of("debug", "info", "warning", "error"),
        "info",
        "The log level. debug adds health checks, warning omits requests.",
    ),
    (
        "metrics",
        "RUNG_METRICS",
        "local",
        parsing.one_of("local", "open", "off"),
        "open",
        "Who can read /metrics: this machine, everybody, or nobody.",
    ),
    (
        "metrics_token",
        "RUNG_METRICS_TOKEN",
        None,
        parsing.token,
        "a-long-random-word",
        "A token for reading /metrics from other machines.",
        True,
    ),
    (
        "rate_limit_token",
        "RUNG_RATE_LIMIT_TOKEN",
        "600/minute",
        parsing.rate,
        "1200/minute",
        "The limit of requests per token, or off.",
    ),
    (
        "rate_limit_address",
        "RUNG_RATE_LIMIT_ADDRESS",
        "300/minute",
        parsing.rate,
        "1200/minute",
        "The limit of requests without a token per client address, or off.",
    ),
    (
        "rate_limit_failures",
        "RUNG_RATE_LIMIT_FAILURES",
        "30/minute",
        parsing.rate,
        "30/minute",
        "The limit of refused tokens per client address, or off.",
    ),
    (
        "rate_limit_storage",
        "RUNG_RATE_LIMIT_STORAGE",
        None,
        parsing.storage,
        "redis://redis.internal:6379/0",
        "Shared storage for rate limits. Without it, each worker counts separately.",
        True,
    ),
    (
        "drain_seconds",
        "RUNG_DRAIN_SECONDS",
        5,
        parsing.whole,
        "5",
        "Seconds a worker continues to accept requests after SIGTERM, while /readyz returns 503.",
    ),
    (
        "answer_cache_bytes",
        "RUNG_ANSWER_CACHE_BYTES",
        1_000_000,
        parsing.whole,
        "0",
        (
            "The size in bytes of each worker's cache for repeated calls. A commit to the store "
            "clears it; 0 disables it."
        ),
    ),
)
