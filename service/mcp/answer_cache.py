"""Caches the answers to tool calls until the store changes.

An answer is cached with the version of the data, and returned only to a session of the same
version: the same grant, with no commit since. Not cached: answers of sessions without a version,
errors, and answers that are incomplete because time ran out.
"""

from collections.abc import Hashable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from evidence import request_log
from evidence.errors import EvidenceError
from service.lru import LruCache

#: The approximate overhead of an answer in addition to its bytes and arguments.
ENTRY_BYTES: Final = 512


class Call(NamedTuple):
    """All that an answer depends on. `arguments` keep their order, which may show in an answer."""

    version: Hashable
    revision: str
    name: str
    arguments: bytes


#: An answer, and the value of `RequestLog.used` after it.
Answer = tuple[bytes, frozenset[tuple[str, str]]]


class AnswerCache:
    """The most recently used answers that fit into `most` bytes. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers = LruCache[Call, Answer](most, _size)

    def call(
        self, session: Any, revision: str, name: str, arguments: dict[str, Any]
    ) -> Call | None:
        """The key of an answer; None if the session has no version."""
        version = version_of(session)
        if version is None:
            return None
        return Call(version, revision, name, orjson.dumps(arguments))

    def find(self, call: Call) -> bytes | None:
        """The cached result of this call, or None."""
        if (answer := self._answers.get(call)) is None:
            return None
        request_log.current().used |= answer[1]
        return answer[0]

    def keep(self, call: Call, session: Any, result: bytes) -> None:
        """Caches a result, unless something was committed meanwhile."""
        answer = result, frozenset(request_log.current().used)
        if _size(call, answer) <= self._most and version_of(session) == call.version:
            self._answers.put(call, answer)


def version_of(session: Any) -> Hashable | None:
    """The version of the data that a session has read, if it can be read and has one."""
    with suppress(EvidenceError):
        version: Hashable | None = getattr(session, "version", None)
        return version
    return None


def _size(call: Call, answer: Answer) -> int:
    return len(answer[0]) + len(call.arguments) + len(call.name) + ENTRY_BYTES
