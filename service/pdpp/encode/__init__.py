"""From typed values to PDPP bodies."""

from collections.abc import Callable
from typing import Any, TypeVar

from service.ports import Answer

T = TypeVar("T")


def body_of(answer: Answer[T], encode: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
    """The body that a remote source sent, or else the encoded value."""
    return encode(answer.value) if answer.body is None else answer.body
