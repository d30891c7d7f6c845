"""Logs on stdout: a JSON line for each event, or plain text for a person at a terminal.

Logs contain our own words only. The message of an exception is left out, because it may quote
data: its type and stack are logged, without the values of variables.
"""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from traceback import StackSummary, walk_tb
from types import TracebackType
from typing import Any, Final

import orjson
from gunicorn import glogging

from service import settings

CAUSES_MAX: Final = 5
FIRST: Final = ("time", "level", "event", "request_id")

Event = dict[str, Any]

#: Attributes of every log record, which events do not show.
_USUAL: Final = logging.makeLogRecord({}).__dict__.keys()
_requests: Final = logging.getLogger("rung.request")
_written: Callable[[Event], None] | None = None


def log_request(event: Event, *, probe: bool = False) -> None:
    """Logs one line for a request; for a probe only at debug level."""
    level = logging.DEBUG if probe else logging.INFO
    if not _requests.isEnabledFor(level):
        return
    if _written is not None and not probe:
        _written(event)
    else:
        _requests.log(level, "request", extra=event)


def configure(format: str | None, level: str) -> None:
    """Sends all logs of this process to stdout.

    Without a format, logs are text on a terminal and JSON otherwise. A second call replaces the
    first.
    """
    chosen = format or ("text" if sys.stdout.isatty() else "json")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Lines(_text if chosen == "text" else _json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    global _written
    _written = None if chosen == "text" else _writer(sys.stdout.fileno())
    # Its debug lines contain whole URLs, with queries.
    logging.getLogger("urllib3").setLevel(logging.WARNING)


class GunicornLog(glogging.Logger):  # type: ignore[misc]
    """Formats gunicorn's messages in the same way."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        effective = settings.load()
        configure(effective.log_format, effective.log_level)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _writer(stdout: int) -> Callable[[Event], None]:
    """Returns a writer of the same JSON lines as `configure`, ten times as fast."""

    def write(event: Event) -> None:
        line = orjson.dumps({"time": _now(), "level": "info", "event": "request", **event})
        with suppress(OSError):  # requests are answered even if nobody reads the logs
            os.write(stdout, line + b"\n")

    return write


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Lines(logging.Formatter):
    """Formats log records as text."""

    def __init__(self, written: Callable[[Event], str]) -> None:
        super().__init__()
        self._written = written

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; see the module for what it omits."""
        event: Event = {"event": record.getMessage()}
        if record.stack_info:
            event["stack_info"] = record.stack_info
        event |= {"level": record.levelname.lower(), "logger": record.name}
        event |= {name: value for name, value in record.__dict__.items() if name not in _USUAL}
        event["time"] = _now()
        if record.exc_info and record.exc_info[1] is not None:
            event["exception"] = stack(record.exc_info[1])
        return self._written(event)


def stack(error: BaseException) -> str:
    """Types and places of an exception and of its causes, the first cause last."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < CAUSES_MAX:
        parts.append(f"{type(cause).__qualname__}\n{_places(cause.__traceback__)}")
        hidden = cause.__suppress_context__
        cause = cause.__cause__ or (None if hidden else cause.__context__)
    return "caused by ".join(parts)


def _places(trace: TracebackType | None) -> str:
    return "".join(StackSummary.extract(walk_tb(trace), capture_locals=False).format())


def _json(event: Event) -> str:
    first = {name: event.pop(name) for name in FIRST if name in event}
    return orjson.dumps({**first, **event}, default=lambda value: type(value).__name__).decode()


def _text(event: Event) -> str:
    """An event on one line for a person, and the stack of an exception below it."""
    short = _short(event)
    trace = short.pop("exception", "").rstrip()
    first = f"{short.pop('time')} {short.pop('level'):<7} {short.pop('event')}"
    more = [f"{name}={value}" for name, value in short.items()]
    return "\n".join(filter(None, [" ".join([first, *more]), trace]))


def _short(event: Event) -> Event:
    """A request in short form: `GET /v1/search 200 4.5 ms`."""
    if event.get("logger") != _requests.name:
        return event
    summary = f"{event['method']} {event['route']} {event['status']} {event['ms']} ms"
    kept = ("time", "level", "operation", "error", "request_id")
    return {"event": summary, **{name: event[name] for name in kept if name in event}}
