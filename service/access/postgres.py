"""The registry in the database of a store: every statement on grants and packages."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import orjson

from service.access.registry import GrantRow, Member, PackageEntry
from service.ports import Held
from service.records.manifest import StreamManifest
from service.records.postgres.snapshot import PostgresSnapshot
from service.records.postgres.writer import Writer
from service.records.streams import manifests_of

_GRANT = 'SELECT grant_id, label, document, created_at, expires_at, revoked_at FROM "grant"'
_PACKAGE = "SELECT id, package_id, label, created_at, expires_at, revoked_at FROM package"
_MEMBERS = """
SELECT name, grant_id, held, origin, token FROM member WHERE package = %s ORDER BY no
"""
_ADD_GRANT = """
INSERT INTO "grant" (grant_id, token_hash, label, document, created_at, expires_at)
VALUES (%s, %s, %s, %s, %s, %s)
"""
_ADD_PACKAGE = """
INSERT INTO package (package_id, token_hash, label, created_at, expires_at)
VALUES (%s, %s, %s, %s, %s) RETURNING id
"""
_ADD_MEMBER = """
INSERT INTO member (package, no, name, grant_id, held, origin, token)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


class PostgresRegistryReader:
    """Grants and packages in a snapshot or a store that is open for writing.

    See `registry.RegistryReader`.
    """

    def __init__(self, source: PostgresSnapshot | Writer) -> None:
        self._rows: Callable[..., list[tuple[Any, ...]]] = source.rows_of

    def grant_of_token(self, token_hash: bytes) -> GrantRow | None:
        return self._grant("token_hash = %s", token_hash)

    def grant(self, grant_id: str) -> GrantRow | None:
        return self._grant("grant_id = %s", grant_id)

    def grants(self) -> list[GrantRow]:
        return [GrantRow(*row) for row in self._rows(f"{_GRANT} ORDER BY id")]

    def package_of_token(self, token_hash: bytes) -> PackageEntry | None:
        rows = self._rows(f"{_PACKAGE} WHERE token_hash = %s", token_hash)
        return self._package(*rows[0]) if rows else None

    def packages(self) -> list[PackageEntry]:
        return [self._package(*row) for row in self._rows(f"{_PACKAGE} ORDER BY id")]

    def _grant(self, condition: str, value: bytes | str) -> GrantRow | None:
        rows = self._rows(f"{_GRANT} WHERE {condition}", value)
        return GrantRow(*rows[0]) if rows else None

    def _package(self, id: int, package_id: str, label: str | None, *times: Any) -> PackageEntry:
        members = tuple(
            Member(name, grant_id, tuple(Held(*one) for one in orjson.loads(held)), origin, token)
            for name, grant_id, held, origin, token in self._rows(_MEMBERS, id)
        )
        return PackageEntry(package_id, label, members, *times)


class PostgresRegistry(PostgresRegistryReader):
    """The registry of a store that is open for writing. See `registry.Registry`."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self._writer = writer

    def transaction(self) -> AbstractContextManager[None]:
        return self._writer.transaction()

    def add_grant(self, row: GrantRow, token_hash: bytes) -> None:
        with self.transaction():
            times = row.created_at, row.expires_at
            self._writer.write(
                _ADD_GRANT, row.grant_id, token_hash, row.label, row.document, *times
            )

    def revoke_grants(self, name: str, revoked_at: str) -> list[str]:
        with self.transaction():
            rows = self._writer.changed(
                'UPDATE "grant" SET revoked_at = %s WHERE revoked_at IS NULL'
                " AND (grant_id = %s OR label = %s) RETURNING grant_id",
                *(revoked_at, name, name),
            )
        return [grant_id for (grant_id,) in rows]

    def add_package(self, entry: PackageEntry, token_hash: bytes) -> None:
        times = entry.created_at, entry.expires_at
        with self.transaction():
            ((id,),) = self._writer.changed(
                _ADD_PACKAGE, entry.package_id, token_hash, entry.label, *times
            )
            rows = [
                (id, no, one.name, one.grant_id, one.held_text(), one.origin, one.token)
                for no, one in enumerate(entry.members)
            ]
            self._writer.write_each(_ADD_MEMBER, rows)

    def revoke_packages(self, name: str, revoked_at: str) -> list[str]:
        with self.transaction():
            rows = self._writer.changed(
                "UPDATE package SET revoked_at = %s WHERE revoked_at IS NULL"
                " AND (package_id = %s OR label = %s) RETURNING id, package_id",
                *(revoked_at, name, name),
            )
            ended = [id for id, _ in rows]
            self._writer.write("UPDATE member SET token = NULL WHERE package = ANY(%s)", ended)
        return [package_id for _, package_id in rows]

    def connections(self) -> Sequence[str]:
        return self._writer.connection_ids()

    def manifests(self, connection_id: str) -> Sequence[StreamManifest]:
        return manifests_of(self._writer, connection_id)
