"""Keeps the tokens of `rung login` in the credential cache, and refreshes them.

Credentials of other programs are refreshed too if they have a refresh token.
"""

import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from evidence.errors import EvidenceError, Unauthenticated, Unavailable
from evidence.limits import BUDGETS
from evidence.values import AUTHORIZATION_SERVER
from evidence.work import Deadline
from service import credentials, durable, settings
from service.clients.writing import alone
from service.sources.remote import outbound

EXPIRED = "credential_expired"
#: An access token is replaced this many seconds before it expires.
EARLY_SECONDS = 30
_CODE = re.compile(r"[a-z_]{1,40}")


def root(provider: str = "") -> Path:
    """The folder of the credential cache: the one that PDPP_CACHE_ROOT names, else one outside of
    any checkout. If only `.pdpp` in this folder has a credential for `provider`, it is that."""
    environ, local = settings.environment(), Path(".pdpp")
    if configured := environ.get("PDPP_CACHE_ROOT"):
        return Path(configured)
    try:
        home = Path(environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "rung"
    except RuntimeError:  # no home folder
        return local
    old, new = (credentials.cache_file(folder, provider) for folder in (local, home))
    return local if provider and old.exists() and not new.exists() else home


def saved(provider: str, cache: Path) -> str:
    """The access token for `provider`, in the form of `provider_url`; refreshed if it has expired.

    Raises the errors of `credentials.from_cache` and of the server.
    """
    path = credentials.cache_file(cache, provider)
    document = read(path)  # first, so that a refresh by another process is noticed
    try:
        return credentials.from_cache(path, provider, datetime.now(UTC))
    except Unauthenticated as error:
        renewable = {"client_id", "token_endpoint"} <= document.keys()
        if error.code != EXPIRED or not renewable:
            raise
    try:
        with alone():
            if read(path) == document:  # no other process has refreshed it
                _refresh(path, document, provider)
            return credentials.from_cache(path, provider, datetime.now(UTC))
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error


def has_sign_in(base: str) -> bool:
    """True if the server at `base` has metadata of its own sign-in."""
    try:
        return bool(ask("GET", base + AUTHORIZATION_SERVER).get("issuer") == base)
    except EvidenceError:
        return False


def _refresh(path: Path, document: dict[str, Any], provider: str) -> None:
    """Replaces the tokens in the file.

    The caller holds its lock, because a refresh token works once.
    """
    form = {
        "grant_type": "refresh_token",
        "refresh_token": str(document["credential"].get("refresh_token")),
        "client_id": document["client_id"],
    }
    try:
        keep(path, document, ask("POST", document["token_endpoint"], data=form))
    except Unauthenticated as error:
        error.message = f"The sign-in at {provider} has ended. {error.message}"
        command = shlex.join(["rung", "login", provider])
        error.code, error.hint = EXPIRED, f"To sign in again, run `{command}`."
        raise


def ask(method: str, url: str, **options: Any) -> dict[str, Any]:
    """The JSON object from an authorization server; raises `Unauthenticated` if it refuses."""
    deadline = Deadline.after(BUDGETS.upstream_seconds)
    answer = outbound.ask(
        method, url, deadline=deadline, most_bytes=BUDGETS.upstream_bytes, **options
    )
    try:
        body = orjson.loads(answer.body or b"{}")
    except orjson.JSONDecodeError:
        body = None
    if answer.status >= 500 or answer.status == 429:
        raise Unavailable(f"The server returned status {answer.status}. Try again later.")
    if answer.status not in (200, 201) or not isinstance(body, dict):
        code = str(body.get("error")) if isinstance(body, dict) else ""
        why = code if _CODE.fullmatch(code) else f"status {answer.status}"
        raise Unauthenticated(f"The server refused the request: {why}.")
    return body


def keep(path: Path, document: dict[str, Any], answer: dict[str, Any]) -> None:
    """Writes the tokens of an answer to the file of a credential; only its user can read it."""
    seconds = answer.get("expires_in")
    fresh = {name: answer[name] for name in ("access_token", "refresh_token") if name in answer}
    end = None
    if isinstance(seconds, int):
        end = datetime.now(UTC) + timedelta(seconds=seconds - EARLY_SECONDS)
    previous = document.get("credential", {})
    document["credential"] = {**previous, **fresh, "expires_at": end and end.isoformat()}
    durable.write(path, orjson.dumps(document))


def read(path: Path) -> dict[str, Any]:
    """The document of a credential; empty if the file has none."""
    try:
        document = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return document if isinstance(document, dict) else {}
