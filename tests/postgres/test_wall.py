"""The second wall: a role that sees what a grant names, whatever our own check lets through."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from service.access import grants
from service.access.registry import RegistryReader
from service.cursors import Sealer
from service.place import Database
from service.ports import AggregateQuery, RecordQuery, SearchQuery
from service.records import aggregate, changes, lists, search
from service.records.opening import Engine, open_reader, open_writer
from service.records.postgres.ddl import GUARDED, VIEWED, WEB_GRANT
from service.records.view import View, open_view
from tests.helpers import worlds
from tests.helpers.places import new_database
from tests.helpers.worlds import Connection, House, World

CANARY, ROLE = "zanzibarcanary", "rung_test_web"
LONG = f"{'lorem ipsum dolor ' * 9_000} {CANARY} lantern"


def world() -> World:
    fields = {
        "body": worlds.text("primary-text"),
        "size": {"type": "integer"},
        "at": worlds.moment(),
    }
    query = {
        "search": {"lexical_fields": ["body"]},
        "aggregations": {"group_by": ["size"], "group_by_time": ["at"], "sum": ["size"]},
        "exact_filters": ["size"],
    }
    letters = worlds.stream("letters", fields, "at", query=query)

    def of(name: str, *texts: str) -> Connection:
        rows = (
            worlds.row("letters", f"{name}{n}", body=text, size=n, at=f"2026-01-0{n + 1}")
            for n, text in enumerate(texts)
        )
        return Connection(name, "post", None, (letters,), tuple(rows))

    mine = of("mine", "a lantern of mine", "another lantern")
    return World((mine, of("theirs", f"{CANARY} lantern", LONG)))


@pytest.fixture(scope="module")
def house() -> House:
    place = new_database()
    worlds.fill(place, world())
    return House(place)


@contextmanager
def web_role(place: Database) -> Iterator[Database]:
    """The same database, as a role of its own."""
    with psycopg.connect(place.url, autocommit=True) as db:
        known = db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone()
        if known is None:
            db.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'tests'".encode())
        db.execute(WEB_GRANT.format(ROLE).encode())
        parts = urlsplit(place.url)
        host = parts.netloc.rpartition("@")[2]
        yield Database(urlunsplit(parts._replace(netloc=f"{ROLE}:tests@{host}")))
        db.execute(f"DROP OWNED BY {ROLE}".encode())
        db.execute(f"DROP ROLE {ROLE}".encode())


@pytest.fixture(scope="module")
def web(house: House) -> Iterator[Database]:
    assert isinstance(house.path, Database)
    with web_role(house.path) as place:
        yield place


def test_a_service_with_the_role_answers_inside_the_grant(house: House, web: Database) -> None:
    own = replace(house, path=web)
    for entries in ((), ({"connection_id": "mine"},)):
        _, token = house.grant(*entries)
        for call in ("/v1/search?q=lantern", "/v1/streams/letters/records?connection_id=mine"):
            asked = [worlds.Api(one.application(), token).get(call) for one in (house, own)]
            assert asked[0].status == asked[1].status == 200
            assert asked[0].body["data"] == asked[1].body["data"] != []


def test_without_our_own_check_no_canary_comes_out(house: House, web: Database) -> None:
    """A view of the whole store, in a snapshot that is confined to one connection."""
    wide, _ = house.grant()
    sealer, engine = Sealer(b"a secret of tests only"), open_reader(web)
    said = list[object]()
    for ask in (
        lambda s, v: search.search(s, v, SearchQuery("lantern"), sealer),
        lambda s, v: search.search(s, v, SearchQuery(f"{CANARY[:-2]}*"), sealer),
        lambda s, v: search.search(s, v, SearchQuery(CANARY[:-1]), sealer),
        lambda s, v: lists.list_records(s, v, RecordQuery("letters", limit=9), sealer),
        lambda s, v: changes.list_changes(
            s, v, RecordQuery("letters", connection_id="theirs", changes_since="beginning"), sealer
        ),
        lambda s, v: aggregate.aggregate(
            s, v, AggregateQuery("letters", "count", group_by="size"), sealer
        ),
    ):
        with engine.snapshot() as snapshot:
            view = _wide(engine, wide)
            snapshot.confine(["mine"])
            said.append(ask(snapshot, view))
    engine.close()
    assert CANARY not in repr(said) and "theirs0" not in repr(said)
    assert "lantern of mine" in repr(said)


def _wide(engine: Engine, grant_id: str) -> View:
    with engine.snapshot() as snapshot:
        return open_view(snapshot, grants.by_id(RegistryReader(snapshot), grant_id))


def test_a_transaction_that_names_no_connection_sees_no_record(web: Database) -> None:
    with psycopg.connect(web.url, autocommit=True) as db:
        for table in (*GUARDED, *(f"{one}_seen" for one in VIEWED)):
            assert db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)
        for table in VIEWED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"SELECT count(*) FROM {table}".encode())


def test_the_role_cannot_write(web: Database) -> None:
    with open_writer(web) as writer, pytest.raises(Exception, match="cannot be read"):
        with writer.transaction():
            writer.save_connection("new", None, None)
