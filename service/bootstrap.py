"""Settings to services: the only place that names concrete upstreams."""

from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path

from evidence.errors import Unauthenticated
from service.operations.base import PaperSession, Session
from service.settings import SETTINGS, Settings
from service.upstreams.papers import download
from service.upstreams.papers.snapshot_library import Papers
from service.upstreams.store import Store

#: Where a snapshot is kept that is fetched at start, unless RUNG_PAPERS_DB names a place.
PAPERS_FOLDER = Path("var/papers")
DEFAULT_STORE: Path = next(found.default for found in SETTINGS if found.name == "store")


@dataclass(frozen=True)
class Services:
    """What the surfaces stand on; at least one of the two. Tests pass their own."""

    settings: Settings
    store: Store | None = None
    papers: Papers | None = None

    def open_session(self, token: str | None) -> Session:
        """A caller of records; raises `Unauthenticated` or `Forbidden`."""
        assert self.store is not None, "the records surface is mounted over a store"
        server = self.store.open(token or "")
        return Session(server, self.settings.public_url or "", self.store.fence_key)

    def open_papers(self, token: str | None) -> PaperSession:
        """A caller of papers; raises `Unauthenticated` where tokens close the library."""
        assert self.papers is not None, "the papers surface is mounted over a snapshot"
        known = self.settings.papers_tokens
        if known and not any(compare_digest(each, token or "") for each in known):
            raise Unauthenticated(
                "This token does not open the papers.",
                hint="Send one of the library's tokens as `Authorization: Bearer <token>`.",
            )
        return PaperSession(self.papers.open(), self.settings.public_url or "")


def build(settings: Settings) -> Services:
    """The services of a deployment. Opens nothing yet: workers fork first.

    Data decides: papers where a snapshot is named, records unless there is only that.
    """
    snapshot = _snapshot(settings)
    papers = Papers(snapshot, settings.papers_assets) if snapshot else None
    only_papers = papers and settings.store == DEFAULT_STORE and not settings.store.exists()
    store = None if only_papers else Store(settings.store, settings.secret_key)
    return Services(settings, store, papers)


def _snapshot(settings: Settings) -> Path | None:
    """The snapshot to serve, fetched first where an address is given."""
    if settings.papers_url is None:
        return settings.papers_db
    folder = settings.papers_db.parent if settings.papers_db else PAPERS_FOLDER
    return download.fetch(settings.papers_url, settings.papers_sha256 or "", folder)
