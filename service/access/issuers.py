"""Tokens from other authorization servers: signed JWTs whose subjects the owner maps to grants.

`rung grant map` maps an issuer and a subject to a grant. The keys of an issuer come from the JWKS
named in its metadata, and are kept for an hour.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from evidence.errors import UNKNOWN_TOKEN, Forbidden, Unauthenticated, Unavailable
from evidence.limits import BUDGETS
from evidence.values import AUTHORIZATION_SERVER
from evidence.work import Deadline, parse_json
from service.access.signins import Signins
from service.breaker import Breaker

#: Only asymmetric ones: with others, anyone who reads the public keys could sign.
ALGORITHMS = tuple("RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 Ed25519 EdDSA".split())
#: How long keys are kept, and how long an unknown key causes no new request.
CACHE_SECONDS, AGAIN_SECONDS = 3_600, 60


#: Fetches the JSON at a URL.
Fetch = Callable[[str, Deadline], Any]


class Issuers:
    """Checks tokens of the issuers `names`. `base` is the public URL of this server. `now` is the
    time that decides their expiry. `fetch` reads their keys. `after` makes deadlines."""

    def __init__(
        self,
        names: Sequence[str],
        base: str,
        signins: Signins,
        now: Callable[[], datetime],
        fetch: Fetch,
        after: Callable[[float], Deadline] = Deadline.after,
    ) -> None:
        self._names, self._base, self._signins = names, base, signins
        self._now, self._fetch, self._after = now, fetch, after
        self._breaker = Breaker()
        self._keys: dict[str, tuple[KeySet, Deadline, Deadline]] = {}

    def grant_of(self, token: str, path: str | None) -> str | None:
        """The id of the grant of a token; None if the token is not from these issuers.

        The token must be for this server, its `/mcp` or the surface at `path`. Raises
        `Unauthenticated` if it is not valid, and `Forbidden` if its subject has no grant.
        """
        issuer = _issuer(token)
        if issuer.rstrip("/") not in self._names:
            return None
        try:
            claims = self._decoded(token, issuer).claims
            audiences = [self._base + suffix for suffix in ("", "/mcp", path or "")]
            jwt.JWTClaimsRegistry(
                now=int(self._now().timestamp()),
                exp={"essential": True},
                sub={"essential": True},
                aud={"essential": True, "values": audiences},
            ).validate(claims)
        except (JoseError, ValueError):
            raise Unauthenticated(
                "This token is not valid on this server, or has expired. Get a new one.",
                code=UNKNOWN_TOKEN,
            ) from None
        grant_id = self._signins.mapped(issuer, str(claims["sub"]))
        if grant_id is None:
            raise Forbidden(
                "No grant is mapped to the subject of this token.",
                hint="The owner can map a grant: rung grant map.",
            )
        return grant_id

    def _decoded(self, token: str, issuer: str) -> jwt.Token:
        try:
            return jwt.decode(token, self._key_set(issuer), list(ALGORITHMS))
        except InvalidKeyIdError:  # the issuer may have new keys
            return jwt.decode(token, self._key_set(issuer, again=True), list(ALGORITHMS))

    def _key_set(self, issuer: str, *, again: bool = False) -> KeySet:
        if issuer in self._keys:
            keys, ends, retry = self._keys[issuer]
            if not (retry if again else ends).expired():
                return keys
        with self._breaker.guard():
            keys = _fetched_keys(issuer, self._fetch)
        ends, retry = self._after(CACHE_SECONDS), self._after(AGAIN_SECONDS)
        self._keys[issuer] = keys, ends, retry
        return keys


def _issuer(token: str) -> str:
    """The issuer that a JWT claims, before any check; empty for other text."""
    try:
        part = token.split(".")[1]
        claims = parse_json(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return str(claims["iss"])
    except (IndexError, KeyError, TypeError, ValueError):
        return ""


def _fetched_keys(issuer: str, fetch: Fetch) -> KeySet:
    """The keys of an issuer; raises `Unavailable` if they cannot be read."""
    deadline = Deadline.after(BUDGETS.start_seconds)
    for url in _metadata_urls(issuer):
        metadata = fetch(url, deadline)
        if isinstance(metadata, dict) and metadata.get("issuer") == issuer:
            with suppress(JoseError, KeyError, TypeError, ValueError):
                return KeySet.import_key_set(fetch(str(metadata["jwks_uri"]), deadline))
    raise Unavailable(
        "The token cannot be checked: its issuer's keys could not be fetched. Try again later.",
        code="introspection_failed",
    )


def _metadata_urls(issuer: str) -> Iterator[str]:
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    yield f"{parts.scheme}://{parts.netloc}{AUTHORIZATION_SERVER}{path}"
    yield issuer.rstrip("/") + "/.well-known/openid-configuration"
