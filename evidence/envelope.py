"""What an upstream said, unchanged."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from evidence.model import Hit

Body = dict[str, Any]


class Envelope:
    """A PDPP response body as the upstream spelled it. Readers read it; nobody edits it.

    `body` is the JSON object of the REST contract (`object`, `data`, `links`, `meta`, …).
    """

    def __init__(self, body: Body, request_id: str | None = None) -> None:
        self._body = body
        self.request_id = request_id

    @property
    def body(self) -> Body:
        return self._body


class SearchEnvelope(Envelope):
    """What an upstream in this process found: typed hits for readers, rows where a body is asked.

    `head` is the body with no rows in its `data`. `hits` gives what a reader makes of the rows,
    new each time, and `rows` the rows themselves.
    """

    def __init__(
        self, head: Body, hits: Callable[[], list[Hit]], rows: Callable[[], list[Body]]
    ) -> None:
        super().__init__(head)
        self.head = head
        self.hits = hits
        self._rows = rows

    @cached_property
    def body(self) -> Body:
        return {**self.head, "data": self._rows()}
