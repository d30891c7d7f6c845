"""The storage interface of grants and packages: rows to read and write, durable commits.

Rules live in `grants` and `packages`, statements in an implementation such as `sqlite`. Tokens
are looked up by their SHA-256; no token of this store is kept. Times are ISO 8601.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import Protocol

import orjson

from service.access import tokens
from service.ports import Held
from service.records.manifest import StreamManifest


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A stored grant; `document` is JSON, which `grant_document` reads and writes."""

    grant_id: str
    label: str | None
    document: str
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """One grant of a package. With `origin` it is one at another server, opened by `token`.

    At rest, `token` is sealed.
    """

    name: str
    grant_id: str
    held: tuple[Held, ...]
    origin: str | None = None
    token: str | None = field(default=None, repr=False)

    def held_text(self) -> str:
        """`held` as JSON."""
        return orjson.dumps([(*astuple(one),) for one in self.held]).decode()


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """A stored package with its members in order."""

    package_id: str
    label: str | None
    members: tuple[Member, ...]
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None

    def state(self, *, now: datetime | None = None) -> str:
        """`active`, `revoked` or `expired`."""
        return tokens.state(self.revoked_at, self.expires_at, now)


class RegistryReader(Protocol):
    """Grants and packages as one snapshot shows them, ended ones too."""

    def grant_of_token(self, token_hash: bytes) -> GrantRow | None:
        """The grant of a token, if any."""
        ...

    def grant(self, grant_id: str) -> GrantRow | None:
        """The grant with this id, if any."""
        ...

    def grants(self) -> list[GrantRow]:
        """All grants, oldest first."""
        ...

    def package_of_token(self, token_hash: bytes) -> PackageEntry | None:
        """The package of a token, if any."""
        ...

    def packages(self) -> list[PackageEntry]:
        """All packages, oldest first."""
        ...


class Registry(RegistryReader, Protocol):
    """A registry to write to. What a method writes is on the disk when it returns.

    Inside `transaction` all of it is, or none, when that ends.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Makes the writes inside it one commit; inside another transaction it joins that one."""
        ...

    def add_grant(self, row: GrantRow, token_hash: bytes) -> None:
        """Stores a grant under the hash of its token."""
        ...

    def revoke_grants(self, name: str, revoked_at: str) -> list[str]:
        """Ends the active grants with this id or label; returns their ids."""
        ...

    def add_package(self, entry: PackageEntry, token_hash: bytes) -> None:
        """Stores a package and its members under the hash of its token."""
        ...

    def revoke_packages(self, name: str, revoked_at: str) -> list[str]:
        """Ends the active packages with this id or label and erases the tokens of their members.

        Returns their ids.
        """
        ...

    # What can be granted

    def connections(self) -> Sequence[str]:
        """The ids of all connections that have a stream, sorted."""
        ...

    def manifests(self, connection_id: str) -> Sequence[StreamManifest]:
        """The manifests of a connection's streams, by name; none if it is not there."""
        ...
