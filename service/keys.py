"""Keys derived from the secret of a deployment, one for each use."""

import hashlib
from functools import lru_cache

from service.cursors import Sealer


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
