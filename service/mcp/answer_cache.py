"""Caches the answers to tool calls until the store changes.

An answer is kept with the version of what was read, and returned only to a session of the same
version: the same grant, with no commit since. Answers of sessions without a version, errors, and
answers that are incomplete because time ran out are not kept.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any, Final, NamedTuple

import orjson

from evidence import request_log

#: The approximate overhead of an answer beside its bytes and arguments.
ENTRY_BYTES: Final = 512


class Call(NamedTuple):
    """All that an answer depends on. `arguments` keep their order, which may show in an answer."""

    version: Hashable
    revision: str
    name: str
    arguments: bytes


class AnswerCache:
    """The answers used last, as many as fit into `most` bytes. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._left = self._most = most
        #: With each answer, what `RequestLog.used` is after it.
        self._known: OrderedDict[Call, tuple[bytes, frozenset[tuple[str, str]]]] = OrderedDict()
        self._lock = Lock()

    def call(
        self, session: Any, revision: str, name: str, arguments: dict[str, Any]
    ) -> Call | None:
        """The key of an answer; None if the session has no version or the cache is off."""
        version = version_of(session) if self._most else None
        if version is None:
            return None
        return Call(version, revision, name, orjson.dumps(arguments))

    def find(self, call: Call) -> bytes | None:
        """The cached result of this call, or None."""
        with self._lock:
            if call not in self._known:
                return None
            self._known.move_to_end(call)
            answer, used = self._known[call]
        request_log.current().used |= used
        return answer

    def keep(self, call: Call, session: Any, result: bytes) -> None:
        """Keeps a result, unless something was committed meanwhile."""
        taken = _size(call, result)
        if taken > self._most or version_of(session) != call.version:
            return
        with self._lock:
            if call in self._known:  # another thread was faster
                return
            self._known[call] = result, frozenset(request_log.current().used)
            self._left -= taken
            while self._left < 0:
                oldest, (answer, _) = self._known.popitem(last=False)
                self._left += _size(oldest, answer)


def version_of(session: Any) -> Hashable | None:
    """The version of what a session has read, if it has one."""
    version: Hashable | None = getattr(session, "version", None)
    return version


def _size(call: Call, result: bytes) -> int:
    return len(result) + len(call.arguments) + len(call.name) + ENTRY_BYTES
