"""What an upstream said, unchanged."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Envelope:
    """A PDPP response body as the upstream spelled it. Readers read it; nobody edits it.

    `body` is the JSON object of the REST contract (`object`, `data`, `links`, `meta`, …).
    """

    body: dict[str, Any]
    request_id: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
