"""The registry in the file of a store: every statement on grants and packages."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import orjson

from service.access.registry import GrantRow, Member, PackageEntry
from service.ports import Held
from service.records.manifest import StreamManifest
from service.records.sqlite.snapshot import SqliteSnapshot

if TYPE_CHECKING:
    from service.records.sqlite.writer import Writer

_GRANT = 'SELECT grant_id, label, document, created_at, expires_at, revoked_at FROM "grant"'
_PACKAGE = "SELECT id, package_id, label, created_at, expires_at, revoked_at FROM package"


class SqliteRegistryReader:
    """Grants and packages in a snapshot or a store that is open for writing.

    See `registry.RegistryReader`.
    """

    def __init__(self, source: "SqliteSnapshot | Writer") -> None:
        self._db = source.db

    def grant_of_token(self, token_hash: bytes) -> GrantRow | None:
        return self._grant("token_hash = ?", token_hash)

    def grant(self, grant_id: str) -> GrantRow | None:
        return self._grant("grant_id = ?", grant_id)

    def grants(self) -> list[GrantRow]:
        return [GrantRow(*row) for row in self._db.execute(f"{_GRANT} ORDER BY id")]

    def package_of_token(self, token_hash: bytes) -> PackageEntry | None:
        row = self._db.execute(f"{_PACKAGE} WHERE token_hash = ?", (token_hash,)).fetchone()
        return None if row is None else self._package(*row)

    def packages(self) -> list[PackageEntry]:
        rows = self._db.execute(f"{_PACKAGE} ORDER BY id").fetchall()
        return [self._package(*row) for row in rows]

    def _grant(self, condition: str, value: bytes | str) -> GrantRow | None:
        row = self._db.execute(f"{_GRANT} WHERE {condition}", (value,)).fetchone()
        return None if row is None else GrantRow(*row)

    def _package(
        self,
        id: int,
        package_id: str,
        label: str | None,
        created_at: str,
        expires_at: str | None,
        revoked_at: str | None,
    ) -> PackageEntry:
        rows = self._db.execute(
            "SELECT name, grant_id, held, origin, token FROM member WHERE package = ? ORDER BY no",
            (id,),
        )
        members = tuple(
            Member(name, grant_id, tuple(Held(*one) for one in orjson.loads(held)), origin, token)
            for name, grant_id, held, origin, token in rows
        )
        return PackageEntry(package_id, label, members, created_at, expires_at, revoked_at)


class SqliteRegistry(SqliteRegistryReader):
    """The registry of a store that is open for writing. See `registry.Registry`."""

    def __init__(self, writer: "Writer") -> None:
        super().__init__(writer)
        self._writer = writer

    def transaction(self) -> AbstractContextManager[None]:
        return self._writer.transaction()

    def add_grant(self, row: GrantRow, token_hash: bytes) -> None:
        with self.transaction():
            self._db.execute(
                'INSERT INTO "grant" (grant_id, token_hash, label, document, created_at,'
                " expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    *(row.grant_id, token_hash, row.label),
                    *(row.document, row.created_at, row.expires_at),
                ),
            )

    def revoke_grants(self, name: str, revoked_at: str) -> list[str]:
        with self.transaction():
            rows = self._db.execute(
                'UPDATE "grant" SET revoked_at = ? WHERE revoked_at IS NULL'
                " AND (grant_id = ? OR label = ?) RETURNING grant_id",
                (revoked_at, name, name),
            ).fetchall()
        return [grant_id for (grant_id,) in rows]

    def add_package(self, entry: PackageEntry, token_hash: bytes) -> None:
        with self.transaction():
            id = self._db.execute(
                "INSERT INTO package (package_id, token_hash, label, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?)",
                (entry.package_id, token_hash, entry.label, entry.created_at, entry.expires_at),
            ).lastrowid
            self._db.executemany(
                "INSERT INTO member (package, no, name, grant_id, held, origin, token)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (id, no, one.name, one.grant_id, one.held_text(), one.origin, one.token)
                    for no, one in enumerate(entry.members)
                ],
            )

    def revoke_packages(self, name: str, revoked_at: str) -> list[str]:
        with self.transaction():
            rows = self._db.execute(
                "UPDATE package SET revoked_at = ? WHERE revoked_at IS NULL"
                " AND (package_id = ? OR label = ?) RETURNING id, package_id",
                (revoked_at, name, name),
            ).fetchall()
            self._db.executemany(
                "UPDATE member SET token = NULL WHERE package = ?", [(id,) for id, _ in rows]
            )
        return [package_id for _, package_id in rows]

    def connections(self) -> Sequence[str]:
        return self._writer.connection_ids()

    def manifests(self, connection_id: str) -> Sequence[StreamManifest]:
        from service.records.streams import manifests_of  # readers need not load it

        return manifests_of(self._writer, connection_id)
