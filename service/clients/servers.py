"""Finds, adds or removes one server in a client's configuration file."""

from collections.abc import Iterable
from typing import Any

from evidence.errors import InvalidRequest
from service.clients import editing, toml
from service.clients.table import Config, Entry, prompt

_INPUTS = "inputs"


class Taken(ValueError):
    """Another server already has the name."""


class Unreadable(InvalidRequest):
    """The file cannot be edited; the message has the reason and position."""


def server(config: Config, text: str, name: str) -> Any:
    """The entry of that name, or None. Raises `Unreadable`."""
    try:
        return _editor(config).lookup(text, (config.table, name))
    except ValueError as error:
        raise _unreadable(config, error) from error


def add(config: Config, text: str, name: str, entry: Entry, *, force: bool = False) -> str:
    """The text with the server; unchanged if it already has the same entry.

    Raises `Unreadable`, and `Taken` if the name has another entry and `force` is not given.
    """
    old_entry = server(config, text, name)
    try:
        if old_entry != entry:
            if old_entry is not None and not force:
                raise Taken(name)
            text = _editor(config).put(text, (config.table, name), entry)
        asks = config.prompts and _reference(name) in str(entry)
        if asks and _input_index(text, name) is None:
            text = editing.append(text, (_INPUTS,), prompt(name))
        return text
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
        number = _input_index(text, name) if config.prompts else None
        if number is not None and _reference(name) not in text:  # no other server uses it
            text = editing.take(text, (_INPUTS,), number)
        return text
    except editing.Unfit as error:
        raise _unreadable(config, error) from error


def _editor(config: Config) -> Any:
    """The module that edits files of a language."""
    return toml if config.language == "toml" else editing


def _reference(name: str) -> str:
    """How an entry refers to the input for the token of a server."""
    return f"${{input:{prompt(name)['id']}}}"


def _input_index(text: str, name: str) -> int | None:
    """The index of the server's input among the inputs."""
    inputs = editing.lookup(text, (_INPUTS,))
    entries = inputs if isinstance(inputs, list) else []
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    input_id = prompt(name)["id"]
    return ids.index(input_id) if input_id in ids else None


def _unreadable(config: Config, error: ValueError) -> Unreadable:
    language = "TOML" if config.language == "toml" else "JSON"
    if isinstance(error, editing.Unfit):
        return Unreadable(f"The file cannot be edited safely: {error}. Nothing was written.")
    return Unreadable(f"The file is not valid {language}: {error}. Nothing was written.")
