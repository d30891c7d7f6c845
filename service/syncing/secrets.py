"""Secrets of sources: from a command, the owner's file, or the keyring of the system.

No error contains a secret, and no command gets one as an argument.
"""

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final

from evidence.errors import Unauthenticated
from service.syncing.kinds.command import environment, words_of

SECONDS: Final = 60
_SERVICE: Final = "rung source"


def read(store: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """The secret of a source; None if it has none."""
    if line := entry.get("password_command"):
        return _printed(words_of(line), name)
    if "password" in entry:
        return str(entry["password"])
    keyring = _keyring()
    with suppress(Exception):  # of any backend
        return str(keyring.get_password(_SERVICE, f"{store} {name}") or "") or None
    return None


def _printed(words: list[str], name: str) -> str:
    """The first line that a command prints."""
    silent: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        answer = subprocess.run(
            words, stdout=subprocess.PIPE, timeout=SECONDS, env=environment(), check=True, **silent
        )
    except (OSError, subprocess.SubprocessError):
        raise Unauthenticated(
            f"The password command of {name!r} failed. Run it in a shell to see why."
        ) from None
    secret = str(answer.stdout.decode(errors="replace")).partition("\n")[0].strip()
    if not secret:
        raise Unauthenticated(f"The password command of {name!r} printed nothing.")
    return secret


def keep(store: str, name: str, secret: str) -> bool:
    """Puts a secret in the keyring; False if there is none."""
    keyring = _keyring()
    with suppress(Exception):
        if keyring:
            keyring.set_password(_SERVICE, f"{store} {name}", secret)
            return True
    return False


def forget(store: str, name: str) -> None:
    """Removes a secret from the keyring."""
    keyring = _keyring()
    with suppress(Exception):
        if keyring:
            keyring.delete_password(_SERVICE, f"{store} {name}")


def _keyring() -> Any:
    """The keyring, if the package is installed and a safe backend works."""
    if find_spec("keyring") is None:
        return None
    import keyring

    with suppress(Exception):
        return keyring if keyring.get_keyring().priority >= 1 else None
    return None
