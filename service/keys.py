"""Keys derived from the secret of a deployment, values encrypted with them, hashes of tokens.

Cursors and bookmarks are encrypted, each valid only for the call that returned it. AES-SIV is
deterministic: the same page gives the same cursor. The key is derived from the secret of the
deployment; what a cursor is bound to (grant, operation, arguments) is authenticated, not stored.
Other encrypted values have their own `purpose`, and so their own key.
"""

import base64
import binascii
import hashlib
from dataclasses import fields
from functools import lru_cache
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from evidence.errors import InvalidRequest


class Sealer:
    """Seals small JSON values into URL-safe text and opens them again."""

    def __init__(self, secret: bytes, purpose: str = "cursor") -> None:
        self._cipher = AESSIV(hashlib.sha512(f"rung {purpose}\0".encode() + secret).digest())

    def seal(self, payload: Any, *, bound: Any) -> str:
        sealed = self._cipher.encrypt(orjson.dumps(payload), [_binding(bound)])
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def open(self, text: str, *, bound: Any, param: str = "cursor") -> Any:
        """The payload; raises `InvalidRequest` (`invalid_cursor`) for foreign or altered text."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            return orjson.loads(self._cipher.decrypt(raw, [_binding(bound)]))
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise InvalidRequest(
                f"This {param} is not valid for this call. Send it exactly as it was returned, "
                "with the same arguments, or leave it out to start over.",
                code="invalid_cursor",
                param=param,
            ) from error


def _binding(bound: Any) -> bytes:
    return hashlib.sha256(orjson.dumps(bound, option=orjson.OPT_SORT_KEYS)).digest()


def identity(request: Any) -> list[Any]:
    """The fields of a request to which its cursors are bound: those that all its pages share."""
    shared = [field.name for field in fields(request) if not field.metadata.get("paging")]
    return [type(request).__name__, *(getattr(request, name) for name in shared)]


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
