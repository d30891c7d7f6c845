"""Logs on stdout: a JSON line for each event, or plain text for a person at a terminal.

What logs say is ours alone. The message of an exception is left out, since it may quote what was
read: its type and the places it passed are told, without the values of variables.
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
import structlog
from gunicorn import glogging
from structlog.stdlib import ExtraAdder, ProcessorFormatter
from structlog.typing import EventDict, ExcInfo, Processor

from service import settings

CAUSES_MAX: Final = 5
FIRST: Final = ("time", "level", "event", "request_id")

Told = dict[str, Any]

_requests: Final = logging.getLogger("rung.request")
_written: Callable[[Told], None] | None = None


def tell_request(told: Told, *, probe: bool = False) -> None:
    """One line about a request; about a probe at debug level only."""
    level = logging.DEBUG if probe else logging.INFO
    if not _requests.isEnabledFor(level):
        return
    if _written is not None and not probe:
        _written(told)
    else:
        _requests.log(level, "request", extra=told)


def configure(format: str | None, level: str) -> None:
    """Sends everything that is logged in this process to stdout.

    Without a format it is text on a terminal, else JSON. A second call replaces the first.
    """
    terminal = sys.stdout.isatty()
    told = format or ("text" if terminal else "json")
    processors = _text(terminal) if told == "text" else _JSON
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(ProcessorFormatter(foreign_pre_chain=_KNOWN, processors=processors))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    global _written
    _written = None if told == "text" else _writer(sys.stdout.fileno())
    # Its debug lines hold addresses that are asked for, query and all.
    logging.getLogger("urllib3").setLevel(logging.WARNING)


class GunicornLog(glogging.Logger):  # type: ignore[misc]
    """What gunicorn has to say, in the same lines."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        found = settings.load()
        configure(found.log_format, found.log_level)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _writer(stdout: int) -> Callable[[Told], None]:
    """Writes a line of JSON as `configure` does it, in a tenth of the time."""

    def write(told: Told) -> None:
        line = orjson.dumps({"time": _now(), "level": "info", "event": "request", **told})
        with suppress(OSError):  # nobody reads it: no reason not to answer
            os.write(stdout, line + b"\n")

    return write


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _stamp(_: Any, __: str, event: EventDict) -> EventDict:
    event["time"] = _now()
    return event


def _where(_: Any, __: str, event: EventDict) -> EventDict:
    """An exception as its stack; see the module for what is left out."""
    info: ExcInfo | bool | None = event.pop("exc_info", None)
    found = sys.exc_info() if info is True else info
    if isinstance(found, tuple) and found[1] is not None:
        event["exception"] = stack(found[1])
    return event


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


def _line(_: Any, __: str, event: EventDict) -> str:
    first = {name: event.pop(name) for name in FIRST if name in event}
    return orjson.dumps({**first, **event}, default=lambda value: type(value).__name__).decode()


_KNOWN: Final[tuple[Processor, ...]] = (
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    ExtraAdder(),
    _stamp,
    _where,
)
_JSON: Final[tuple[Processor, ...]] = (ProcessorFormatter.remove_processors_meta, _line)


def _text(colors: bool) -> tuple[Processor, ...]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors, timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
    )
    return (ProcessorFormatter.remove_processors_meta, _short, renderer)


def _short(_: Any, __: str, event: EventDict) -> EventDict:
    """A request as a person reads it: `GET /v1/search 200 4.5 ms`."""
    if event.get("logger") != _requests.name:
        return event
    said = f"{event['method']} {event['route']} {event['status']} {event['ms']} ms"
    kept = ("time", "level", "operation", "error", "request_id")
    return {"event": said, **{name: event[name] for name in kept if name in event}}
