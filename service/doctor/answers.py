"""Classifies responses: from Rung, or from something in front of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from evidence import json_text
from service.doctor.findings import plain

#: Stops at the next tag, so that a body of many half titles takes no time.
TITLE = re.compile(rb"<title[^<>]*>([^<]*)<", re.IGNORECASE)
TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any] | None:
        """The JSON object of the body, if it is one."""
        try:
            document = json_text.parse(self.body)
        except ValueError:
            return None
        return document if isinstance(document, dict) else None

    @property
    def result(self) -> dict[str, Any] | None:
        """The result of a JSON-RPC answer."""
        result = (self.document or {}).get("result")
        return result if isinstance(result, dict) else None

    @property
    def error(self) -> dict[str, Any]:
        """The error of a JSON-RPC or REST answer, or {}."""
        error = (self.document or {}).get("error")
        return error if isinstance(error, dict) else {}

    @property
    def code(self) -> str | int | None:
        """The error code: that of the underlying error, else the number."""
        data = self.error.get("data")
        cause = data.get("code") if isinstance(data, dict) else None
        code = cause or self.error.get("code")
        return code if isinstance(code, (str, int)) else None

    @property
    def message(self) -> str:
        """The error message on one line."""
        return _line(str(self.error.get("message", "")))

    @property
    def is_page(self) -> bool:
        """True if this is an HTML page instead of JSON."""
        kind = self.headers.get("Content-Type", "")
        return self.document is None and ("html" in kind or TITLE.search(self.body) is not None)

    @property
    def speaker(self) -> str:
        """The sender named in the response: page title, Server or Via."""
        parts = []
        found = TITLE.search(self.body) if self.is_page else None
        if found:
            title = unescape(found[1].decode("utf-8", "replace"))
            parts.append(f'titled "{_line(title)[:TITLE_CHARS]}"')
        for name in ("Server", "Via"):
            if self.headers.get(name):
                parts.append(f"{name}: {_line(self.headers[name])[:TITLE_CHARS]}")
        return ", ".join(parts)

    @property
    def challenge(self) -> str:
        return self.headers.get("WWW-Authenticate", "")


def _line(text: str) -> str:
    """Text on one line."""
    return plain(" ".join(text.split()))
