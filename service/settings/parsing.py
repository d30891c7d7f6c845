"""Parses environment variables. A `ValueError` describes the valid values."""

import re
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

TOKEN_CHARS = 16  # shorter tokens can be guessed
PORT_MAX = 65_535
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _number(value: str, least: int, most: int | None = None) -> int:
    number = int(value) if re.fullmatch("[0-9]{1,18}", value) else None
    if number is None or number < least or (most is not None and number > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"must be a whole number {span}")
    return number


whole = partial(_number, least=0)
count = partial(_number, least=1)
port = partial(_number, least=0, most=PORT_MAX)


def url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http or https URL")
    return value.rstrip("/")


def address(value: str) -> str:
    """A URL to which paths can be appended, without credentials."""
    parsed = url(value)
    if "?" in value or "#" in value or "@" in urlsplit(value).netloc:
        raise ValueError("must be a URL without a user name, ? or #")
    return parsed


def webhook(value: str) -> str:
    """A URL that is private enough for events."""
    parts = urlsplit(value)
    is_private = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not (is_private and parts.hostname) or "@" in parts.netloc or parts.fragment:
        raise ValueError("must be an https URL (or http on loopback) without a user name or #")
    return value


def urls(value: str) -> tuple[str, ...]:
    return tuple(url(part) for part in words(value))


def origins(value: str) -> tuple[str, ...]:
    """Origins of pages, extensions and apps; `*` stands for any port of this machine."""
    return tuple(_origin(part.lower()) for part in words(value))


def _origin(value: str) -> str:
    origin = re.sub("(?<=[^/])/$", "", value)
    plain = origin.removesuffix(":*")
    if not re.fullmatch(r"null|file://|[a-z][a-z0-9+.-]*://[^/?#@*]*[^/?#@*:]", plain):
        raise ValueError("must list origins (of any scheme, without a path), or null")
    if plain != origin and urlsplit(plain).hostname not in LOOPBACK:
        raise ValueError("may have a * only as the port of localhost, 127.0.0.1 or [::1]")
    return origin


def assets(value: str) -> str:
    """A folder, or an address to which paths can be appended."""
    if value.startswith(("http://", "https://")):
        if "?" in value or "#" in value:
            raise ValueError("must be a URL without ? or #")
        return url(value)
    return value


def tokens(value: str) -> tuple[str, ...]:
    entries = words(value)
    if any(len(token) < TOKEN_CHARS for token in entries):
        raise ValueError(f"must be a list of tokens of at least {TOKEN_CHARS} characters each")
    return entries


def sha256(value: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", value):
        raise ValueError("must be a SHA-256 in hexadecimal")
    return value.lower()


def words(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.replace(",", " ").split() if part)


def without_secrets(value: str) -> str:
    """A URL without user, query and fragment, which may be secret. Other text is unchanged."""
    if "://" not in value:
        return value
    parts = urlsplit(value)
    host = parts.netloc.rpartition("@")[2]
    query = "?(hidden)" if parts.query else ""
    user = "(hidden)@" if "@" in parts.netloc else ""
    return f"{parts.scheme}://{user}{host}{parts.path}{query}"


def choice(*words: str) -> Callable[[str], str]:
    """Reads one of a few words."""

    def read(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.lower()

    return read


def token(value: str) -> str:
    """A token that is valid in a bearer header."""
    if not re.fullmatch(rf"[A-Za-z0-9._~+/-]{{{TOKEN_CHARS},}}=*", value):
        raise ValueError(f"must be a token of at least {TOKEN_CHARS} letters, digits or ._~+/-")
    return value


def seconds(value: str) -> int | None:
    """A number of seconds; None for `off`."""
    return None if value.lower() == "off" else count(value)


def rate(value: str) -> str | None:
    """`600/minute`; None for `off`."""
    if value.lower() == "off":
        return None
    if not re.fullmatch("[1-9][0-9]{0,8}/(second|minute|hour|day)", value):
        raise ValueError("must be a count per second, minute, hour or day (600/minute), or off")
    return value


def storage(value: str) -> str:
    try:
        if value.startswith(("redis://", "rediss://", "memory://")) and urlsplit(value).port != 0:
            return value
    except ValueError:  # of the port
        pass
    raise ValueError("must be a redis:// or rediss:// URL")
