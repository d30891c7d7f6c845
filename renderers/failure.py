"""Renders an error as text: the problem, what to do, and arguments that work."""

from typing import Any

from evidence.errors import EvidenceError
from evidence.limits import CONTRACT
from evidence.model import spelled
from evidence.text import json_line
from renderers.rendering import Spell, header, quoted, step, value_of

_OWN_LINES = (
    "available_connections",
    "available_connection_count",
    "did_you_mean",
    "retry_arguments",
    "field",
)


def render_lines(error: EvidenceError, spell: Spell = spelled) -> str:
    """The model-visible text of an error; `spell` writes the calls that work."""
    details = error.details
    lines = [header("error", code=error.code, retry_with=error.retry_with), error.message]
    if error.hint:
        lines.append(f"do: {error.hint}")
    if near := details.get("did_you_mean"):
        lines.append("did_you_mean: " + ", ".join(value_of(name) for name in near))
    connections = details.get("available_connections", ())
    for entry in connections[: CONTRACT.candidates]:
        lines.append("  " + " ".join(f"{name}={value_of(value)}" for name, value in entry.items()))
    total = details.get("available_connection_count", len(connections))
    if total > len(connections):
        lines.append(f"These are {len(connections)} of {total} connections.")
    for name, value in details.items():
        if name not in _OWN_LINES:
            lines.append(f"{name}: {_detail(value)}")
    lines += [step(call, spell) for call in error.calls]
    return "\n".join(lines)


def _detail(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return json_line(value)
    return quoted(value) if isinstance(value, str) and " " in value else value_of(value)
