"""Adds a grant at another server to a package, and asks that server what the grant holds."""

import hashlib

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.pdpp.decode import short
from evidence.work import Deadline
from service.sources.remote.origin import Origin
from service.ports import Held
from service.ports import SchemaQuery
from service.sources.remote.remote_authority import RemoteAuthority
from service.access.packages import name_of
from service.access.registry import Member


def remote_member(url: str, token: str, deadline: Deadline) -> Member:
    """The grant of a client token at the resource server at `url`.

    Raises the errors of that server, `Forbidden` for owner tokens, and `InvalidRequest` for a grant
    that names no connections.
    """
    server = RemoteAuthority(Origin(url), reserved=None).open(token, deadline)
    schema = server.schema(SchemaQuery()).value
    held = dict.fromkeys(
        Held(
            row.stream.name,
            source.connection_id,
            source.connector_key,
            short(source.display_name, BUDGETS.label_chars),
        )
        for row in schema.rows
        for source in row.connections
        if source.connection_id
    )
    if not held:
        raise InvalidRequest(
            "The schema of that token has no connections, so there is nothing to read. Use a "
            "grant with at least one stream."
        )
    named = schema.bearer.grant_id if schema.bearer else None
    grant_id = named or f"grt_{hashlib.sha256(token.encode()).hexdigest()[:16]}"
    return Member(name_of(tuple(held)), grant_id, tuple(held), url, token)
