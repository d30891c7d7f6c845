"""Checks whether an MCP endpoint answers a token, without calling a tool."""

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote.outbound import ask

_RECORDS = "/mcp"


def trouble(url: str, token: str) -> str | None:
    """The problem of a client with this token at the endpoint, or None."""
    deadline = Deadline.after(BUDGETS.start_seconds)
    try:
        answer = ask("GET", url, deadline=deadline, most_bytes=BUDGETS.body_bytes)
        if answer.status != 405 or "POST" not in answer.headers.get("Allow", ""):
            return f"There is no MCP endpoint at {url}: it returned status {answer.status}."
        if not token or not url.endswith(_RECORDS):
            return None
        schema = url.removesuffix(_RECORDS) + "/v1/schema"
        headers = {"Authorization": f"Bearer {token}"}
        most = BUDGETS.upstream_bytes
        answer = ask("GET", schema, deadline=deadline, most_bytes=most, headers=headers)
    except EvidenceError:
        return f"{url} does not answer."
    refused = answer.status in (401, 403)
    return f"{url} refused this token with status {answer.status}." if refused else None
