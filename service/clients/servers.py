"""Finds, adds and removes one server in a client's file."""

from collections.abc import Iterable
from typing import Any

from evidence.errors import InvalidRequest
from service.clients import editing, toml
from service.clients.client import Config, Entry
from service.clients.table import prompt

_INPUTS = "inputs"


class Taken(ValueError):
    """Another server has the name."""


class Unreadable(InvalidRequest):
    """The file cannot be edited; the message has the reason and position."""


def server(config: Config, text: str, name: str) -> Any:
    """The entry of that name, or None. Raises `Unreadable`."""
    try:
        return _editor(config).found(text, (config.table, name))
    except ValueError as error:
        raise _unreadable(config, error) from error


def add(config: Config, text: str, name: str, entry: Entry, *, force: bool = False) -> str:
    """The text with the server; unchanged if it already has the same entry.

    Raises `Unreadable`, and `Taken` if the name has another entry and `force` is not given.
    """
    there = server(config, text, name)
    try:
        if there != entry:
            if there is not None and not force:
                raise Taken(name)
            text = _editor(config).put(text, (config.table, name), entry)
        return _ask_for(text, name) if config.prompts and _asks(entry, name) else text
    except editing.Unfit as error:
        raise _unreadable(config, error) from error


def remove(config: Config, text: str, name: str, earlier: Iterable[str | None]) -> str | None:
    """The text without the server; None if the file did not exist before the server was added.

    `earlier` are former texts of the file, newest first, None for no file. If adding the server to
    one of them results in `text`, it is returned exactly. Raises `Unreadable`.
    """
    entry = server(config, text, name)
    if entry is None:
        return text
    for before in earlier:
        try:
            if add(config, before or "", name, entry) == text:
                return before
        except (Taken, Unreadable):
            continue
    try:
        text = _editor(config).take(text, (config.table, name))
        return _stop_asking(text, name) if config.prompts else text
    except editing.Unfit as error:
        raise _unreadable(config, error) from error


def _editor(config: Config) -> Any:
    """The module that edits files of a language."""
    return toml if config.language == "toml" else editing


def _asks(entry: Entry, name: str) -> bool:
    return f"${{input:{prompt(name)['id']}}}" in str(entry)


def _ask_for(text: str, name: str) -> str:
    if _asked(text, name) is not None:
        return text
    return editing.append(text, (_INPUTS,), prompt(name))


def _asked(text: str, name: str) -> int | None:
    """The index of the server's input among the inputs."""
    inputs = editing.found(text, (_INPUTS,))
    wanted = prompt(name)["id"]
    for number, one in enumerate(inputs if isinstance(inputs, list) else ()):
        if isinstance(one, dict) and one.get("id") == wanted:
            return number
    return None


def _stop_asking(text: str, name: str) -> str:
    """The text without the prompt of a server, unless another server uses it too."""
    number = _asked(text, name)
    if number is None or f"${{input:{prompt(name)['id']}}}" in text:
        return text
    return editing.take(text, (_INPUTS,), number)


def _unreadable(config: Config, error: ValueError) -> Unreadable:
    spelled = "TOML" if config.language == "toml" else "JSON"
    if isinstance(error, editing.Unfit):
        return Unreadable(f"It cannot be edited safely: {error}. Nothing was written.")
    return Unreadable(f"It is not valid {spelled}: {error}. Nothing was written.")
