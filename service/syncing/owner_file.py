"""The owner's file of sources: `sources.toml` beside the configuration file, with mode 0600.

    ["/home/ada/var/rung.db".calendar]
    kind = "url"
    address = "https://calendar.example.com/ada.ics"
    connection = "calendar"

Only what this file names ever runs; a store brings nothing. `RUNG_SOURCES` replaces the file: there
the tables have the names alone.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from evidence.errors import InvalidRequest
from evidence.names import Refused, check_connection_id
from service import durable
from service.clients import toml
from service.clients.writing import alone, content_of
from service.place import Place
from service.syncing import secrets
from service.syncing.connector import KEEP, REMOVE, SourceSettings

NAME: Final = "sources.toml"
VARIABLE: Final = "RUNG_SOURCES"
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([smhd])")
_SOURCE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: Each key with the type of its value.
_KEYS: Final[dict[str, type]] = {
    **dict.fromkeys(("kind", "address", "connection", "label", "every", "deletions"), str),
    **dict.fromkeys(("password", "password_command"), str),
    "folders": list,
    "paused": bool,
}


@dataclass(frozen=True, slots=True)
class OwnerFile:
    """The sources of one store in the owner's file, or in `text` instead."""

    path: Path
    store: Place
    text: str | None = None

    def sources(self) -> dict[str, SourceSettings]:
        """The sources by name; raises `InvalidRequest` for an invalid file."""
        return {name: self._settings(name, table) for name, table in self._tables().items()}

    def check(self, name: str, entry: dict[str, Any]) -> None:
        """Raises `InvalidRequest` for a source that cannot be added."""
        self._settings(name, entry)

    def put(self, name: str, entry: dict[str, Any]) -> None:
        """Adds a source, or replaces it."""
        self.check(name, entry)
        self._edit(lambda text: toml.put(text, (self._key, name), entry))

    def set_paused(self, name: str, paused: bool) -> None:
        """Pauses a source, or continues with it; raises `InvalidRequest` if there is none."""
        self.entry(name)
        self._edit(lambda text: toml.assign(text, (self._key, name), "paused", paused or None))

    def entry(self, name: str) -> dict[str, Any]:
        """The table of a source; raises `InvalidRequest` if there is none."""
        table = self._tables().get(name)
        if table is None:
            raise InvalidRequest(f"There is no source {name!r} here. See them: rung source list")
        return dict(table)

    def remove(self, name: str) -> None:
        """Removes a source, and its secret from the keyring."""
        self.entry(name)
        self._edit(lambda text: toml.take(text, (self._key, name)))
        secrets.forget(self._key, name)

    def _tables(self) -> dict[str, Any]:
        """The tables of the store's sources by name."""
        try:
            document = tomllib.loads(self._content())
        except ValueError as error:
            raise InvalidRequest(f"{self._origin} is not TOML: {error}.") from None
        tables: dict[str, Any] = document.get(self._key, {}) if self.text is None else document
        return tables

    @property
    def _key(self) -> str:
        return str(self.store.absolute())

    @property
    def _origin(self) -> str:
        return str(self.path) if self.text is None else VARIABLE

    def _content(self) -> str:
        if self.text is not None:
            return self.text
        content = content_of(self.path)
        if content is None:
            return ""
        if self.path.stat().st_mode & 0o077:
            raise InvalidRequest(f"Others can read or change {self.path}. chmod 600 {self.path}")
        return content.decode()

    def _edit(self, change: Callable[[str], str]) -> None:
        if self.text is not None:
            raise InvalidRequest(f"The sources are in {VARIABLE}. Change them there.")
        with alone():
            durable.write(self.path, change(self._content()).encode())

    def _settings(self, name: str, table: Any) -> SourceSettings:
        where = f"{self._origin}, source {name!r}"
        if not isinstance(table, dict) or not _SOURCE_NAME.fullmatch(name):
            raise InvalidRequest(f"{where}: a source is a table whose name has A-Z, 0-9, _ and -.")
        for key, value in table.items():
            if key not in _KEYS or not isinstance(value, _KEYS[key]):
                raise InvalidRequest(f"{where}: {key} is unknown or has another type.")
        missing = [key for key in ("kind", "address") if not table.get(key)]
        if missing:
            raise InvalidRequest(f"{where}: {missing[0]} is missing.")
        deletions = table.get("deletions", REMOVE)
        if deletions not in (REMOVE, KEEP):
            raise InvalidRequest(f"{where}: deletions is {REMOVE} or {KEEP}.")
        try:
            connection = table.get("connection", name)
            check_connection_id(connection)
            every = seconds_of(table.get("every", "10m"))
        except Refused as refused:
            raise InvalidRequest(f"{where}: {refused}") from None
        return SourceSettings(
            name=name,
            kind=table["kind"],
            address=table["address"],
            connection=connection,
            label=table.get("label"),
            every=every,
            folders=tuple(map(str, table.get("folders", ()))),
            deletions=deletions,
            paused=table.get("paused", False),
            secret=partial(secrets.read, self._key, name, table),
        )

    def keep_secret(self, name: str, entry: dict[str, Any], secret: str) -> None:
        """Puts a secret in the keyring, or else in the entry of a source."""
        if not secrets.keep(self._key, name, secret):
            entry["password"] = secret


def seconds_of(span: str) -> int:
    """The seconds of a time such as 10m; raises `Refused`."""
    match = _SPAN.fullmatch(span)
    if match is None:
        raise Refused(f"{span!r} is not a time such as 30s, 10m, 2h or 1d.")
    return int(match[1]) * _UNITS[match[2]]
