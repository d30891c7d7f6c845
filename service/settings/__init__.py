"""Every setting of a deployment, one field each. Only this package reads the environment.

`settings.toml` has the meaning of each, with an example.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evidence.limits import BUDGETS
from service import place
from service.place import Place
from service.settings import parsing

HIDDEN = "(hidden)"
THREADS, WAITING_THREADS = 2, 16  # for a store, and for an upstream
_FILE = Path(__file__).with_name("settings.toml")
TEXTS: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))


class SettingsError(ValueError):
    """All errors, one line each, with the variable and an example."""


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


def _setting(
    read: Callable[[str], Any], *, default: Any = None, variable: str = "", secret: bool = False
) -> Any:
    """A field of `Settings`. Without `variable` it is read from RUNG_ and the name of the field."""
    about = {"variable": variable, "default": default, "read": read, "secret": secret}
    # URLs may have credentials.
    return field(repr=not secret and read is not parsing.url, metadata=about)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of this deployment, one field each; `SETTINGS` has their declarations."""

    store: Place = _setting(place.read, default=Path("var/rung.db"))
    database_url: str | None = _setting(str, variable="DATABASE_URL", secret=True)
    store_read: tuple[str, ...] = _setting(place.replicas, default=(), secret=True)
    sources: str | None = _setting(str, secret=True)
    store_url: str | None = _setting(parsing.url)
    store_sha256: str | None = _setting(parsing.sha256)
    papers_db: Path | None = _setting(place.path)
    papers_assets: str | None = _setting(parsing.assets)
    papers_tokens: tuple[str, ...] = _setting(parsing.tokens, default=(), secret=True)
    papers_url: str | None = _setting(parsing.url)
    papers_sha256: str | None = _setting(parsing.sha256)
    upstream_url: str | None = _setting(parsing.address)
    introspection_url: str | None = _setting(parsing.address)
    introspection_client_id: str | None = _setting(str)
    introspection_client_secret: str | None = _setting(str, secret=True)
    audience: str | None = _setting(str)
    public_url: str | None = _setting(parsing.url)
    title: str | None = _setting(str)
    show_contents: str = _setting(parsing.choice("on", "off"), default="off")
    allowed_origins: tuple[str, ...] = _setting(parsing.origins, default=())
    allowed_hosts: tuple[str, ...] = _setting(parsing.words, default=())
    trusted_proxy_hops: int = _setting(parsing.whole, default=0)
    secret_key: str | None = _setting(str, secret=True)
    threads: int = _setting(parsing.count)
    port: int = _setting(parsing.port, default=8000, variable="PORT")
    workers: int = _setting(parsing.count, variable="WEB_CONCURRENCY")
    log_format: str | None = _setting(parsing.choice("json", "text"))
    log_level: str = _setting(parsing.choice("debug", "info", "warning", "error"), default="info")
    metrics: str = _setting(parsing.choice("local", "open", "off"), default="local")
    metrics_token: str | None = _setting(parsing.token, secret=True)
    rate_limit_token: str | None = _setting(parsing.rate, default="600/minute")
    rate_limit_address: str | None = _setting(parsing.rate, default="300/minute")
    rate_limit_failures: str | None = _setting(parsing.rate, default="30/minute")
    work_seconds: int | None = _setting(parsing.seconds, default=BUDGETS.work_seconds)
    caller_threads: int | None = _setting(parsing.count)
    rate_limit_storage: str | None = _setting(parsing.storage, secret=True)
    batch_messages: int = _setting(parsing.count, default=BUDGETS.batch_messages)
    drain_seconds: int = _setting(parsing.whole, default=5)
    answer_cache_bytes: int = _setting(parsing.whole, default=1_000_000)
    sign_in: str = _setting(parsing.choice("on", "off"), default="off")
    client_documents: str | None = _setting(parsing.choice("on", "off", "loopback"))
    authorization_servers: tuple[str, ...] = _setting(parsing.urls, default=())
    semantic: str = _setting(parsing.choice("on", "off"), default="on")
    compiled: str = _setting(parsing.choice("on", "off"), default="on")
    model: Path | None = _setting(place.path)
    embeddings_url: str | None = _setting(parsing.address)
    embeddings_model: str | None = _setting(str)
    embeddings_key_file: Path | None = _setting(place.path)
    embeddings_batch: int = _setting(parsing.count, default=16)
    embeddings_seconds: int = _setting(parsing.count, default=30)
    embeddings_send_texts: str = _setting(parsing.choice("yes", "no"), default="no")
    webhook_url: str | None = _setting(parsing.webhook, secret=True)
    webhook_secret_file: Path | None = _setting(place.path)

    @property
    def served(self) -> Place:
        """The store, with the replicas that may answer for it."""
        return place.with_replicas(self.store, self.store_read)

    @property
    def base(self) -> str:
        """The URL that clients use: the public one, or else that of this machine."""
        return self.public_url or f"http://127.0.0.1:{self.port}"

    @property
    def signs_in(self) -> bool:
        """Whether clients get tokens by sign-in."""
        return self.sign_in == "on"

    @property
    def documents(self) -> str:
        """Whether sign-in fetches the metadata of clients: `on`, `off` or `loopback`."""
        return self.client_documents or ("on" if self.base.startswith("https:") else "off")


def _declared(declared: "Field[Any]") -> Setting:
    metadata, texts = dict(declared.metadata), TEXTS["settings"][declared.name]
    metadata["variable"] = metadata["variable"] or f"RUNG_{declared.name.upper()}"
    help = texts["help"].format(threads=THREADS, waiting=WAITING_THREADS)
    return Setting(declared.name, **metadata, example=texts["example"], help=help)


SETTINGS: tuple[Setting, ...] = tuple(map(_declared, fields(Settings)))


def environment(**changes: str) -> dict[str, str]:
    """The environment for a process we start, with changes."""
    return {**os.environ, **changes}


def data_folder() -> Path:
    """The folder for data of this user that is not a store: models and tokens."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(os.path.expanduser(base)) / "rung"


def announce(**changes: str) -> None:
    """Changes the environment of this process, for libraries that read it."""
    os.environ.update(changes)


#: Credentials of the owner. With one in the environment, nothing starts.
OWNER_VARIABLES = ("RUNG_OWNER_TOKEN", "PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE")


@dataclass(frozen=True, slots=True)
class InForce:
    """An effective setting: its value and its origin, such as "default" or "environment"."""

    setting: Setting
    value: Any
    origin: str


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of the environment; raises `SettingsError` with every error in it."""
    effective, faults = examine(environ)
    if faults:
        raise SettingsError("\n".join(faults))
    return Settings(**{entry.setting.name: entry.value for entry in effective})


def examine(environ: Mapping[str, str] | None = None) -> tuple[list[InForce], list[str]]:
    """Every setting in the order of `SETTINGS`, and a line for every error.

    An invalid setting gets its default.
    """
    variables = os.environ if environ is None else environ
    faults = [
        f"{name} is an owner credential, which Rung refuses. Unset it, and use a client "
        "token (rung grant create)."
        for name in OWNER_VARIABLES
        if variables.get(name)
    ]
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        text = variables.get(setting.variable, "").strip()
        try:
            if text:
                values[setting.name] = setting.read(text)
        except ValueError as error:
            # Addresses may contain credentials before an @ or in a query.
            hidden = setting.secret or "@" in text or "?" in text
            fault = f"{setting.variable} is {HIDDEN if hidden else repr(text)}: it {error}"
            faults.append(f"{fault}, for example {setting.example}.")
    faults += [*_missing(values), *_sign_in_faults(values), *_leaving_texts(values)]
    rules = {name: (value, why) for name, value, why in _rules(values, variables)}
    explicit = {name: (value, "environment") for name, value in values.items()}
    defaults = {setting.name: (setting.default, "default") for setting in SETTINGS}
    effective = defaults | rules | explicit
    return [InForce(setting, *effective[setting.name]) for setting in SETTINGS], faults


def _rules(values: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """(name, value, why) of defaults that depend on the machine or on other settings."""
    if environ.get("DYNO"):
        yield "trusted_proxy_hops", 1, "DYNO is set"
    if values.get("database_url", "").startswith(place.SCHEMES):
        yield "store", place.read(values["database_url"]), "DATABASE_URL is set"
    yield "workers", os.cpu_count() or 1, "the number of cores"
    waits = bool(values.get("upstream_url"))
    threads = (WAITING_THREADS, "RUNG_UPSTREAM_URL is set") if waits else (THREADS, "default")
    yield "threads", *threads


#: Settings that require others: (any of these, requires this one).
_NEEDS = (
    ("store_url", "store_sha256"),
    ("papers_url", "papers_sha256"),
    ("introspection_url", "upstream_url"),
    ("introspection_url", "introspection_client_id"),
    ("introspection_url", "introspection_client_secret"),
    ("introspection_client_id", "introspection_url"),
    ("introspection_client_secret", "introspection_url"),
    ("audience", "introspection_url"),
    ("embeddings_url", "embeddings_model"),
    ("webhook_url", "webhook_secret_file"),
    ("webhook_secret_file", "webhook_url"),
)


def _missing(values: Mapping[str, Any]) -> list[str]:
    """A line for each setting that needs a missing one."""
    rows = {setting.name: setting for setting in SETTINGS}
    in_file = not values.get("database_url") and not isinstance(values.get("store"), place.Database)
    if values.get("store_read") and in_file:
        return ["RUNG_STORE_READ requires RUNG_STORE to be the URL of the primary database."]
    return [
        f"{rows[name].variable} requires {rows[need].variable}, for example {rows[need].example}."
        for name, need in _NEEDS
        if values.get(name) and not values.get(need)
    ]


def _sign_in_faults(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields an error message for each setting that prevents sign-in."""
    if values.get("sign_in") != "on":
        return
    public = urlsplit(values.get("public_url", "http://localhost"))
    local = public.hostname in parsing.LOOPBACK
    if public.path or public.query or not (local or public.scheme == "https"):
        yield (
            "RUNG_SIGN_IN requires an https RUNG_PUBLIC_URL (or http on loopback) without a path, "
            "for example https://rung.example.com."
        )
    if values.get("client_documents") == "loopback" and not local:
        yield "RUNG_CLIENT_DOCUMENTS=loopback requires RUNG_PUBLIC_URL to be on loopback."
    if values.get("store_url"):
        yield "RUNG_SIGN_IN requires a store to which grants can be added. Unset RUNG_STORE_URL."


def _leaving_texts(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields an error message if texts would leave this machine without permission."""
    host = urlsplit(values.get("embeddings_url", "http://localhost")).hostname
    if host not in parsing.LOOPBACK and values.get("embeddings_send_texts") != "yes":
        yield (
            "With this RUNG_EMBEDDINGS_URL, another machine receives the texts of records and "
            "questions. To allow it, set RUNG_EMBEDDINGS_SEND_TEXTS=yes. Otherwise, unset the URL."
        )
