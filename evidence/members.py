"""JSON objects without the members that are None."""

from typing import Any


def known(members: dict[str, Any]) -> dict[str, Any]:
    """The members that are not None, in their order."""
    return {name: value for name, value in members.items() if value is not None}
