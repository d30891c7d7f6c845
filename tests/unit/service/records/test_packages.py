"""Packages at rest: what is kept of tokens, and what a package may hold."""

import dataclasses
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evidence.errors import (
    EvidenceError,
    InvalidRequest,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from evidence.limits import BUDGETS
from service import keys
from service.keys import Sealer
from service.access import grants, packages
from service.records.store import Store
from evidence.model import MemberStream
from service.access.registry import Member
from service.access.registry import Registry
from service.records.engine.scopes import StreamHandle
from service.records.sqlite.writer import Writer
from tests.helpers.two_owners import local_member

SEALER = keys.of_tokens(b"a secret of tests only")
TOKEN = "at_of-another-server"
AWAY = Member(
    "Work mail",
    "grt_away",
    (MemberStream("messages", "work", "gmail", "Work"),),
    "https://a",
    TOKEN,
)


def local(writer: Writer, **more: str) -> Member:
    grant_id, _ = grants.create(Registry(writer), {"streams": [{"connection_id": "c"}]}, **more)
    return local_member(writer, writer.path, grant_id)


def raised(writer: Writer, *members: Member) -> EvidenceError:
    with pytest.raises(EvidenceError) as found:
        packages.create(Registry(writer), members, SEALER)
    assert not Registry(writer).packages()
    return found.value


def test_a_package_comes_back_with_its_members_in_order(
    writer: Writer, notes: StreamHandle
) -> None:
    here = local(writer, label="diary")
    assert here.held == (MemberStream("notes", "c", "c", None),) and here.name == "diary"
    package_id, token = packages.create(Registry(writer), [here, AWAY], SEALER, label="both")
    found = packages.find(Registry(writer), token)
    assert found is not None and found.package_id == package_id
    assert found.members[0] == here
    assert dataclasses.replace(found.members[1], token=TOKEN) == AWAY
    assert packages.unsealed(package_id, found.members[1], SEALER) == TOKEN
    assert packages.find(Registry(writer), "rung_pkg_of-nobody") is None


def test_no_token_lies_in_the_file_or_in_a_repr(writer: Writer) -> None:
    _, token = packages.create(Registry(writer), [AWAY], SEALER)
    writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = b"".join(path.read_bytes() for path in Path(writer.path).parent.iterdir())
    assert TOKEN.encode() not in kept and token.encode() not in kept
    assert TOKEN not in repr(AWAY)


@pytest.mark.parametrize(
    "change", [{"origin": "https://b"}, {"grant_id": "grt_other"}, {"token": "garbage"}]
)
def test_a_sealed_token_opens_in_its_own_place_only(writer: Writer, change: dict[str, str]) -> None:
    package_id, token = packages.create(Registry(writer), [AWAY], SEALER)
    found = packages.find(Registry(writer), token)
    assert found is not None
    (member,) = found.members
    for moved, id, sealer in (
        (dataclasses.replace(member, **change), package_id, SEALER),  # type: ignore[arg-type]
        (member, "pkg_other", SEALER),
        (member, package_id, keys.of_tokens(b"another secret")),
        (member, package_id, Sealer(b"a secret of tests only")),
    ):
        with pytest.raises(Unavailable, match="RUNG_SECRET_KEY"):
            packages.unsealed(id, moved, sealer)


def test_a_package_ends_when_it_is_revoked_and_forgets_the_tokens_of_others(
    writer: Writer,
) -> None:
    package_id, token = packages.create(Registry(writer), [AWAY], SEALER, label="mine")
    assert packages.revoke(Registry(writer), "mine") == [package_id]
    with pytest.raises(Unauthenticated) as found:
        packages.find(Registry(writer), token)
    assert found.value.code == "grant_revoked"
    assert writer.db.execute("SELECT count(*) FROM member WHERE token NOT NULL").fetchone() == (0,)
    with pytest.raises(NotFound, match="rung package list"):
        packages.revoke(Registry(writer), "mine")


def test_a_package_ends_when_its_time_is_over(writer: Writer) -> None:
    _, token = packages.create(Registry(writer), [AWAY], SEALER, expires_at="2026-05-01T00:00:00Z")
    assert packages.find(Registry(writer), token, now=datetime(2026, 4, 30, tzinfo=UTC))
    with pytest.raises(Unauthenticated) as found:
        packages.find(Registry(writer), token, now=datetime(2026, 5, 1, tzinfo=UTC))
    assert found.value.code == "grant_expired"
    (entry,) = Registry(writer).packages()
    assert entry.state(datetime(2026, 5, 2, tzinfo=UTC)) == "expired"


def test_what_cannot_be_told_apart_cannot_be_packed_together(writer: Writer) -> None:
    elsewhere = dataclasses.replace(AWAY, origin="https://b", grant_id="grt_b")
    assert "'work'" in raised(writer, AWAY, elsewhere).message
    assert "twice" in raised(writer, AWAY, AWAY).message
    assert "needs at least one grant" in raised(writer).message
    many = [dataclasses.replace(AWAY, grant_id=f"g{n}") for n in range(BUDGETS.package_members + 1)]
    assert isinstance(raised(writer, *many), InvalidRequest)
    packages.create(Registry(writer), many[:-1], SEALER)


def test_a_grant_whose_token_is_spelled_like_that_of_a_package_still_opens(
    writer: Writer, notes: StreamHandle
) -> None:
    grant_id, _ = grants.create(Registry(writer), {"streams": [{"connection_id": "c"}]})
    token = "rung_pkg_that-chance-made"
    hashed = sqlite3.Binary(grants.keys.hashed(token))
    writer.db.execute('UPDATE "grant" SET token_hash = ? WHERE grant_id = ?', (hashed, grant_id))
    store = Store(Path(writer.path))
    assert store.package(token) is None
    assert store.open(token).streams().value.rows
