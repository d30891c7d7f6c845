"""Reads a long text by windows, and detects changes of the text meanwhile."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from evidence.errors import Unavailable
from service.cli.export.sinks import State

TRIES = 3


class Changed(Exception):
    """The source has changed since an earlier read."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a text, in code points. `kind` is the JSON type of the value."""

    text: str
    start: int
    total: int
    kind: str = "string"

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Text(Protocol):
    """A remote text. `version` changes with the text, if the source reports versions."""

    def window(self, offset: int, limit: int | None = None) -> Window:
        """Up to `limit` code points from `offset`."""
        ...

    def version(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Piece:
    """A window, and the state for resuming after it."""

    window: Window
    state: State


def pieces(text: Text, state: State) -> Iterator[Piece]:
    """The windows of a text after `state`, the state of an earlier piece, or empty.

    Raises `Changed` as soon as it detects that the text changed.
    """
    version = text.version()
    done, total = 0, None
    if state:
        done, total = state["chars"], state["total"]
        _check_last(text, state, version)
    while total is None or done < total:
        window = text.window(done)
        if window.start != done or window.total != (window.total if total is None else total):
            raise Changed
        if not window.text and window.total > done:
            raise Unavailable(
                f"The source returned no text after character {done}. Try again later.",
                code="upstream_invalid_response",
            )
        done, total = window.end, window.total
        yield Piece(window, _state(window, version))
    if text.version() != version:
        raise Changed


def steady(begin: Callable[[], None], work: Callable[[], None]) -> None:
    """Runs `work`, and restarts it if the source changes meanwhile."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except Changed:
            begin()
    try:
        return work()
    except Changed:
        raise Unavailable(
            "The field changed while it was read. Try again when no import is running.",
            code="changing",
        ) from None


def _state(window: Window, version: str) -> State:
    return {
        "chars": window.end,
        "total": window.total,
        "version": version,
        "last_start": window.start,
        "last_sha256": _hashed(window.text),
    }


def _check_last(text: Text, state: State, version: str) -> None:
    """Reads the last window of an earlier run again; raises `Changed` if it differs."""
    size = state["chars"] - state["last_start"]
    if version != state["version"]:
        raise Changed
    if size:
        again = text.window(state["last_start"], size)
        if again.total != state["total"] or _hashed(again.text) != state["last_sha256"]:
            raise Changed


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
