"""Keys derived from a deployment's secret, values encrypted with these keys, and token hashes.

Cursors and bookmarks are encrypted, each valid only for the call that returned it. AES-SIV is
deterministic: the same page gives the same cursor. The key is derived from the secret of the
deployment; what a cursor is bound to (grant, operation, arguments) is authenticated, not stored.
Other encrypted values have their own `purpose`, and so their own key.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from evidence.errors import InvalidRequest

#: The names to which older cursors of an operation are bound: of the request and its arguments.
_BEFORE: Final = {
    "aggregate": (
        *("AggregateQuery", "stream", "metric", "connection_id", "field", "group_by"),
        *("group_by_time", "granularity", "time_zone", "filter"),
    ),
    "query_records": (
        *("RecordQuery", "stream", "connection_id", "filter", "sort", "order", "view"),
    ),
    "search": (
        *("SearchQuery", "query", "words", "streams", "connection_id", "since", "until"),
        *("sort", "filter"),
    ),
}


class Sealer:
    """Seals small JSON values into URL-safe text and opens them again."""

    def __init__(self, secret: bytes, purpose: str = "cursor") -> None:
        self._cipher = AESSIV(hashlib.sha512(f"rung {purpose}\0".encode() + secret).digest())

    def seal(self, payload: Any, *, bound: Any) -> str:
        sealed = self._cipher.encrypt(orjson.dumps(payload), _bindings(bound)[:1])
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def open(self, text: str, *, bound: Any, param: str = "cursor") -> Any:
        """The payload; raises `InvalidRequest` (`invalid_cursor`) for foreign or altered text."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            return orjson.loads(self._decrypted(raw, bound))
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise InvalidRequest(
                f"This {param} is not valid for this call. Send it exactly as it was returned, "
                "with the same arguments, or leave it out to start over.",
                code="invalid_cursor",
                param=param,
            ) from error

    def _decrypted(self, raw: bytes, bound: Any) -> bytes:
        for binding in _bindings(bound):
            with suppress(InvalidTag):
                return self._cipher.decrypt(raw, [binding])
        raise InvalidTag


class Identity(list[list[Any]]):
    """What the cursors of a call are bound to. Those after the first are of older cursors."""


def identity(request: Any, *context: Any, further: Sequence[Any] = ()) -> Identity:
    """The operation and the arguments that all pages of a request share, if not the default.

    So a new argument with a default ends no cursor. Older cursors are bound to the values of
    `_BEFORE`, whether default or not.
    """
    arguments = request.identity()
    bounds = Identity([[*context, request.operation, arguments, *further]])
    name, *shared = _BEFORE.get(request.operation, [""])
    if shared and arguments.keys() <= set(shared):
        bounds.append([*context, name, *(getattr(request, key) for key in shared), *further])
    return bounds


def _bindings(bound: Any) -> list[bytes]:
    bounds = bound if isinstance(bound, Identity) else [bound]
    return [
        hashlib.sha256(orjson.dumps(each, option=orjson.OPT_SORT_KEYS)).digest() for each in bounds
    ]


@lru_cache(maxsize=4)
def fence_key(secret: bytes) -> bytes:
    """The key of the fences around record text, which record text cannot know."""
    return hashlib.sha256(b"rung fence\0" + secret).digest()


def of_tokens(secret: bytes) -> Sealer:
    """The key that seals the tokens of package members at other servers."""
    return Sealer(secret, "member token")


def of_clients(secret: bytes) -> Sealer:
    """The key that seals the metadata of registered clients into their ids."""
    return Sealer(secret, "client")


def hashed(token: str) -> bytes:
    """The hash of a token, which is kept in its place."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
