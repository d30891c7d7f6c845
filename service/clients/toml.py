"""Inserts or removes one table in a TOML text and leaves every other character unchanged."""

import tomllib
from collections.abc import Mapping
from typing import Any

from service.clients.editing import Unfit


def lookup(text: str, path: tuple[str, str]) -> Any:
    """The value under the two keys of `path`, or None.

    Raises `Unfit`, and `ValueError` with line and column for text that is not TOML.
    """
    try:
        table = tomllib.loads(text).get(path[0], {})
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    if not isinstance(table, dict):
        raise Unfit(f"{path[0]} is not a table")
    return table.get(path[1])


def block(table: str, name: str, entry: dict[str, Any]) -> str:
    """A table with its header, as TOML text."""
    import tomlkit  # loaded on use: servers and most commands never need it

    body = tomlkit.table()
    for key, value in entry.items():
        if isinstance(value, dict):
            inline = tomlkit.inline_table()
            inline.update(value)
            value = inline
        body.add(key, value)
    header = ".".join(tomlkit.key(part).as_string() for part in (table, name))
    return f"[{header}]\n{body.as_string()}"


def put(text: str, path: tuple[str, str], entry: dict[str, Any]) -> str:
    """The text with a table at its end, instead of an earlier one under the same keys.

    Raises `Unfit` if no table can be added, for example because the others are one inline value.
    """
    if lookup(text, path) is not None:
        text = take(text, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = "" if not text or text.endswith("\n") else newline
    lead += newline if text.strip() else ""
    extended = text + lead + block(*path, entry).replace("\n", newline)
    expected = tomllib.loads(text)
    expected.setdefault(path[0], {})[path[1]] = entry
    return _checked(extended, expected, f"no table can be added under {path[0]}")


def assign(text: str, path: tuple[str, str], values: Mapping[str, object]) -> str:
    """The text with keys of the table under `path` set, or removed if their value is None."""
    import tomlkit

    document, expected = tomlkit.parse(text), tomllib.loads(text)
    for tables in (document, expected):
        entry: Any = tables[path[0]][path[1]]
        for key in values.keys() & entry.keys():
            del entry[key]
        entry.update({key: value for key, value in values.items() if value is not None})
    problem = f"{', '.join(values)} of {path[1]} cannot be changed"
    return _checked(document.as_string(), expected, problem)


def take(text: str, path: tuple[str, str]) -> str:
    """The text without the table under `path`; raises `Unfit` if other values would change."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    table, name = path
    expected = tomllib.loads(text)
    del expected[table][name]
    try:
        document = tomlkit.parse(text)
        del document[table][name]
        remaining = document.as_string()
    except (TOMLKitError, KeyError) as error:
        raise Unfit(f"{table}.{name} cannot be removed") from error
    if not expected[table] and table not in tomllib.loads(remaining):
        del expected[table]
    return _checked(remaining, expected, f"{table}.{name} cannot be removed")


def _checked(text: str, expected: dict[str, Any], problem: str) -> str:
    """The text, after checking that it parses to the expected value."""
    try:
        same = tomllib.loads(text) == expected
    except ValueError:
        same = False
    if not same:
        raise Unfit(problem)
    return text
