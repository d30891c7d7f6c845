"""From ranked rows to hits: the stored records of a page with their proven windows.

A hit is told twice, each only where it is asked for: typed, for readers in this process, and as
the row of a PDPP search body, which a reader of the REST contract would take for the same hit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from evidence import pointer
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Hit, Match, Source, window_read
from evidence.query import Query
from service.records.engine import Stored
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.pdpp.decode import short
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


class Hits:
    """The hits of a page, best first; the first is number `offset` + 1 of the query."""

    def __init__(self, proven: Sequence[Proven], query: str, offset: int) -> None:
        self._proven, self._query, self._offset = proven, query, offset

    def typed(self) -> list[Hit]:
        """What `service.pdpp.decode.search` reads from the rows."""
        by_query = _by_query(self._query)
        return [_hit(found, by_query) for found in self._proven]

    def rows(self) -> list[dict[str, Any]]:
        """The `data` of a PDPP search body."""
        ranked = enumerate(self._proven, start=self._offset + 1)
        by_query = _by_query(self._query)
        return [_row(found, by_query, rank) for rank, found in ranked]


def prove_page(
    snapshot: Snapshot,
    view: View,
    page: Sequence[Found],
    query: Query,
    wanted: Sequence[Wanted],
    offset: int,
) -> Hits:
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
    return Hits(proven, query.text, offset)


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


def _hit(found: Proven, by_query: dict[str, Any]) -> Hit:
    stream, record, fields, proofs = found
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    id = str(ref)
    at = lists.time_of(stream, record, stream.granted) or record.emitted_at(stream.granted)
    return Hit(  # named arguments would take thrice as long, here and for matches
        ref,
        id,
        short(lists.title_of(stream, record) or None, BUDGETS.title_chars),
        short(at or None, BUDGETS.time_chars),
        _source(stream.connection_id, stream.connector_key, stream.display_name),
        _address(stream, record),
        fields,
        [_match(id, proof, by_query) for proof in proofs],
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
    return Source(connection_id, connector_key, short(display_name or None, BUDGETS.label_chars))


def _address(stream: StreamView, record: Stored) -> str:
    where = routes.name(stream.connection_id)
    return f"{routes.record(stream.name, record.record_key)}?connection_id={where}"


def _row(found: Proven, by_query: dict[str, Any], rank: int) -> dict[str, Any]:
    stream, record, fields, proofs = found
    row: dict[str, Any] = {
        "object": "search_result",
        "stream": stream.name,
        "record_key": record.record_key,
        "connector_id": stream.connector_key,
        "connector_key": stream.connector_key,
        "emitted_at": record.emitted_at(stream.granted),
        "record_url": _address(stream, record),
        **stream.source,
        "matched_fields": fields,
        "score": {"kind": "rank", "value": rank, "order": "lower_is_better"},
    }
    if title := lists.title_of(stream, record):
        row["title"] = title
    if at := lists.time_of(stream, record, stream.granted):
        row["authored_at"] = at
    if proofs:
        row["snippet"] = {"field": proofs[0].field, "text": proofs[0].preview}
    row["evidence_excerpts"] = [_excerpt(stream, record, proof, by_query) for proof in proofs]
    return row


def _excerpt(
    stream: StreamView, record: Stored, proof: Proof, by_query: dict[str, Any]
) -> dict[str, Any]:
    window = {
        "q" if name == "query" else name: value for name, value in _window(proof, by_query).items()
    }
    read = routes.field_window_read(
        stream.name, record.record_key, stream.connection_id, proof.field, **window
    )
    return {
        "object": "evidence_excerpt",
        "field_path": pointer.path_of(proof.field),
        "preview_text": proof.preview,
        "provenance": "lexical_match",
        "truncated": not _is_whole(proof),
        "start_chars": proof.start,
        "end_chars": proof.end,
        "total_chars": proof.total,
        "match_start_chars": proof.match_start,
        "match_end_chars": proof.match_end,
        "read": read,
    }
