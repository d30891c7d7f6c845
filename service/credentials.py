"""The token of a local server: from a file of its own, or from the PDPP credential cache.

The cache has one file for each host, `clients/<host>.json`, which `pdpp connect` writes. Here it
is only read. Owner credentials are refused with `Forbidden`; everything else that makes a
credential useless is `Unauthenticated`, with the command that makes a new one. No error holds a
token.
"""

import os
import re
import shlex
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from evidence.errors import Forbidden, InvalidRequest, Unauthenticated

OWNER: Final = "owner"
KIND_MEMBERS: Final = ("pdpp_token_kind", "token_kind", "kind", "role")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def provider_url(text: str) -> str:
    """The one spelling of a provider's address; https where no scheme is given.

    User, password, query, fragment, default port and trailing slashes are left out. Raises
    `InvalidRequest`.
    """
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port
    except ValueError:
        host, port = "", None
    if not _HOST.fullmatch(host) or parts.scheme not in DEFAULT_PORTS:
        raise InvalidRequest(
            "The provider's address is not usable.", hint="Give one like https://pdpp.example.com."
        )
    name = f"[{host}]" if ":" in host else host
    if port not in (None, DEFAULT_PORTS[parts.scheme]):
        name += f":{port}"
    return f"{parts.scheme}://{name}{parts.path.rstrip('/')}"


def cache_file(root: Path, provider: str) -> Path:
    """Where the cache under `root` keeps what it knows of the host of `provider`."""
    return root / "clients" / (re.sub(r"[^A-Za-z0-9.-]", "_", urlsplit(provider).netloc) + ".json")


def from_cache(path: Path, provider: str, now: datetime) -> str:
    """The client token that `path` holds for `provider`, as `provider_url` spells it."""
    connect = shlex.join(["pdpp", "connect", provider])
    try:
        document = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise _useless(
            "not_connected",
            f"There is no credential for {provider}: {path} is not there.",
            f"Run `{connect}`, or put a client token into RUNG_TOKEN.",
        ) from None
    except (OSError, orjson.JSONDecodeError):
        raise _invalid(path, "cannot be read as JSON", connect) from None
    credential = document.get("credential") if isinstance(document, dict) else None
    if not isinstance(credential, dict):
        raise _invalid(path, "holds no credential", connect)
    if _is_owners(document) or _is_owners(credential):
        raise Forbidden(
            f"{path} holds an owner credential, which is refused.",
            hint=f"Get a client token: run `{connect}`.",
        )
    _check_provider(document, path, provider)
    _check_expiry(credential.get("expires_at"), path, connect, now)
    token, kind = credential.get("access_token"), credential.get("token_type")
    if kind is not None and str(kind).casefold() != "bearer":
        raise _invalid(path, "holds a token that is no bearer token", connect)
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise _invalid(path, "holds no token", connect)
    return token


def from_file(path: Path) -> str:
    """The token that is all there is in `path`."""
    try:
        found = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise _invalid(path, "cannot be read", "rung grant create") from None
    return from_text(found, str(path))


def from_text(text: str, place: str) -> str:
    """The token in `text`; `place` names its origin in errors."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise _useless(
            "credential_invalid", f"{place} holds no token.", "Put a client token there."
        )
    return token


def exposure(path: Path) -> str | None:
    """A warning where others on this machine may read the file; None where not."""
    if os.name != "posix" or not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    return f"Others can read {path}. Run `{shlex.join(['chmod', '600', str(path)])}`."


def _is_owners(members: dict[str, Any]) -> bool:
    found = (members.get(name) for name in KIND_MEMBERS)
    return any(OWNER in str(kind).casefold() for kind in found)


def _check_provider(document: dict[str, Any], path: Path, provider: str) -> None:
    """Refuses what belongs to another provider on that host: its token is for nobody else."""
    parts = urlsplit(provider)
    told = document.get("provider_url") or f"{parts.scheme}://{parts.netloc}"
    try:
        same = provider_url(told) == provider
    except (InvalidRequest, TypeError):
        same = False
    if not same:
        connect = shlex.join(["pdpp", "connect", provider, "--cache-root"])
        raise _useless(
            "not_connected",
            f"{path} is of another provider on that host, not of {provider}.",
            f"Give this one a cache of its own: `{connect} DIR`, and the same --cache-root here.",
        )


def _check_expiry(expires_at: Any, path: Path, connect: str, now: datetime) -> None:
    if expires_at is None:
        return
    try:
        end = datetime.fromisoformat(expires_at)
    except (TypeError, ValueError):
        raise _invalid(path, "says no time in `expires_at`", connect) from None
    if (end if end.tzinfo else end.replace(tzinfo=UTC)) <= now:
        raise _useless(
            "credential_expired", f"The credential in {path} has expired.", f"Run `{connect}`."
        )


def _invalid(path: Path, why: str, command: str) -> Unauthenticated:
    return _useless("credential_invalid", f"{path} {why}.", f"Run `{command}`.")


def _useless(code: str, message: str, hint: str) -> Unauthenticated:
    return Unauthenticated(message, code=code, hint=hint)
