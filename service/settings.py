"""Every setting of a deployment: one row each, read from the environment here and nowhere else."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOKEN_CHARS = 16  # shorter tokens can be guessed
THREADS, WAITING_THREADS = 2, 16  # over a store, and where they wait for an upstream


class SettingsError(ValueError):
    """All faults at once, a line each: the variable, what is wrong, and an example."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable. `read` turns its text into a value or raises `ValueError` with the reason."""

    name: str
    variable: str
    default: Any
    read: Callable[[str], Any]
    example: str
    help: str
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of this deployment; see `SETTINGS` for what each means."""

    store: Path
    papers_db: Path | None
    papers_assets: str | None
    papers_tokens: tuple[str, ...] = field(repr=False)
    papers_url: str | None
    papers_sha256: str | None
    upstream_url: str | None
    introspection_url: str | None
    introspection_client_id: str | None
    introspection_client_secret: str | None = field(repr=False)
    audience: str | None
    public_url: str | None
    allowed_origins: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    trusted_proxy_hops: int
    secret_key: str | None = field(repr=False)
    authorization_servers: tuple[str, ...]
    threads: int
    port: int
    workers: int


def _text(value: str) -> str:
    return value


def _path(value: str) -> Path:
    return Path(value).expanduser()


def _whole(value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise ValueError("must be a whole number")
    return int(value)


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http or https URL")
    return value.rstrip("/")


def _address(value: str) -> str:
    """An address that paths can be appended to, and that holds no credentials."""
    found = _url(value)
    if "?" in value or "#" in value or "@" in urlsplit(value).netloc:
        raise ValueError("must be an address without user, ? and #")
    return found


def _urls(value: str) -> tuple[str, ...]:
    return tuple(_url(part) for part in _words(value))


def _assets(value: str) -> str:
    """A folder, or an address that paths can be appended to."""
    if value.startswith(("http://", "https://")):
        if "?" in value or "#" in value:
            raise ValueError("must be an address without ? and #")
        return _url(value)
    return value


def _tokens(value: str) -> tuple[str, ...]:
    found = _words(value)
    if any(len(token) < TOKEN_CHARS for token in found):
        raise ValueError(f"must hold tokens of at least {TOKEN_CHARS} characters")
    return found


def _sha256(value: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", value):
        raise ValueError("must be a SHA-256 in hexadecimal")
    return value.lower()


def _words(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.replace(",", " ").split() if part)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "store",
        "RUNG_STORE",
        Path("var/rung.db"),
        _path,
        "/data/rung.db",
        "The file of the embedded store.",
    ),
    Setting(
        "papers_db",
        "RUNG_PAPERS_DB",
        None,
        _path,
        "/data/papers/snapshot.db",
        "A deepresearch-flow snapshot; serves papers at /mcp/papers and /papers/v1.",
    ),
    Setting(
        "papers_assets",
        "RUNG_PAPERS_ASSETS",
        None,
        _assets,
        "https://assets.internal/static",
        "Folder or internal HTTP address of the snapshot's static files; `static` beside it "
        "otherwise.",
    ),
    Setting(
        "papers_tokens",
        "RUNG_PAPERS_TOKENS",
        (),
        _tokens,
        "two-or-more-long-random-words",
        "Tokens that may read papers; anybody may where none is named.",
        secret=True,
    ),
    Setting(
        "papers_url",
        "RUNG_PAPERS_URL",
        None,
        _url,
        "https://files.example.com/papers.tar.gz",
        "A snapshot, or a tar archive of one with its static folder, fetched at start.",
    ),
    Setting(
        "papers_sha256",
        "RUNG_PAPERS_SHA256",
        None,
        _sha256,
        "64 hexadecimal digits",
        "The checksum of what RUNG_PAPERS_URL names; needed with it.",
    ),
    Setting(
        "upstream_url",
        "RUNG_UPSTREAM_URL",
        None,
        _address,
        "https://pdpp.example.com",
        "A PDPP resource server: it gets every token that is not the store's.",
    ),
    Setting(
        "introspection_url",
        "RUNG_INTROSPECTION_URL",
        None,
        _address,
        "https://as.example.com/introspect",
        "Where tokens of the upstream are introspected; it is asked for its schema otherwise.",
    ),
    Setting(
        "introspection_client_id",
        "RUNG_INTROSPECTION_CLIENT_ID",
        None,
        _text,
        "rung",
        "Who we are at RUNG_INTROSPECTION_URL; needed with it.",
    ),
    Setting(
        "introspection_client_secret",
        "RUNG_INTROSPECTION_CLIENT_SECRET",
        None,
        _text,
        "a long random word",
        "Our secret there; needed with it.",
        secret=True,
    ),
    Setting(
        "audience",
        "RUNG_AUDIENCE",
        None,
        _text,
        "https://rung.example.com/mcp",
        "What introspected tokens must be made for, where introspection says it.",
    ),
    Setting(
        "public_url",
        "RUNG_PUBLIC_URL",
        None,
        _url,
        "https://rung.example.com",
        "The address clients use; makes the links of hits and documents absolute.",
    ),
    Setting(
        "allowed_origins",
        "RUNG_ALLOWED_ORIGINS",
        (),
        _urls,
        "https://app.example.com",
        "Browser origins that may call, beside the public and the loopback ones.",
    ),
    Setting(
        "allowed_hosts",
        "RUNG_ALLOWED_HOSTS",
        (),
        _words,
        "rung.example.com",
        "Host names /mcp answers to; any where none is named.",
    ),
    Setting(
        "trusted_proxy_hops",
        "RUNG_TRUSTED_PROXY_HOPS",
        0,
        _whole,
        "1",
        "How many proxies in front set X-Forwarded-*; 1 where DYNO is set.",
    ),
    Setting(
        "secret_key",
        "RUNG_SECRET_KEY",
        None,
        _text,
        "32 random bytes as hex",
        "Seals cursors and the tokens of package members; made and kept in the store, needed "
        "where several hosts share one.",
        secret=True,
    ),
    Setting(
        "authorization_servers",
        "RUNG_AUTHORIZATION_SERVERS",
        (),
        _urls,
        "https://as.example.com",
        "Authorization servers that hand out tokens, for protected-resource metadata.",
    ),
    Setting(
        "threads",
        "RUNG_THREADS",
        None,
        _whole,
        "16",
        f"Threads of a worker; {THREADS}, or {WAITING_THREADS} with RUNG_UPSTREAM_URL. Give more "
        "where packages have members at other servers.",
    ),
    Setting("port", "PORT", 8000, _whole, "8000", "The port to listen on."),
    Setting(
        "workers",
        "WEB_CONCURRENCY",
        None,
        _whole,
        "2",
        "Worker processes; as many as there are cores by default.",
    ),
)


def environment(**changes: str) -> dict[str, str]:
    """The environment for a process we start, with changes."""
    return {**os.environ, **changes}


#: Credentials of the owner. Where one stands in the environment, nothing starts.
OWNER_VARIABLES = ("RUNG_OWNER_TOKEN", "PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE")


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of the environment; raises `SettingsError` with every fault in it."""
    found = os.environ if environ is None else environ
    faults = [
        f"{name} holds an owner credential. Owner tokens are refused: unset it and use a client "
        "token (rung grant create)."
        for name in OWNER_VARIABLES
        if found.get(name)
    ]
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        text = found.get(setting.variable, "").strip()
        values[setting.name] = setting.default
        if text:
            try:
                values[setting.name] = setting.read(text)
            except ValueError as error:
                # Addresses may hold credentials before an @ or in a query.
                hidden = setting.secret or "@" in text or "?" in text
                shown = "(hidden)" if hidden else repr(text)
                faults.append(
                    f"{setting.variable} is {shown}: it {error}, such as {setting.example}."
                )
    faults += _missing(values)
    if faults:
        raise SettingsError("\n".join(faults))
    if found.get("DYNO") and not found.get("RUNG_TRUSTED_PROXY_HOPS"):
        values["trusted_proxy_hops"] = 1
    values["workers"] = values["workers"] or os.cpu_count() or 1
    values["threads"] = values["threads"] or (
        WAITING_THREADS if values["upstream_url"] else THREADS
    )
    return Settings(**values)


#: Settings that are nothing without another: (of these, needs this one).
_NEEDS = (
    ("papers_url", "papers_sha256"),
    ("introspection_url", "upstream_url"),
    ("introspection_url", "introspection_client_id"),
    ("introspection_url", "introspection_client_secret"),
    ("introspection_client_id", "introspection_url"),
    ("introspection_client_secret", "introspection_url"),
    ("audience", "introspection_url"),
)


def _missing(values: Mapping[str, Any]) -> list[str]:
    """A line for each setting that needs one which is not there."""
    rows = {setting.name: setting for setting in SETTINGS}
    return [
        f"{rows[name].variable} needs {rows[other].variable}, such as {rows[other].example}."
        for name, other in _NEEDS
        if values[name] and not values[other]
    ]
