"""Validates redirect URIs and compares them with registered ones."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

MOST_CHARS: Final = 512
#: Schemes that a browser handles itself. Other schemes belong to applications.
REFUSED: Final = frozenset(
    "about blob chrome data file filesystem ftp http javascript mailto view-source vbscript ws wss"
    " feed intent jar resource search search-ms shell sms tel".split()
)
#: RFC 3986, without a fragment, a user or characters that a browser would rewrite.
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9\-._~:/?\[\]!$&()*+,;=%]+")
_LOOPBACK: Final = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?([/?].*)?")
_HOST: Final = re.compile(r"([a-z0-9-]+\.)*[a-z0-9-]+|\[[0-9a-f:.]+\]", re.IGNORECASE)


def acceptable(uri: object) -> bool:
    """Whether this URI can be registered: https, http on loopback, or an application's scheme."""
    if not isinstance(uri, str) or len(uri) > MOST_CHARS or not _URI.fullmatch(uri):
        return False
    if _LOOPBACK.fullmatch(uri):
        return True
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(_HOST.fullmatch(_name(parts, host)))
    return parts.scheme not in REFUSED and not parts.scheme.startswith("ms-")  # Windows' own


def _name(parts: SplitResult, host: str) -> str:
    return f"[{host}]" if parts.netloc.startswith("[") else host


def matches(uri: str, registered: Iterable[str]) -> bool:
    """Whether a URI is registered. On loopback, the port may differ."""
    if not acceptable(uri):
        return False
    asked = _without_port(uri)
    return any(uri == one or (asked and asked == _without_port(one)) for one in registered)


def _without_port(uri: str) -> tuple[str, str] | None:
    """Returns (host, rest) of an http URI on loopback; None for other URIs."""
    found = _LOOPBACK.fullmatch(uri)
    return (found[1], found[2] or "") if found else None


def destination(uri: str) -> tuple[str, str]:
    """Returns (where the URI leads, and "web", "loopback" or "application")."""
    parts = urlsplit(uri)
    if _LOOPBACK.fullmatch(uri):
        return f"{parts.scheme}://{parts.netloc}", "loopback"
    if parts.scheme == "https":
        return f"{parts.scheme}://{parts.netloc}", "web"
    return f"{parts.scheme}:", "application"
