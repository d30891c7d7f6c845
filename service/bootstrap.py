"""Settings to services: the only place that names concrete upstreams."""

from dataclasses import dataclass

from service.operations.base import Session
from service.settings import Settings
from service.upstreams.store import Store


@dataclass(frozen=True)
class Services:
    """What the surfaces stand on. Tests pass their own."""

    settings: Settings
    store: Store

    def open_session(self, token: str | None) -> Session:
        """A caller's session; raises `Unauthenticated` or `Forbidden`."""
        server = self.store.open(token or "")
        return Session(server, self.settings.public_url or "", self.store.fence_key)


def build(settings: Settings) -> Services:
    """The services of a deployment. Opens nothing yet: workers fork first."""
    return Services(settings, Store(settings.store, settings.secret_key))
