"""A scripted source that searches like PDPP's reference: every word must occur, exactly as typed.

with answering(AllWords({"n1": "The quorum met in the boathouse."})) as server: ...
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evidence.fold import fold
from tests.helpers.loopback import Asked, Reply, as_json

SCHEMA = {
    "object": "schema",
    "bearer": {"token_kind": "client"},
    "connectors": [
        {
            "connector_key": "list",
            "granted_connections": [{"connection_id": "away", "display_name": "Away"}],
            "streams": [{"name": "notes", "primary_key": ["id"]}],
        }
    ],
}


class AllWords:
    """Searches the texts of its notes. `asked` lists the queries of searches, with their limits.

    `declared` are further arguments of its search. `more` is added to `meta`. A query in
    `failing` is answered with 500.
    """

    def __init__(
        self,
        notes: Mapping[str, str],
        *,
        declared: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.notes, self.declared, self.more = notes, declared, more or {}
        self.asked: list[tuple[str, int]] = []
        self.given: list[dict[str, list[str]]] = []
        self.failing: set[str] = set()

    @property
    def queries(self) -> list[str]:
        return [query for query, _ in self.asked]

    def __call__(self, asked: Asked) -> Reply:
        address = urlsplit(asked.target)
        if address.path == "/v1/schema":
            return as_json(SCHEMA)
        if address.path.startswith("/.well-known/") and self.declared:
            return as_json({"capabilities": {"lexical_retrieval": {"parameters": self.declared}}})
        if address.path != "/v1/search":
            return as_json({"error": {"code": "not_found", "message": "Nothing here."}}, 404)
        return self._search(parse_qs(address.query))

    def _search(self, given: dict[str, list[str]]) -> Reply:
        query, limit = given["q"][0], int(given["limit"][0])
        self.asked.append((query, limit))
        self.given.append(given)
        if query in self.failing:
            return as_json({"error": {"code": "internal", "message": "It broke."}}, 500)
        words = fold(query).split()
        found = [key for key, text in self.notes.items() if {*words} <= {*fold(text).split()}]
        start = int(given.get("cursor", ["0"])[0])
        more = len(found) > start + limit
        body: dict[str, Any] = {
            "object": "list",
            "has_more": more,
            "data": [self._hit(key, words) for key in found[start : start + limit]],
            "meta": {"count": len(found), "count_accuracy": "exact", "warnings": [], **self.more},
        }
        return as_json({**body, "next_cursor": str(start + limit)} if more else body)

    def _hit(self, key: str, words: Sequence[str]) -> dict[str, Any]:
        pattern = "|".join(rf"\b{re.escape(word)}\b" for word in words)
        shown = re.sub(pattern, r"<mark>\g<0></mark>", self.notes[key], flags=re.IGNORECASE)
        return {
            "object": "search_result",
            "stream": "notes",
            "record_key": key,
            "connection_id": "away",
            "matched_fields": ["text"],
            "evidence_excerpts": [{"field_path": "text", "preview_text": shown, "truncated": True}],
        }
