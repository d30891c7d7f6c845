"""The token for a PDPP server: from a separate file, or from the PDPP credential cache.

The cache has one file for each host, `clients/<host>.json`, which `pdpp connect` writes. This
module only reads it. Owner credentials are refused with `Forbidden`; any other unusable credential
raises `Unauthenticated`, with the command that creates a new one. No error contains a token.
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

#: The environment variable from which commands, and clients that support it, read the token.
TOKEN_VARIABLE: Final = "RUNG_TOKEN"
OWNER: Final = "owner"
KIND_MEMBERS: Final = ("pdpp_token_kind", "token_kind", "kind", "role")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def provider_url(text: str) -> str:
    """The canonical address of a provider; https if no scheme is given.

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
            "The provider's URL is invalid.", hint="Use a URL such as https://pdpp.example.com."
        )
    name = f"[{host}]" if ":" in host else host
    if port not in (None, DEFAULT_PORTS[parts.scheme]):
        name += f":{port}"
    return f"{parts.scheme}://{name}{parts.path.rstrip('/')}"


def cache_file(root: Path, provider: str) -> Path:
    """The path of the cache entry for the host of `provider` under `root`."""
    return root / "clients" / (re.sub(r"[^A-Za-z0-9.-]", "_", urlsplit(provider).netloc) + ".json")


def from_cache(path: Path, provider: str, now: datetime) -> str:
    """The client token in `path` for `provider`, in the form of `provider_url`."""
    connect = shlex.join(["pdpp", "connect", provider])
    try:
        document = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise _useless(
            "not_connected",
            f"There is no credential for {provider}: {path} does not exist.",
            f"Run `{connect}`, or set RUNG_TOKEN to a client token.",
        ) from None
    except (OSError, orjson.JSONDecodeError):
        raise _invalid(path, "cannot be read as JSON", connect) from None
    credential = document.get("credential") if isinstance(document, dict) else None
    if not isinstance(credential, dict):
        raise _invalid(path, "contains no credential", connect)
    if _is_owners(document) or _is_owners(credential):
        raise Forbidden(
            f"{path} contains an owner credential, which Rung refuses.",
            hint=f"Get a client token: run `{connect}`.",
        )
    _check_provider(document, path, provider)
    _check_expiry(credential.get("expires_at"), path, connect, now)
    token, kind = credential.get("access_token"), credential.get("token_type")
    if kind is not None and str(kind).casefold() != "bearer":
        raise _invalid(path, "contains a token that is not a bearer token", connect)
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise _invalid(path, "contains no token", connect)
    return token


def from_file(path: Path) -> str:
    """The token in the file `path`, which contains nothing else."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise _useless(
            "credential_invalid",
            f"{path} cannot be read.",
            "Check the file, or create a token: run `rung grant create`.",
        ) from None
    return from_text(text, str(path))


def from_text(text: str, origin: str) -> str:
    """The token in `text`; `origin` names the origin of the text."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise _useless(
            "credential_invalid", f"{origin} contains no token.", "Provide a client token."
        )
    return token


def exposure(path: Path) -> str | None:
    """A warning if other users of this machine can read the file, else None."""
    if os.name != "posix" or not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    return f"Other users can read {path}. Run `{shlex.join(['chmod', '600', str(path)])}`."


def _is_owners(members: dict[str, Any]) -> bool:
    kinds = (members.get(name) for name in KIND_MEMBERS)
    return any(OWNER in str(kind).casefold() for kind in kinds)


def _check_provider(document: dict[str, Any], path: Path, provider: str) -> None:
    """Refuses a credential of another provider on the same host."""
    parts = urlsplit(provider)
    stored = document.get("provider_url") or f"{parts.scheme}://{parts.netloc}"
    try:
        same = provider_url(stored) == provider
    except (InvalidRequest, TypeError):
        same = False
    if not same:
        connect = shlex.join(["pdpp", "connect", provider, "--cache-root"])
        raise _useless(
            "not_connected",
            f"{path} belongs to another provider on the same host, not to {provider}.",
            f"Use a separate cache: run `{connect} DIR`, and pass the same option to this command.",
        )


def _check_expiry(expires_at: Any, path: Path, connect: str, now: datetime) -> None:
    if expires_at is None:
        return
    try:
        end = datetime.fromisoformat(expires_at)
    except (TypeError, ValueError):
        raise _invalid(path, "has no valid time in `expires_at`", connect) from None
    if (end if end.tzinfo else end.replace(tzinfo=UTC)) <= now:
        raise _useless(
            "credential_expired", f"The credential in {path} has expired.", f"Run `{connect}`."
        )


def _invalid(path: Path, why: str, command: str) -> Unauthenticated:
    return _useless("credential_invalid", f"{path} {why}.", f"Run `{command}`.")


def _useless(code: str, message: str, hint: str) -> Unauthenticated:
    return Unauthenticated(message, code=code, hint=hint)
