"""Settings to services: the only place that names concrete upstreams."""

import hashlib
from dataclasses import dataclass

from service.operations.base import Session
from service.settings import Settings
from service.upstreams.store import Store


@dataclass(frozen=True)
class Services:
    """What the surfaces stand on. Tests pass their own."""

    settings: Settings
    store: Store
    fence_key: bytes

    def open_session(self, token: str | None) -> Session:
        """A caller's session; raises `Unauthenticated` or `Forbidden`."""
        return Session(self.store.open(token or ""), self.settings.public_url or "")


def build(settings: Settings) -> Services:
    """The services of a deployment. Opens nothing yet: workers fork first."""
    key = settings.secret_key or str(settings.store.absolute())
    fence_key = hashlib.sha256(b"rung fence\0" + key.encode()).digest()
    return Services(settings, Store(settings.store, settings.secret_key), fence_key)
