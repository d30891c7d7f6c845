"""Related records of a record: declared relations, inside the grant, one level deep."""

import sqlite3
from typing import Any

from evidence.errors import Forbidden, InvalidRequest
from service.upstreams.store import documents
from service.upstreams.store.manifest import Expansion
from service.upstreams.store.values import SORTABLE_CHARS
from service.upstreams.store.visible import StreamView, View, limits


def expand(
    db: sqlite3.Connection,
    view: View,
    stream: StreamView,
    parent: documents.Stored,
    names: tuple[str, ...],
    limit_of: dict[str, int],
) -> dict[str, Any]:
    """The related records of `parent`, by relation name.

    Raises 400 `invalid_expand` for relations or limits the stream does not declare, 403
    `insufficient_scope` where the related stream is not in the grant.
    """
    _refuse_unknown(stream, (*names, *limit_of))
    expanded = {}
    for name in names:
        relation = stream.manifest.expansions[name]
        limit = _limit(relation, limit_of.get(name))
        target = _target(view, stream, relation)
        expanded[name] = _related(db, parent, relation, target, limit)
    return expanded


def _refuse_unknown(stream: StreamView, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in stream.manifest.expansions:
            known = ", ".join(sorted(stream.manifest.expansions)) or "none"
            raise InvalidRequest(
                f"The stream {stream.name!r} has no relation {name!r}. Relations: {known}.",
                code="invalid_expand",
                param="expand",
            )


def _limit(relation: Expansion, wanted: int | None) -> int:
    if wanted is None:
        return relation.default_limit
    if wanted > relation.max_limit:
        raise InvalidRequest(
            f"expand_limit for {relation.name!r} is at most {relation.max_limit}.",
            code="invalid_expand",
            param="expand_limit",
            retry_arguments={"expand_limit": {relation.name: relation.max_limit}},
        )
    return wanted


def _target(view: View, stream: StreamView, relation: Expansion) -> StreamView:
    """The related stream of the same connection, with the key that joins them granted."""
    for target in view.streams:
        if target.name == relation.stream and target.connection_id == stream.connection_id:
            target.require(relation.foreign_key)
            return target
    raise Forbidden(
        f"The relation {relation.name!r} leads to a stream that is not in this grant.",
        code="insufficient_scope",
        param="expand",
    )


def _related(
    db: sqlite3.Connection,
    parent: documents.Stored,
    relation: Expansion,
    target: StreamView,
    limit: int,
) -> dict[str, Any] | None:
    clause, values = limits(target)
    order = "r.cursor DESC, r.record_key" if target.sort_field else "r.record_key"
    rows = db.execute(
        "SELECT r.seq FROM record r WHERE r.stream = ? AND r.deleted = 0 "
        "AND r.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = ? AND c.value = ?) "
        f"AND {clause} ORDER BY {order} LIMIT ?",
        (
            target.id,
            target.ordinals[relation.foreign_key],
            parent.record_key[:SORTABLE_CHARS],
            *values,
            limit + 1,
        ),
    ).fetchall()
    stored = documents.load(db, [seq for (seq,) in rows[:limit]])
    found = [_record(db, target, stored[seq]) for (seq,) in rows[:limit]]
    if relation.cardinality == "has_one":
        return found[0] if found else None
    return {"object": "list", "has_more": len(rows) > limit, "data": found}


def _record(db: sqlite3.Connection, target: StreamView, stored: documents.Stored) -> dict[str, Any]:
    return {
        "object": "record",
        "id": stored.record_key,
        "stream": target.name,
        "emitted_at": stored.emitted_at,
        "connection_id": target.connection_id,
        "data": documents.show(db, target, stored, target.fields),
    }
