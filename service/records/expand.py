"""Related records of a record: declared relations, inside the grant, one level deep."""

from collections.abc import Collection
from dataclasses import replace

from evidence.errors import InvalidRequest
from evidence.model import Source
from evidence.records import Record, Related
from service.records.engine import Order
from service.records.documents import Shown
from service.records.manifest import Expansion
from service.records.values import comparable
from service.records.view import StreamView, View

SQLITE_DIGITS = 19


def expand(parent: Shown, names: tuple[str, ...], limit_of: dict[str, int]) -> dict[str, Related]:
    """The related records of `parent`, by relation name.

    Raises 400 `invalid_expand` for limits the stream does not declare, and for every other name
    than that of a relation whose stream and joining key are granted.
    """
    followed = require(parent.grant, parent.stream, names, limit_of)
    return {
        name: _related(parent, relation, target, limit)
        for name, (relation, target, limit) in followed.items()
    }


def require(
    view: View, stream: StreamView, names: tuple[str, ...], limit_of: dict[str, int]
) -> dict[str, tuple[Expansion, StreamView, int]]:
    """The relations of a stream that are asked for; raises as `expand` does."""
    found = usable(view, stream)
    _refuse_unknown(stream, found, (*names, *limit_of))
    return {name: (*found[name], _limit(found[name][0], limit_of.get(name))) for name in names}


def usable(view: View, stream: StreamView) -> dict[str, tuple[Expansion, StreamView]]:
    """The relations to streams of the same connection that the grant can follow."""
    targets = {s.name: s for s in view.streams if s.connection_id == stream.connection_id}
    return {
        relation.name: (relation, targets[relation.stream])
        for relation in stream.manifest.expansions.values()
        if relation.stream in targets and relation.foreign_key in targets[relation.stream].ordinals
    }


def _refuse_unknown(stream: StreamView, known: Collection[str], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise InvalidRequest(
                f"The stream {stream.name!r} has no relation {name!r}. Relations: {listed}.",
                code="invalid_expand",
                param="expand",
            )


def _limit(relation: Expansion, wanted: int | None) -> int:
    if wanted is None:
        return relation.default_limit
    if wanted > relation.max_limit:
        raise InvalidRequest(
            f"expand_limit for {relation.name!r} must be at most {relation.max_limit}.",
            code="invalid_expand",
            param="expand_limit",
            retry_arguments={"expand_limit": {relation.name: relation.max_limit}},
        )
    return wanted


def _related(parent: Shown, relation: Expansion, target: StreamView, limit: int) -> Related:
    snapshot, key = parent.snapshot, parent.stored.record_key
    order = Order(by_cursor=target.sort_field is not None, descending=target.sort_field is not None)
    ordinal, keys = target.ordinals[relation.foreign_key], _keys(key)
    seqs = snapshot.related(target.selection(), ordinal, keys, order, limit + 1)
    stored = snapshot.load(seqs[:limit])
    found = [_record(replace(parent, stream=target, stored=stored[seq])) for seq in seqs[:limit]]
    if relation.cardinality == "has_one":
        return Related(found[:1], single=True)
    more = len(seqs) > limit
    if not more or relation.foreign_key not in target.manifest.exact_filters:
        return Related(found, more)
    listing = {
        "stream": target.name,
        "connection_id": target.connection_id,
        "filter": {relation.foreign_key: key},
    }
    return Related(found, more, listing=listing)


def _keys(record_key: str) -> tuple[str, int | str]:
    """A record key as a foreign key may spell it: as text, or as a number."""
    text = comparable(record_key)
    return text, int(text) if text.isdecimal() and len(text) < SQLITE_DIGITS else text


def _record(shown: Shown) -> Record:
    source = Source(shown.stream.connection_id, None, None)
    return replace(shown.record(shown.brief(shown.stream.fields)), source=source)
