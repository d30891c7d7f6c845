"""A long text, window after window, that is the same text from its beginning to its end."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from evidence.errors import Unavailable
from service.cli.export.sinks import State

TRIES = 3


class Changed(Exception):
    """What was read before is no longer what would be read now."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a text, in code points. `kind` is the JSON type of the value it is the text of."""

    text: str
    start: int
    total: int
    kind: str = "string"

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Text(Protocol):
    """A text somewhere else. `version` is the same as long as the text is, as far as is known."""

    def window(self, offset: int, limit: int | None = None) -> Window:
        """What begins at `offset`: `limit` code points, or as much as there is at once."""
        ...

    def version(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Piece:
    """A window, and what another run needs to go on behind it."""

    window: Window
    state: State


def pieces(text: Text, state: State) -> Iterator[Piece]:
    """The windows of a text behind `state`, which is that of an earlier piece, or empty.

    Raises `Changed` as soon as it shows that the text is another one.
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
                f"The source gives no text behind character {done}. Try again later.",
                code="upstream_invalid_response",
            )
        done, total = window.end, window.total
        yield Piece(window, _state(window, version))
    if text.version() != version:
        raise Changed


def steady(begin: Callable[[], None], work: Callable[[], None]) -> None:
    """Does `work`, and again from the beginning where what it reads has changed meanwhile."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except Changed:
            begin()
    try:
        return work()
    except Changed:
        raise Unavailable(
            "It changes while it is read. Try again when nothing is imported.", code="changing"
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
    """Reads the last window of an earlier run again, and looks whether it is the same."""
    size = state["chars"] - state["last_start"]
    if version != state["version"]:
        raise Changed
    if size:
        again = text.window(state["last_start"], size)
        if again.total != state["total"] or _hashed(again.text) != state["last_sha256"]:
            raise Changed


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
