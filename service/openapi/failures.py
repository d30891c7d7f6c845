"""The error responses of routes: one body for all, a status for each kind."""

import inspect
import re
from collections.abc import Iterable

from evidence import errors
from evidence.errors import EvidenceError
from service.openapi.parameters import TEXT, Shape, ref
from service.statuses import STATUS, TYPES

RECORDS: tuple[type[EvidenceError], ...] = errors.KINDS
#: The errors of reading a snapshot of papers.
PAPERS: tuple[type[EvidenceError], ...] = tuple(
    kind
    for kind in errors.KINDS
    if kind not in (errors.Unauthenticated, errors.TooLarge, errors.NotText)
)
CLOSED_PAPERS = (*PAPERS, errors.Unauthenticated)

_MEANT = re.compile(r"─ (\w+) +(.+?) +\d{3}$", re.MULTILINE)


def components(headers: dict[str, Shape]) -> dict[str, Shape]:
    """One response per kind of error, by its name."""
    meant = dict(_MEANT.findall(inspect.getdoc(errors) or ""))
    return {kind.__name__: _response(kind, meant[kind.__name__], headers) for kind in errors.KINDS}


def responses(kinds: Iterable[type[EvidenceError]]) -> dict[str, Shape]:
    """The responses of a route that can fail in these ways."""
    return {
        str(STATUS[kind.kind]): {"$ref": f"#/components/responses/{kind.__name__}"}
        for kind in sorted(kinds, key=lambda kind: STATUS[kind.kind])
    }


def unsupported() -> Shape:
    """The response to a body of another content type."""
    content = {"application/json": {"schema": ref("Error")}}
    return {"description": "The content type is not application/json.", "content": content}


def _response(kind: type[EvidenceError], meant: str, headers: dict[str, Shape]) -> Shape:
    status = STATUS[kind.kind]
    own = dict(headers)
    if status == 401:
        own["WWW-Authenticate"] = {
            "description": "The required authentication.",
            "schema": TEXT,
            "required": True,
        }
    if status in (429, 503):
        own["Retry-After"] = {"description": "Seconds to wait before a retry.", "schema": TEXT}
    example = {
        "type": TYPES.get(status, "api_error"),
        "code": kind.default_code,
        "message": f"{meant[0].upper()}{meant[1:].replace('`', '')}.",
        "request_id": "req_0123456789abcdef",
    }
    return {
        "description": f"{meant[0].upper()}{meant[1:]}. Usual code: `{kind.default_code}`.",
        "headers": own,
        "content": {
            "application/json": {"schema": ref("Error"), "example": {"error": example}},
        },
    }
