"""From ranked rows to hits: the stored records of a page with their proven windows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from evidence import pointer
from evidence.handles import RecordRef
from evidence.hits import Hit, Match
from evidence.limits import CONTRACT
from evidence.model import Source, window_read
from evidence.query import Query
from service.records.engine import Stored
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from evidence import routes
from service.records import lists
from service.records.proof import Proof, prove
from service.records.sqlite.terms import Wanted
from service.records.view import StreamView, View


@dataclass(slots=True)
class Found:
    """A record of the page: its best score and the fields that matched, best first."""

    seq: int
    score: float
    ordinals: list[int] = field(default_factory=list)


class Proven(NamedTuple):
    """A record of the page, as the store has it, with the fields that matched and their windows."""

    stream: StreamView
    record: Stored
    fields: list[str]
    proofs: list[Proof]


def prove_page(
    snapshot: Snapshot,
    view: View,
    page: Sequence[Found],
    query: Query,
    wanted: Sequence[Wanted],
    offset: int,
) -> list[Hit]:
    """The hits of a page of rows found by `wanted`, each with its windows."""
    stored = snapshot.load([found.seq for found in page])
    proven = []
    for found in page:
        stream, record = view.owners[found.ordinals[0]], stored[found.seq]
        fields = [stream.searchable[ordinal] for ordinal in found.ordinals]
        proven.append(
            Proven(stream, record, fields, prove(snapshot, record, fields, query, wanted))
        )
    scores = [found.score for found in page]
    if len(set(scores)) < len(scores):  # of equal ones the tightest span wins
        ranked = sorted(zip(scores, proven), key=lambda one: (one[0], _tightness(one[1].proofs)))
        proven = [found for _, found in ranked]
    by_query = _by_query(query.text)
    return [_hit(one, by_query, rank) for rank, one in enumerate(proven, start=offset + 1)]


def _tightness(proofs: Sequence[Proof]) -> int:
    return min((proof.match_end - proof.match_start for proof in proofs), default=1 << 31)


def _by_query(query: str) -> dict[str, Any]:
    """The window arguments of reads by the query, in the words of read_record_field."""
    return {
        "query": query,
        "before_chars": CONTRACT.match_before_chars,
        "after_chars": CONTRACT.match_after_chars,
    }


def _window(proof: Proof, by_query: dict[str, Any]) -> dict[str, Any]:
    """The window arguments of the read that lands on a match."""
    if proof.by_query:
        return by_query
    return {} if proof.total <= CONTRACT.window_chars else {"offset_chars": proof.read_from}


def _is_whole(proof: Proof) -> bool:
    return proof.start == 0 and proof.end >= proof.total


def _hit(found: Proven, by_query: dict[str, Any], rank: int) -> Hit:
    stream, record, fields, proofs = found
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    id = str(ref)
    return Hit(
        ref,
        id,
        lists.title_of(stream, record) or None,
        lists.time_of(stream, record, stream.granted),
        record.emitted_at(stream.granted),
        _source(stream.connection_id, stream.connector_key, stream.display_name),
        _address(stream, record),
        fields,
        [_match(id, proof, by_query) for proof in proofs],
        rank,
    )


def _match(id: str, proof: Proof, by_query: dict[str, Any]) -> Match:
    path = pointer.path_of(proof.field)
    return Match(
        path,
        proof.preview,
        proof.start,
        proof.end,
        proof.total,
        proof.match_start,
        proof.match_end,
        _is_whole(proof),
        window_read(id, path, _window(proof, by_query)),
    )


@lru_cache(maxsize=1024)
def _source(connection_id: str, connector_key: str, display_name: str | None) -> Source:
    return Source(connection_id, connector_key, display_name or None)


def _address(stream: StreamView, record: Stored) -> str:
    where = routes.name(stream.connection_id)
    return f"{routes.record(stream.name, record.record_key)}?connection_id={where}"
