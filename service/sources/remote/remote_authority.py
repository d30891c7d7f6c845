"""Checks an upstream's tokens, and adds a grant on the upstream to a package.

A token is checked by introspection or by the schema that it can read. Results are cached by the
token's SHA-256, for at most a minute.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import quote_plus

from evidence import errors
from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.access.packages import name_of
from service.access.registry import Member
from service.breaker import Breaker
from service.lru import LruCache
from service.pdpp.decode import short
from evidence.model import MemberStream
from service.ports import SchemaQuery
from service.sources.remote import bodies, outbound, remote_errors
from service.sources.remote.origin import JSON, Bulkhead, Origin, Permit
from service.sources.remote.server import HttpResourceServer

STORE_PREFIX = "rung_"
CLIENT = "client"
KIND_KEYS = ("pdpp_token_kind", "token_kind", "kind", "role")

FOREIGN = partial(
    errors.Unauthenticated,
    "This token was issued for another server. Ask the owner for a token for this one.",
    code=errors.UNKNOWN_TOKEN,
)
OWNER = partial(
    errors.Forbidden,
    "Owner tokens are refused. Ask the owner for a client token with a grant.",
    code="permission_error",
)
UNKNOWN_KIND = partial(
    errors.Forbidden,
    "Tokens of this kind are refused. Use a client token with a grant.",
    code="permission_error",
)


@dataclass(frozen=True, slots=True)
class Introspection:
    """The introspection endpoint (RFC 7662), and our credentials there."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a token is refused (None if accepted), and for how many seconds this is valid."""

    refused: Callable[[], EvidenceError] | None
    seconds: float


@dataclass(frozen=True)
class RemoteAuthority:
    """Opens an origin for client tokens. One for all requests, shared by threads.

    `audience` is the required audience of tokens, if introspection reports one. Tokens that begin
    with `reserved` belong to another source and are never sent there. `after` makes deadlines.
    """

    origin: Origin
    introspection: Introspection | None = None
    audience: str | None = None
    bulkhead: Bulkhead | None = None
    reserved: str | None = STORE_PREFIX
    after: Callable[[float], Deadline] = Deadline.after
    _verdicts: LruCache[bytes, tuple[Verdict, Deadline]] = field(
        default_factory=lambda: LruCache(BUDGETS.tokens_cached)
    )

    def open(
        self, token: str, deadline: Deadline, permit: Permit | None = None
    ) -> HttpResourceServer:
        """The resource server for one request with a client token.

        Raises `Unauthenticated` for invalid, foreign and store tokens, `Forbidden` for tokens of
        the owner, of a control plane and of unknown kinds, and the error of a failing upstream.
        """
        if not token or (self.reserved and token.startswith(self.reserved)):
            raise errors.Unauthenticated(
                "This token is unknown. Ask the owner for a client token.",
                code=errors.UNKNOWN_TOKEN,
            )
        permit = permit or Permit(self.bulkhead)
        server = HttpResourceServer(self.origin, token, deadline, permit)
        verdict = self._verdict(token, server, deadline, permit)
        if verdict.refused is not None:
            raise verdict.refused()
        return server

    def _verdict(
        self, token: str, server: HttpResourceServer, deadline: Deadline, permit: Permit
    ) -> Verdict:
        key = hashlib.sha256(token.encode()).digest()
        cached = self._verdicts.get(key)
        if cached is not None and not cached[1].expired():
            return cached[0]
        if self.introspection is None:
            verdict = _kind_by_schema(server)
        else:
            verdict = self._introspected(self.introspection, token, deadline, permit)
        self._verdicts.put(key, (verdict, self.after(verdict.seconds)))
        return verdict

    def _introspected(
        self, server: Introspection, token: str, deadline: Deadline, permit: Permit
    ) -> Verdict:
        credentials = f"{quote_plus(server.client_id)}:{quote_plus(server.client_secret)}".encode()
        headers = {**JSON, "Authorization": f"Basic {base64.b64encode(credentials).decode()}"}
        with permit, server.breaker.guard():
            answer = outbound.ask(
                "POST",
                server.url,
                deadline=deadline,
                most_bytes=BUDGETS.upstream_bytes,
                headers=headers,
                data={"token": token},
            )
        claims = _introspection_body(answer)
        if claims.get("active") is not True:
            return _refusal(partial(_dead, claims.get("inactive_reason")))
        audience = claims.get("aud")
        if self.audience is not None and audience is not None:
            audiences = audience if isinstance(audience, list) else [audience]
            if self.audience.rstrip("/") not in [str(name).rstrip("/") for name in audiences]:
                return _refusal(FOREIGN)
        refused = _refused_kind(claims, KIND_KEYS[:2])
        if refused is not None:
            return _refusal(refused)
        return Verdict(None, min(BUDGETS.token_seconds, _lasts(claims.get("exp"), answer.headers)))


def _kind_by_schema(server: HttpResourceServer) -> Verdict:
    """The kind of the bearer, from the schema. Only a refusal of the token itself is cached."""
    try:
        body = server.schema(SchemaQuery()).body or {}
    except (errors.Unauthenticated, errors.Forbidden) as error:
        return _refusal(partial(type(error), error.message, code=error.code, hint=error.hint))
    bearer = bodies.unwrapped(body).get("bearer")
    refused = _refused_kind(bearer if isinstance(bearer, dict) else {}, KIND_KEYS)
    return Verdict(None, BUDGETS.token_seconds) if refused is None else _refusal(refused)


def _introspection_body(answer: outbound.Answer) -> dict[str, Any]:
    """The body of an introspection; raises `Unavailable` if it is not one."""
    body = answer.json()
    if isinstance(body, dict) and isinstance(body.get("active"), bool):
        return body
    raise errors.Unavailable(
        "The token cannot be checked because introspection failed. Try again later; the "
        "operator has to check the introspection URL and credentials.",
        code="introspection_failed",
        retry_after=remote_errors.retry_seconds(answer.headers),
    )


def _refused_kind(
    claims: Mapping[str, Any], keys: tuple[str, ...]
) -> Callable[[], EvidenceError] | None:
    """Why a token of this kind may not read; None for a client token."""
    kinds = [str(claims[key]).strip().lower() for key in keys if claims.get(key) is not None]
    if any("owner" in kind for kind in kinds):
        return OWNER
    return None if kinds and all(kind == CLIENT for kind in kinds) else UNKNOWN_KIND


def _lasts(exp: Any, headers: Mapping[str, str]) -> float:
    """Seconds until a token expires, by the server's clock; few if that is unknown."""
    if exp is None:
        return BUDGETS.token_seconds
    try:
        return max(0.0, float(exp) - parsedate_to_datetime(headers["Date"]).timestamp())
    except (KeyError, TypeError, ValueError, OverflowError):
        return BUDGETS.refused_token_seconds


def _refusal(error: Callable[[], EvidenceError]) -> Verdict:
    return Verdict(error, BUDGETS.refused_token_seconds)


def _dead(reason: Any) -> EvidenceError:
    code = reason if reason in errors.ENDED else errors.UNKNOWN_TOKEN
    return errors.Unauthenticated(
        "This token is not active. Ask the owner for a new one.", code=code
    )


def remote_member(url: str, token: str, deadline: Deadline) -> Member:
    """The grant of a client token at the resource server at `url`.

    Raises the errors of that server, `Forbidden` for owner tokens, and `InvalidRequest` for a grant
    that names no connections.
    """
    server = RemoteAuthority(Origin(url), reserved=None).open(token, deadline)
    schema = server.schema(SchemaQuery()).value
    streams = dict.fromkeys(
        MemberStream(
            row.stream.name,
            source.connection_id,
            source.connector_key,
            short(source.display_name, BUDGETS.label_chars),
        )
        for row in schema.rows
        for source in row.connections
        if source.connection_id
    )
    if not streams:
        raise errors.InvalidRequest(
            "The token does not allow access to any connection, so there is nothing to read. Use a "
            "token whose grant has at least one stream."
        )
    declared_id = schema.bearer.grant_id if schema.bearer else None
    grant_id = declared_id or f"grt_{hashlib.sha256(token.encode()).hexdigest()[:16]}"
    return Member(name_of(tuple(streams)), grant_id, tuple(streams), url, token)
