"""Grants: what a token allows its holder to read, fixed at creation.

    grant_id, token = create(registry, {"streams": [{"connection_id": "mail"}]}, label="laptop")
    find(registry, token).streams    # every stream and field that "mail" had at that moment

The document of a grant is checked and expanded when it is created, and parsed on every request.
Only the SHA-256 of a token is stored. `docs/grants.md` shows the document.
"""

from collections.abc import Iterator
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import orjson

from evidence.errors import UNKNOWN_TOKEN, Forbidden, InvalidRequest, NotFound, Unauthenticated
from evidence.limits import CONTRACT
from service import keys
from service.access import tokens
from service.access.registry import Grant, Registry, RegistryReader
from evidence.manifest import StreamManifest
from evidence.times import microseconds

_ENTRY_WORDS = frozenset({"connection_id", "stream", "fields", "time_constraint", "resources"})


def freeze(registry: Registry, document: Any) -> str:
    """The document as JSON with every stream and field listed, as the store has them now."""
    entries = document.get("streams") if isinstance(document, dict) else None
    papers = isinstance(document, dict) and document.get("papers") is True
    if not isinstance(entries, list) or not (entries or papers):
        raise _fault(
            "streams",
            'must be a list such as [{"connection_id": "…"}]; it may be empty only if "papers" is '
            "true",
        )
    declared: dict[str, dict[str, StreamManifest]] = {}
    frozen: list[dict[str, Any]] = []
    for number, entry in enumerate(entries):
        frozen.extend(_freeze_entry(registry, f"streams[{number}]", entry, declared))
    if len(frozen) > CONTRACT.streams_in_grant:
        raise _fault(
            "streams",
            f"covers {len(frozen)} streams, but the limit is {CONTRACT.streams_in_grant}; create "
            "two grants",
        )
    names = [(entry["connection_id"], entry["stream"]) for entry in frozen]
    for connection_id, stream in names:
        if names.count((connection_id, stream)) > 1:
            raise _fault("streams", f"covers {connection_id}/{stream} twice; remove one entry")
    return orjson.dumps({"streams": frozen, **({"papers": True} if papers else {})}).decode()


def _freeze_entry(
    registry: Registry, path: str, entry: Any, declared: dict[str, dict[str, StreamManifest]]
) -> Iterator[dict[str, Any]]:
    if not isinstance(entry, dict) or not isinstance(entry.get("connection_id"), str):
        raise _fault(path, "needs a connection_id")
    unknown = sorted(entry.keys() - _ENTRY_WORDS)
    if unknown:
        raise _fault(
            path, f"{unknown[0]!r} is not a valid key; use {', '.join(sorted(_ENTRY_WORDS))}"
        )
    connection_id = entry["connection_id"]
    if connection_id not in declared:
        declared[connection_id] = _streams(registry, connection_id, path)
    streams, name = declared[connection_id], entry.get("stream")
    if name is not None and not (isinstance(name, str) and name in streams):
        raise _fault(
            f"{path}.stream", f"{connection_id!r} has no stream {name!r}{_near(name, streams)}"
        )
    limits = _limits(path, entry)
    for stream in [name] if name is not None else streams:
        manifest = streams[stream]
        if "time_constraint" in limits and manifest.time_field is None:
            raise _fault(
                f"{path}.time_constraint",
                f"the stream {stream!r} has no time field; leave out time_constraint or the stream",
            )
        fields = _fields(path, entry, manifest)
        yield {"connection_id": connection_id, "stream": stream, "fields": fields, **limits}


def _streams(registry: Registry, connection_id: str, path: str) -> dict[str, StreamManifest]:
    manifests = registry.manifests(connection_id)
    if not manifests:
        raise _fault(
            f"{path}.connection_id",
            f"{connection_id!r} is not in the store, or has no streams"
            + _near(connection_id, registry.connection_ids()),
        )
    return {manifest.name: manifest for manifest in manifests}


def _fields(path: str, entry: dict[str, Any], manifest: StreamManifest) -> list[str]:
    names = entry.get("fields")
    if names is None:
        return list(manifest.fields)
    if not isinstance(names, list) or not names:
        raise _fault(f"{path}.fields", "must be a list of field names; leave it out for all fields")
    for name in names:
        if not isinstance(name, str) or name not in manifest.fields:
            raise _fault(
                f"{path}.fields",
                f"{name!r} is not a field of {manifest.name!r}{_near(str(name), manifest.fields)}",
            )
    return list(dict.fromkeys(names))


def _limits(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The time constraint and the record ids of an entry, if any."""
    limits: dict[str, Any] = {}
    constraint = entry.get("time_constraint")
    if constraint is not None:
        bounds = constraint if isinstance(constraint, dict) else {}
        for word, text in bounds.items():
            if word not in ("since", "until") or microseconds(str(text)) is None:
                bounds = {}
        if not bounds:
            raise _fault(
                f"{path}.time_constraint", "must have since, until or both, as ISO 8601 times"
            )
        limits["time_constraint"] = bounds
    resources = entry.get("resources")
    if resources is not None:
        if not isinstance(resources, list) or not all(isinstance(key, str) for key in resources):
            raise _fault(f"{path}.resources", "must be a list of record ids")
        limits["resources"] = list(dict.fromkeys(resources))
    return limits


def _near(name: str, names: Any) -> str:
    matches = get_close_matches(str(name), names, 1)
    return f"; try {matches[0]!r}" if matches else f"; known: {', '.join(names) or 'none'}"


def _fault(path: str, message: str) -> InvalidRequest:
    return InvalidRequest(f"{path}: {message}.", code="invalid_grant", param=path)


def create(
    registry: Registry,
    document: Any,
    *,
    label: str | None = None,
    expires_at: str | None = None,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Stores a grant and returns (grant id, token); the token cannot be shown again."""
    tokens.check_expiry(expires_at)
    grant_id, token = tokens.new_id("grt_"), tokens.new(tokens.PREFIX)
    with registry.transaction():
        frozen = freeze(registry, document)
        registry.add_grant(grant_id, keys.hashed(token), label, frozen, tokens.iso(now), expires_at)
    return grant_id, token


def find(registry: RegistryReader, token: str, *, now: tokens.Now = None) -> Grant:
    """Return the grant of a token.

    Raises `Unauthenticated` for an unknown, revoked or expired token and `Forbidden` for the
    owner's.
    """
    if token.startswith(tokens.OWNER_PREFIX):
        raise Forbidden("Owner tokens are refused. Create a client token: rung grant create.")
    return _active(registry.grant_of_token(keys.hashed(token)), now)


def by_id(registry: RegistryReader, grant_id: str, *, now: tokens.Now = None) -> Grant:
    """Return the grant with this id, which is a member of a package.

    Raises `Forbidden` if it has ended, because the caller's own token is still valid.
    """
    try:
        return active(registry, grant_id, now=now)
    except Unauthenticated as error:
        raise Forbidden(error.message, code=error.code) from None


def active(registry: RegistryReader, grant_id: str, *, now: tokens.Now = None) -> Grant:
    """Return the grant with this id; raises `Unauthenticated` if it has ended."""
    return _active(registry.grant(grant_id), now)


def _active(grant: Grant | None, now: tokens.Now) -> Grant:
    if grant is None:
        raise Unauthenticated(
            "This token is unknown. Ask the owner for a new one (rung grant create).",
            code=UNKNOWN_TOKEN,
        )
    tokens.check_active("grant", grant.revoked_at, grant.expires_at, now)
    return grant


def revoke(registry: Registry, name: str, *, now: datetime | None = None) -> list[str]:
    """Ends the grant with this id, or all with this label, immediately; returns their ids."""
    revoked = registry.revoke_grants(name, tokens.iso(now))
    if not revoked:
        raise NotFound(f"There is no active grant {name!r}. List grants: rung grant list.")
    return revoked
