"""What an upstream said, unchanged."""

from typing import Any

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
