"""Packages at rest: one token over several grants, of this store and of other servers.

    package_id, token = create(writer, [local_member(db, "laptop"), remote], keys.of_tokens(secret))
    find(db, token).members

What a member holds is noted when the package is made: grants do not change. Of the package's own
token only the SHA-256 is stored; the tokens of members elsewhere are sealed, each to its place.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from evidence.errors import InvalidRequest, NotFound, Unavailable
from evidence.limits import BUDGETS
from service.pdpp.decode import short
from service.cursors import Sealer
from service.ports import Held
from service.access import grants, tokens
from service.records.sqlite.snapshot import SqliteSnapshot
from service.records.view import open_view
from service.records.sqlite.writer import Writer


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


@dataclass(frozen=True, slots=True)
class Package:
    """What the token of a package opens."""

    package_id: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """A package as its owner sees it in a list; times are ISO 8601."""

    package_id: str
    label: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    members: tuple[Member, ...]

    def state(self, *, now: datetime | None = None) -> str:
        """`active`, `revoked` or `expired`."""
        return tokens.state(self.revoked_at, self.expires_at, now)


def local_member(db: sqlite3.Connection, name: str, *, now: datetime | None = None) -> Member:
    """The active grant of this store with this id or label, as a member."""
    entries = [entry for entry in grants.list_grants(db) if name in (entry.grant_id, entry.label)]
    active = [entry for entry in entries if entry.state(now=now) == "active"]
    if not active:
        raise NotFound(f"No active grant is named {name!r}. See them with: rung grant list.")
    if len(active) > 1:
        listed = ", ".join(entry.grant_id for entry in active)
        raise InvalidRequest(f"Several grants are labelled {name!r}: give one of {listed}.")
    grant = grants.by_id(db, active[0].grant_id, now=now)
    held = tuple(
        Held(stream.name, stream.connection_id, stream.connector_key, stream.display_name)
        for stream in open_view(SqliteSnapshot(db, (0, 0)), grant).streams
    )
    return Member(grant.label or name_of(held), grant.grant_id, held)


def name_of(held: Sequence[Held]) -> str:
    """What people call a member: its connection, and how many more it has."""
    labels = list(
        {one.connection_id: one.display_name or one.connection_id for one in held}.values()
    )
    first = short(labels[0], BUDGETS.label_chars) if labels else ""
    return f"{first} and {len(labels) - 1} more" if len(labels) > 1 else first or "nothing"


def create(
    writer: Writer,
    members: Sequence[Member],
    sealer: Sealer,
    *,
    label: str | None = None,
    expires_at: str | None = None,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Stores a package and returns (package id, token); the token cannot be shown again."""
    tokens.check_expiry(expires_at)
    _check(members)
    package_id, token = tokens.new_id("pkg_"), tokens.new(tokens.PACKAGE_PREFIX)
    with writer.transaction():
        id = writer.db.execute(
            "INSERT INTO package (package_id, token_hash, label, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (package_id, tokens.hashed(token), label, tokens.iso(now), expires_at),
        ).lastrowid
        writer.db.executemany(
            "INSERT INTO member (package, no, name, grant_id, held, origin, token)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (id, number, *_row(member), _sealed(package_id, member, sealer))
                for number, member in enumerate(members)
            ],
        )
    return package_id, token


def find(db: sqlite3.Connection, token: str, *, now: datetime | None = None) -> Package | None:
    """The package a token stands for; None where it stands for none.

    Raises `Unauthenticated` for a package that has ended.
    """
    row = db.execute(
        "SELECT id, package_id, expires_at, revoked_at FROM package WHERE token_hash = ?",
        (tokens.hashed(token),),
    ).fetchone()
    if row is None:
        return None
    id, package_id, expires_at, revoked_at = row
    tokens.check_active("package", revoked_at, expires_at, now)
    return Package(package_id, _members(db, id))


def unsealed(package_id: str, member: Member, sealer: Sealer) -> str:
    """The token of a member elsewhere; raises `Unavailable` where the key is another one now."""
    try:
        return str(sealer.open(member.token or "", bound=_bound(package_id, member)))
    except InvalidRequest:
        raise Unavailable(
            "The token of this source cannot be unsealed: RUNG_SECRET_KEY is not the one the "
            "package was made with. Its operator has to set that, or to make the package again.",
            code="member_token_sealed",
        ) from None


def list_packages(db: sqlite3.Connection) -> list[PackageEntry]:
    """All packages, oldest first, without their tokens."""
    rows = db.execute(
        "SELECT id, package_id, label, created_at, expires_at, revoked_at FROM package ORDER BY id"
    ).fetchall()
    return [
        PackageEntry(package_id, label, created, expires, revoked, _members(db, id))
        for id, package_id, label, created, expires, revoked in rows
    ]


def revoke(writer: Writer, name: str, *, now: datetime | None = None) -> list[str]:
    """Ends the package with this id, or all with this label, at once; returns their ids.

    The tokens of its members elsewhere are forgotten; its grants live on.
    """
    with writer.transaction():
        rows = writer.db.execute(
            "UPDATE package SET revoked_at = ? WHERE revoked_at IS NULL"
            " AND (package_id = ? OR label = ?) RETURNING id, package_id",
            (tokens.iso(now), name, name),
        ).fetchall()
        writer.db.executemany(
            "UPDATE member SET token = NULL WHERE package = ?", [(id,) for id, _ in rows]
        )
    if not rows:
        raise NotFound(f"No active package is named {name!r}. See them with: rung package list.")
    return [package_id for _, package_id in rows]


def _check(members: Sequence[Member]) -> None:
    if not members:
        raise InvalidRequest(
            "A package needs a grant. Name one of this store or of another server."
        )
    if len(members) > BUDGETS.package_members:
        raise InvalidRequest(
            f"A package has at most {BUDGETS.package_members} grants, not {len(members)}. "
            "Make two packages."
        )
    places = [(member.origin, member.grant_id) for member in members]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"The grant {twice[1]} is named twice. Keep one.")
    origins: dict[str, str | None] = {}
    for member in members:
        for held in member.held:
            if origins.setdefault(held.connection_id, member.origin) != member.origin:
                raise InvalidRequest(
                    f"Two servers call a connection {held.connection_id!r}; in one package nobody "
                    "could say which is meant. Make a package for each."
                )


def _members(db: sqlite3.Connection, package: int) -> tuple[Member, ...]:
    rows = db.execute(
        "SELECT name, grant_id, held, origin, token FROM member WHERE package = ? ORDER BY no",
        (package,),
    )
    return tuple(
        Member(name, grant_id, tuple(Held(*one) for one in orjson.loads(held)), origin, token)
        for name, grant_id, held, origin, token in rows
    )


def _row(member: Member) -> tuple[str, str, str, str | None]:
    held = [
        [one.stream, one.connection_id, one.connector_key, one.display_name] for one in member.held
    ]
    return member.name, member.grant_id, orjson.dumps(held).decode(), member.origin


def _sealed(package_id: str, member: Member, sealer: Sealer) -> str | None:
    if member.token is None:
        return None
    return sealer.seal(member.token, bound=_bound(package_id, member))


def _bound(package_id: str, member: Member) -> list[str | None]:
    """What a sealed token belongs to: it opens nowhere else."""
    return ["member token", package_id, member.origin, member.grant_id]
