"""The checks of every HTTP surface: a request's origin, host, bearer token and body.

Nothing here writes a log, so a token cannot leak from here. This module only extracts the token;
the authority decides whether it is valid.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from werkzeug.wsgi import get_content_length, get_input_stream

from evidence.errors import EvidenceError, Forbidden, InvalidRequest, TooLarge, Unauthenticated
from evidence.limits import BUDGETS
from service.networks import is_loopback, parse_address

REALM: Final = "rung"
#: The scope of sign-in tokens. A grant decides the rest.
SCOPE: Final = "rung:read"
#: The response headers that pages may read.
EXPOSED_HEADERS: Final = (
    "WWW-Authenticate, Request-Id, X-Request-Id, Retry-After, RateLimit-Limit, "
    "RateLimit-Remaining, RateLimit-Reset, ETag, Link"
)
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
PREFLIGHT_SECONDS: Final = "7200"

_PORT: Final = re.compile("(:[0-9]+)?$")
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


class Access(Enum):
    """Whether a surface requires a token. There is no default."""

    OPEN = "open"
    CLIENT_TOKEN = "client_token"


@dataclass(frozen=True, slots=True)
class Guard:
    """The checks of a surface before it reads the body.

    `allowed_hosts` are the only accepted names; None if the operator named none. `loopback_hosts`
    are the names accepted on loopback in addition to its own; None accepts any. An entry without a
    port allows every port. `metadata_url` is set if an authorization server is configured, and
    directs clients there; `scope` is what they request.
    """

    access: Access
    allowed_origins: frozenset[str] = field(default_factory=frozenset)
    allowed_hosts: frozenset[str] | None = None
    loopback_hosts: frozenset[str] | None = None
    metadata_url: str | None = None
    scope: str | None = None

    def knows(self, origin: str) -> bool:
        """Whether pages of this origin may send requests. Scheme, host and port all count."""
        origin = origin.lower()
        any_port = _PORT.sub(":*", origin, count=1)
        return not self.allowed_origins.isdisjoint((origin, any_port))

    def shared(self, origin: str | None) -> dict[str, str]:
        """The headers that let a page of this origin read an answer; none for foreign pages."""
        if origin is None or not self.knows(origin):
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        }

    def check_origin(self, origin: str | None) -> None:
        """Refuses a browser page from elsewhere. Programs send no origin and pass."""
        if origin is not None and not self.knows(origin):
            raise Forbidden(
                "This server does not allow this origin.",
                code="origin_not_allowed",
                hint="The operator can add the origin to RUNG_ALLOWED_ORIGINS, in a form such as "
                "https://app.example.com or http://localhost:*.",
            )

    def check_host(self, host: str | None, peer: str | None) -> None:
        """Raise `Forbidden` for a host name that is not ours.

        `peer` is the other end of the connection. A page that rebinds its own name to this machine
        sends that name. It cannot send an IP address or omit `Host`, so these pass.
        """
        full = (host or "").strip().lower()
        name = _without_port(full)
        if not full or parse_address(name.strip("[]")) is not None:
            return
        if self.allowed_hosts is not None:
            allowed = self.allowed_hosts
        elif self.loopback_hosts is not None and is_loopback(peer):
            plain = name.removesuffix(".")
            if plain == "localhost" or plain.endswith(".localhost"):
                return
            allowed = self.loopback_hosts
        else:
            return
        if full not in allowed and name not in allowed:
            raise Forbidden(
                "This server does not allow this host name.",
                code="host_not_allowed",
                hint="Use the server's configured URL. The operator can set RUNG_PUBLIC_URL to "
                "the URL that clients use, or add the name to RUNG_ALLOWED_HOSTS.",
            )

    def token(self, authorization: str | None) -> str | None:
        """The token to open a session with; None on an open surface, whatever was sent."""
        return None if self.access is Access.OPEN else bearer(authorization)

    def refusal_headers(
        self, error: EvidenceError, status: int, authorization: str | None
    ) -> dict[str, str]:
        """`WWW-Authenticate` of a 401, and `Retry-After` if the error has one."""
        headers = {}
        if status == 401:
            headers["WWW-Authenticate"] = self._challenge(authorization)
        if "retry_after" in error.details:
            headers["Retry-After"] = str(error.details["retry_after"])
        return headers

    def _challenge(self, authorization: str | None) -> str:
        """The challenge names metadata only if clients can fetch it.

        A token that was sent is invalid.
        """
        parts = [f'Bearer realm="{REALM}"']
        parts += ['error="invalid_token"'] if authorization else []
        parts += [f'resource_metadata="{self.metadata_url}"'] if self.metadata_url else []
        parts += [f'scope="{self.scope}"'] if self.scope else []
        return ", ".join(parts)


def origins(urls: Iterable[str]) -> frozenset[str]:
    """Origins as browsers send them: in lower case, without a path."""
    return frozenset(url.strip().rstrip("/").lower() for url in urls)


def loopback_origins(port: int) -> frozenset[str]:
    """The origins of pages that this machine serves to itself on `port`."""
    return frozenset(f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))


def bearer(authorization: str | None) -> str:
    """The token of an `Authorization: Bearer` header. Raises `Unauthenticated` without one."""
    match = _BEARER.fullmatch(authorization.strip()) if authorization else None
    if match is None:
        raise Unauthenticated(
            "A client token is required.",
            hint="Send it in the header `Authorization: Bearer <token>`.",
        )
    return match[1]


def check_form(environ: Mapping[str, Any], base: str) -> None:
    """Raises `Forbidden` for a form from a page of another site. `base` is our public URL.

    Browsers send `Sec-Fetch-Site` to https and loopback addresses only, and `Origin` everywhere.
    """
    site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
    if site is None and origin is not None:
        ours = origin.partition("://")[2] in (base.partition("://")[2], environ.get("HTTP_HOST"))
    else:
        ours = site in (None, "same-origin")
    if not ours:
        raise Forbidden(
            "Another site sent this form. Open the page on this server and submit the form there."
        )


def preflight(verbs: str, headers: str) -> dict[str, str]:
    """The headers that let a page of an allowed origin send these verbs and headers."""
    return {
        "Access-Control-Allow-Methods": verbs,
        "Access-Control-Allow-Headers": headers,
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    }


def read_body(environ: dict[str, Any]) -> bytes:
    """The whole body, chunked or not.

    Raises `TooLarge`, before reading if possible. It reads in pieces, because Flask's own limit
    silently truncates a chunked body.
    """
    parts, missing = list[bytes](), BUDGETS.body_bytes + 1
    if (get_content_length(environ) or 0) >= missing:
        raise _too_large()
    stream = get_input_stream(environ)
    try:
        while missing and (part := stream.read(min(missing, BUDGETS.piece_bytes))):
            parts.append(part)
            missing -= len(part)
    except Exception:  # a malformed chunk: the exception depends on the server
        raise InvalidRequest("The request body is incomplete.", hint="Send it again.") from None
    if not missing:
        raise _too_large()
    return b"".join(parts)


def _too_large() -> TooLarge:
    limit = BUDGETS.body_bytes
    message = f"The request body is larger than {limit} bytes."
    return TooLarge(message, hint="Send a smaller request.", limit=limit)


def peer(environ: Mapping[str, Any]) -> str | None:
    """Return the address that opened the connection, whatever a proxy reports of its client."""
    address: str | None = environ.get("werkzeug.proxy_fix.orig", environ).get("REMOTE_ADDR")
    return address


def _without_port(host: str) -> str:
    """`host` of `host:port`; the brackets of an IPv6 address stay."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
