"""Every statement on the tables of grants and packages, in SQL that all engines share.

The rules are in `grants` and `packages`. Tokens are looked up by their SHA-256; the store keeps
none of its own tokens. Times are ISO 8601.
"""

from dataclasses import astuple, dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import starmap
from typing import Any

import orjson

from evidence.cached import cached_property
from evidence.model import MemberStream
from evidence.times import microseconds
from service.access import tokens
from service.access.port import Tables, WritableTables

#: Parsed grant documents that are cached.
CACHED_DOCUMENTS = 64

_GRANT = 'SELECT grant_id, label, document, created_at, expires_at, revoked_at FROM "grant"'
_PACKAGE = "SELECT id, package_id, label, created_at, expires_at, revoked_at FROM package"
_MEMBERS = "SELECT name, grant_id, held, origin, token FROM member WHERE package = ? ORDER BY no"
_ADD_GRANT = """INSERT INTO "grant" (grant_id, token_hash, label, document, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?) RETURNING id"""
_ADD_PACKAGE = """INSERT INTO package (package_id, token_hash, label, created_at, expires_at)
VALUES (?, ?, ?, ?, ?) RETURNING id"""
_ADD_MEMBER = """INSERT INTO member (package, no, name, grant_id, held, origin, token)
VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING no"""
_REVOKE_GRANTS = """UPDATE "grant" SET revoked_at = ? WHERE revoked_at IS NULL
AND (grant_id = ? OR label = ?) RETURNING grant_id"""
_REVOKE_PACKAGES = """UPDATE package SET revoked_at = ? WHERE revoked_at IS NULL
AND (package_id = ? OR label = ?) RETURNING id, package_id"""
_END_GRANT = 'UPDATE "grant" SET expires_at = ? WHERE grant_id = ? RETURNING grant_id'
_END_PACKAGE = "UPDATE package SET expires_at = ? WHERE package_id = ? RETURNING package_id"
_ERASE_TOKENS = "UPDATE member SET token = NULL WHERE package = ? RETURNING no"


@dataclass(frozen=True, slots=True)
class StreamGrant:
    """One stream of one connection. Times are microseconds since 1970 UTC, `until` exclusive;
    `resources` are the only record ids allowed, None for all."""

    connection_id: str
    stream: str
    fields: tuple[str, ...]
    since: int | None = None
    until: int | None = None
    resources: frozenset[str] | None = None


@dataclass(frozen=True)
class Grant:
    """The data that one token can read; times are ISO 8601."""

    grant_id: str
    label: str | None
    streams: tuple[StreamGrant, ...]
    papers: bool = False
    created_at: str = ""
    expires_at: str | None = None
    revoked_at: str | None = None

    def state(self, now: tokens.Now) -> str:
        """`active`, `revoked` or `expired`."""
        return tokens.state(self.revoked_at, self.expires_at, now)

    @cached_property
    def connection_ids(self) -> set[str]:
        """The connections of the grant."""
        return {stream.connection_id for stream in self.streams}

    @property
    def is_limited(self) -> bool:
        """Whether a stream of it is limited to dates or records."""
        limits = {(stream.since, stream.until, stream.resources) for stream in self.streams}
        return bool(limits - {(None, None, None)})


@lru_cache(maxsize=CACHED_DOCUMENTS)
def read(document: str) -> tuple[tuple[StreamGrant, ...], bool]:
    """(the streams, whether the papers are included) of a stored grant document."""
    parsed = orjson.loads(document)
    return tuple(map(_stream, parsed["streams"])), parsed.get("papers") is True


def _stream(entry: dict[str, Any]) -> StreamGrant:
    since, until = (entry.get("time_constraint", {}).get(word) for word in ("since", "until"))
    return StreamGrant(
        entry["connection_id"],
        entry["stream"],
        tuple(entry["fields"]),
        None if since is None else microseconds(since),
        None if until is None else microseconds(until),
        frozenset(entry["resources"]) if "resources" in entry else None,
    )


@dataclass(frozen=True, slots=True)
class Member:
    """One grant of a package. `held` are its streams.

    With `origin` it is a grant at another server, which `token` reads. In the store, `token` is
    encrypted.
    """

    name: str
    grant_id: str
    held: tuple[MemberStream, ...]
    origin: str | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Package:
    """Several grants that one token can read, in order."""

    package_id: str
    label: str | None
    members: tuple[Member, ...]
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None

    def state(self, now: tokens.Now) -> str:
        """`active`, `revoked` or `expired`."""
        return tokens.state(self.revoked_at, self.expires_at, now)


class RegistryReader:
    """Grants and packages, including ended ones, in a snapshot or a store open for writing."""

    def __init__(self, tables: Tables) -> None:
        self._rows = tables.run

    def grant_of_token(self, token_hash: bytes) -> Grant | None:
        """The grant of a token, if any."""
        return self._grant("WHERE token_hash = ?", token_hash)

    def grant(self, grant_id: str) -> Grant | None:
        """The grant with this id, if any."""
        return self._grant("WHERE grant_id = ?", grant_id)

    def grants(self) -> list[Grant]:
        """All grants, oldest first."""
        return self._grants("ORDER BY id")

    def package_of_token(self, token_hash: bytes) -> Package | None:
        """The package of a token, if any."""
        rows = self._rows(f"{_PACKAGE} WHERE token_hash = ?", token_hash)
        return self._package(*rows[0]) if rows else None

    def packages(self) -> list[Package]:
        """All packages, oldest first."""
        return [self._package(*row) for row in self._rows(f"{_PACKAGE} ORDER BY id")]

    def _grant(self, where: str, value: bytes | str) -> Grant | None:
        return next(iter(self._grants(where, value)), None)

    def _grants(self, where: str, *values: bytes | str) -> list[Grant]:
        rows = self._rows(f"{_GRANT} {where}", *values)
        return [Grant(id, label, *read(document), *times) for id, label, document, *times in rows]

    def _package(self, id: int, package_id: str, label: str | None, *times: Any) -> Package:
        members = tuple(
            Member(name, grant_id, tuple(starmap(MemberStream, orjson.loads(text))), origin, token)
            for name, grant_id, text, origin, token in self._rows(_MEMBERS, id)
        )
        return Package(package_id, label, members, *times)


class Registry(RegistryReader):
    """The registry of a store that is open for writing. Every method commits before it returns.

    Inside `transaction`, one commit at its end covers all methods.
    """

    def __init__(self, store: WritableTables) -> None:
        super().__init__(store)
        self.transaction = store.transaction
        self.connection_ids, self.manifests = store.connection_ids, store.manifests

    def add_grant(self, grant_id: str, token_hash: bytes, *columns: str | None) -> None:
        """Stores a grant under the hash of its token.

        The other columns: label, frozen document (see `read`), `created_at`, `expires_at`.
        """
        with self.transaction():
            self._rows(_ADD_GRANT, grant_id, token_hash, *columns)

    def revoke_grants(self, name: str, revoked_at: str) -> list[str]:
        """Ends the active grants with this id or label; returns their ids."""
        with self.transaction():
            rows = self._rows(_REVOKE_GRANTS, revoked_at, name, name)
        return [grant_id for (grant_id,) in rows]

    def add_package(self, entry: Package, token_hash: bytes) -> None:
        """Stores a package and its members under the hash of its token."""
        package = entry.package_id, token_hash, entry.label, entry.created_at, entry.expires_at
        with self.transaction():
            ((id,),) = self._rows(_ADD_PACKAGE, *package)
            for no, member in enumerate(entry.members):
                streams = orjson.dumps([astuple(stream) for stream in member.held]).decode()
                columns = member.name, member.grant_id, streams, member.origin, member.token
                self._rows(_ADD_MEMBER, id, no, *columns)

    def revoke_packages(self, name: str, revoked_at: str) -> list[str]:
        """Ends the active packages with this id or label and erases the tokens of their members.

        Returns their ids.
        """
        with self.transaction():
            rows = self._rows(_REVOKE_PACKAGES, revoked_at, name, name)
            for id, _ in rows:
                self._rows(_ERASE_TOKENS, id)
        return [package_id for _, package_id in rows]

    def end_expired(self, mark: datetime, at: datetime) -> None:
        """Lets grants and packages that had expired at `mark` end at `at` instead of later."""
        ends = tokens.iso(at)
        with self.transaction():
            for grant in self.grants():
                if grant.state(mark) == "expired" and grant.state(at) == "active":
                    self._rows(_END_GRANT, ends, grant.grant_id)
            for package in self.packages():
                if package.state(mark) == "expired" and package.state(at) == "active":
                    self._rows(_END_PACKAGE, ends, package.package_id)
