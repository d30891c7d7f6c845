"""The path of a browser session: 128 random bits, with which its page and cookie paths begin.

Browsers send a cookie to every port of its host, but only below its path. A client that listens on
another port of this host does not know the path, so it gets no cookie. The path is read from the
address of a request and taken off before routing, so that routes, logs and links to keep are those
of the plain address. No redirect and no other cookie has it. `session.js` remembers it in the
browser, in storage that belongs to one port, and removes it from the address that is shown.
"""

import re
from collections.abc import Callable
from secrets import token_urlsafe
from typing import Any, Final

from flask import Response, request

from evidence.handles import SESSION_PATH

_BYTES: Final = 16
_INSIDE: Final = re.compile(f"({SESSION_PATH})(/(?:owner|read)(?:/.*)?)", re.DOTALL)
_ENVIRON: Final = "rung.session_path"
#: Of pages whose address has the path: not even our own logs get it with the next request.
#: With no-referrer, forms send `Origin: null`.
REFERRER_POLICY: Final = "strict-origin"


def new() -> str:
    """A new path, without a slash at its end."""
    return f"/s/{token_urlsafe(_BYTES)}"


def current() -> str:
    """The path in the address of this request; empty for a plain address."""
    path: str = request.environ.get(_ENVIRON, "")
    return path


def routed(application: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a WSGI application, which gets plain addresses."""

    def wrapped(environ: dict[str, Any], start_response: Any) -> Any:
        if match := _INSIDE.fullmatch(environ.get("PATH_INFO", "")):
            environ[_ENVIRON], environ["PATH_INFO"] = match.groups()
        return application(environ, start_response)

    return wrapped


def cookie(name: str, *, secure: bool) -> str | None:
    """The value of a cookie of this session; None without a session."""
    return request.cookies.get(_name(name, secure)) if current() else None


def set_cookie(
    response: Response, path: str, name: str, value: str, *, secure: bool, seconds: int | None
) -> None:
    """Sets a cookie below a session's path; 0 seconds remove it, None keeps it until the browser
    closes."""
    response.set_cookie(
        _name(name, secure),
        value,
        max_age=seconds,
        path=path,
        secure=secure,
        httponly=True,
        samesite="Lax",
    )


def _name(name: str, secure: bool) -> str:
    return f"__Secure-{name}" if secure else name
