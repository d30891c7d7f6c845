"""The owner's file of sources: `sources.toml` beside the configuration file, with mode 0600.

    ["/home/ada/var/rung.db".calendar]
    kind = "url"
    address = "https://calendar.example.com/ada.ics"
    connection = "calendar"

Only what this file names ever runs; a store brings nothing. `RUNG_SOURCES` replaces the file: there
the tables have the names alone.

Secrets are from a command, the file, or the system keyring. No error contains one, and no command
gets one as an argument.
"""

import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Final

from evidence.errors import InvalidRequest, Unauthenticated
from evidence.names import Refused, check_connection_id
from evidence.times import duration
from service import durable
from service.clients import toml
from service.clients.writing import FOREIGN, alone, content_of
from service.place import Place
from service.syncing.connector import KEEP, REMOVE, SourceSettings
from service.syncing.kinds.command import environment, words_of

NAME: Final = "sources.toml"
VARIABLE: Final = "RUNG_SOURCES"
#: The longest time of a command that prints a password.
SECONDS: Final = 60
_SERVICE: Final = "rung source"
_SOURCE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SECRETS: Final = ("password", "password_command")
_TEXTS: Final = ("kind", "address", "connection", "label", "every", "deletions", *_SECRETS)
#: Each key with the type of its value.
_KEYS: Final[dict[str, type]] = dict.fromkeys(_TEXTS, str) | {"folders": list, "paused": bool}


class OwnerFile:
    """The sources of one store in the owner's file.

    The file is beside the configuration file `config`; `RUNG_SOURCES` in `environ` replaces it.
    """

    def __init__(self, config: Path, store: Place, environ: Mapping[str, str]) -> None:
        self.path, self.store = config.with_name(NAME), store
        self._key, self._text = str(store.absolute()), environ.get(VARIABLE)
        self._origin = str(self.path) if self._text is None else VARIABLE

    def sources(self) -> dict[str, SourceSettings]:
        """The sources by name; raises `InvalidRequest` for an invalid file."""
        tables = self._document().get(self._key, {})
        return {name: self._settings(name, table) for name, table in tables.items()}

    def put(self, name: str, entry: dict[str, Any]) -> None:
        """Adds a source, or replaces it; raises `InvalidRequest` if it cannot be added."""
        self._settings(name, entry)
        self._edit(lambda text: toml.put(text, (self._key, name), entry))

    def assign(self, name: str, **values: object) -> None:
        """Sets keys of a source, or removes those whose value is None.

        Raises `InvalidRequest` if there is no such source.
        """
        self.source(name)
        self._edit(lambda text: toml.assign(text, (self._key, name), values))

    def source(self, name: str) -> SourceSettings:
        """A source; raises `InvalidRequest` if there is none, or it is invalid."""
        tables = self._document().get(self._key, {})
        if name not in tables:
            raise InvalidRequest(
                f"{self._origin} has no source {name!r} for this store. List the sources: rung "
                "source list"
            )
        return self._settings(name, tables[name])

    def remove(self, name: str) -> None:
        """Removes a source, and its secret from the keyring."""
        self.source(name)
        self._edit(lambda text: toml.take(text, (self._key, name)))
        _in_keyring("delete", self._key, name)

    def set_secret(self, name: str, secret: str) -> str:
        """Replaces the password of a source, or its command; returns where it is stored."""
        self.assign(name, password_command=None, password=None)
        _in_keyring("set", self._key, name, secret)
        if _in_keyring("get", self._key, name) == secret:
            return "the system keyring"
        self.assign(name, password=secret)
        return str(self.path)

    def other_stores(self) -> list[str]:
        """The files of the other stores that have sources here."""
        stores = [store for store, tables in self._document().items() if tables]
        # A URL may contain a password.
        return [store for store in stores if store != self._key and "://" not in store]

    def _document(self) -> dict[str, Any]:
        """The tables of sources by store."""
        try:
            document = tomllib.loads(self._content() if self._text is None else self._text)
        except ValueError as error:
            raise InvalidRequest(f"{self._origin} is not TOML: {error}.") from None
        return document if self._text is None else {self._key: document}

    def _content(self) -> str:
        content = content_of(self.path)
        if content is not None and self.path.stat().st_mode & FOREIGN:
            raise InvalidRequest(
                f"Other users can read or change {self.path}. Run: chmod 600 {self.path}"
            )
        return (content or b"").decode()

    def _edit(self, change: Callable[[str], str]) -> None:
        if self._text is not None:
            raise InvalidRequest(f"The sources are set in {VARIABLE}. Change that variable.")
        with alone():
            durable.write(self.path, change(self._content()).encode())

    def _settings(self, name: str, table: Any) -> SourceSettings:
        """A source of the file; raises `InvalidRequest` with its place if it is not valid."""
        try:
            entry = _checked(name, table)
        except Refused as refused:
            raise InvalidRequest(f"{self._origin}, source {name!r}: {refused}") from None
        return SourceSettings(**entry, secret=partial(_secret, self._key, name, table))


def _checked(name: str, table: Any) -> dict[str, Any]:
    """The settings in the table of a source without its secrets; raises `Refused`."""
    if not isinstance(table, dict) or not _SOURCE_NAME.fullmatch(name):
        raise Refused("a source must be a table whose name has only letters, digits, _ and -.")
    for key, value in table.items():
        if key not in _KEYS or not isinstance(value, _KEYS[key]):
            raise Refused(f"the key {key} is unknown, or its value has the wrong type.")
    if missing := [key for key in ("kind", "address") if not table.get(key)]:
        raise Refused(f"{missing[0]} is missing.")
    given = {key: value for key, value in table.items() if key not in _SECRETS}
    entry = {"connection": name, "every": "10m", "folders": (), "deletions": REMOVE, **given}
    if entry["deletions"] not in (REMOVE, KEEP):
        raise Refused(f"deletions must be {REMOVE} or {KEEP}.")
    check_connection_id(entry["connection"])
    folders = tuple(map(str, entry["folders"]))
    if (every := duration(entry["every"])) is None:
        raise Refused(f"{entry['every']!r} is not a duration such as 30s, 10m, 2h or 1d.")
    return {**entry, "name": name, "every": int(every.total_seconds()), "folders": folders}


def _secret(store: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """The secret of a source; None if it has none."""
    if line := entry.get("password_command"):
        return _printed(words_of(line), name)
    if "password" in entry:
        return str(entry["password"])
    return _in_keyring("get", store, name) or None


def _printed(words: list[str], name: str) -> str:
    """The first line that a command prints."""
    with suppress(OSError, subprocess.SubprocessError):
        printed = subprocess.check_output(
            words, stdin=DEVNULL, stderr=DEVNULL, timeout=SECONDS, env=environment()
        )
        if secret := printed.decode(errors="replace").partition("\n")[0].strip():
            return secret
    raise Unauthenticated(
        f"The password command of {name!r} failed or printed no password. To see why, run it."
    )


def _in_keyring(action: str, store: str, name: str, *secret: str) -> str | None:
    """Gets, sets or deletes a secret in the keyring; None if there is none with a safe backend."""
    with suppress(Exception):  # of any backend, or its package is not installed
        import keyring

        if keyring.get_keyring().priority >= 1:
            do: Callable[..., str | None] = getattr(keyring, f"{action}_password")
            return do(_SERVICE, f"{store} {name}", *secret)
    return None
