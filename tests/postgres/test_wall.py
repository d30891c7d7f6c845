"""The second wall: a role that sees what a grant names, whatever our own check lets through."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from click.testing import CliRunner

from evidence.errors import NotFound
from service.__main__ import rung
from service.access.registry import Grant, RegistryReader, StreamGrant
from service.keys import Sealer
from service.place import Database, Place, spelled
from service.ports import AggregateQuery, RecordQuery, SchemaQuery, SearchQuery
from service.records.reading import aggregate, blobs, changes, lists, schema
from service.records.search import pages
from service.records.engine import Snapshot
from service.access.tables import TABLES
from service.records.opening import open_reader, open_writer
from service.records.overview import overview
from service.records.postgres.ddl import GUARDED, HELD, VIEWED, WEB_GRANT
from service.records.view import View, open_view
from tests.helpers import worlds
from tests.helpers.places import RUN, empty_database
from tests.helpers.server import ROOT
from tests.helpers.worlds import Connection, House, World

CANARY, ROLE, OWNER = "zanzibarcanary", f"{RUN}_web", f"{RUN}_owner"
FIELDS = ("id", "body", "size", "at", "file")
BLOB = "blob-{}"
SEALER = Sealer(b"a secret of tests only")
CHANGES = RecordQuery("letters", connection_id="theirs", changes_since="beginning")
BY_SIZE = AggregateQuery("letters", "count", group_by="size")
#: Tables whose rows the role can read whatever a transaction names.
OPEN_TABLES = """
SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
AND NOT relrowsecurity AND has_table_privilege(oid, 'SELECT')
"""
#: What the guide dumps a database with.
DUMP = "PGOPTIONS='-c rung.writes=on' pg_dump --enable-row-security -Fc {}"
#: As it was before row security bound the owner of the tables.
OLDER_CONFINE = """
CREATE OR REPLACE FUNCTION rung_confine(names text[]) RETURNS text LANGUAGE sql
  SECURITY DEFINER SET search_path FROM CURRENT AS
  $$ SELECT set_config('rung.conns', array(
    SELECT id FROM connection WHERE names IS NULL OR connection_id = ANY (names))::text, true) $$;
"""
LONG = f"{'lorem ipsum dolor ' * 9_000} {CANARY} lantern"
MINE, THEIRS = "mine", "theirs"


def world() -> World:
    fields = {
        "body": worlds.text("primary-text"),
        "size": {"type": "integer"},
        "at": worlds.moment(),
        "file": {"type": "object"},
    }
    query = {
        "search": {"lexical_fields": ["body"]},
        "aggregations": {"group_by": ["size"], "group_by_time": ["at"], "sum": ["size"]},
        "exact_filters": ["size"],
    }

    def of(name: str, label: str, *texts: str) -> Connection:
        letters = worlds.stream("letters", fields, "at", query=query, label=label)
        rows = [
            worlds.row("letters", f"{name}{n}", body=text, size=n, at=f"2026-01-0{n + 1}")
            for n, text in enumerate(texts)
        ]
        rows[0].data["file"] = worlds.blob(texts[0].encode(), "text/plain", BLOB.format(name))
        return Connection(name, "post", label, (letters,), tuple(rows))

    mine = of(MINE, "Mine", "a lantern of mine", "another lantern", "no more")
    return World((mine, of(THEIRS, CANARY, f"{CANARY} lantern", LONG)))


@contextmanager
def as_role(place: Database, role: str, rights: str) -> Iterator[Database]:
    """The same database, as a role with some rights."""
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'tests'".encode())
        db.execute(rights.encode())
        parts = urlsplit(place.url)
        host = parts.netloc.rpartition("@")[2]
        try:
            yield Database(urlunsplit(parts._replace(netloc=f"{role}:tests@{host}")))
        finally:
            db.execute(f"DROP OWNED BY {role} CASCADE".encode())
            db.execute(f"DROP ROLE {role}".encode())


def web_role(place: Database) -> AbstractContextManager[Database]:
    """The same database, as a role that serves."""
    return as_role(place, ROLE, WEB_GRANT.format(ROLE))


@pytest.fixture(scope="module")
def database() -> Database:
    return empty_database()


@pytest.fixture(scope="module")
def house(database: Database) -> Iterator[House]:
    """A store whose owner has no right that a host would not give."""
    rights = f"GRANT CREATE ON SCHEMA public TO {OWNER}"
    with as_role(database, OWNER, rights) as place:
        worlds.fill(place, world())
        yield House(place)


@pytest.fixture(scope="module")
def second(house: House, database: Database) -> Iterator[Database]:
    """The store of the house, for a second role."""
    with web_role(database) as place:
        yield place


@pytest.fixture(params=["a second role", "a single role"], scope="module")
def web(request: pytest.FixtureRequest, house: House, second: Database) -> Database:
    """The store of the house, for a second role or for the one that owns it."""
    if request.param == "a second role":
        return second
    assert isinstance(house.path, Database)
    return house.path


def test_a_service_with_the_role_answers_inside_the_grant(house: House, web: Database) -> None:
    own = replace(house, path=web)
    for entries in ((), ({"connection_id": "mine"},)):
        _, token = house.grant(*entries)
        for call in ("/v1/search?q=lantern", "/v1/streams/letters/records?connection_id=mine"):
            asked = [worlds.Api(one.application(), token).get(call) for one in (house, own)]
            assert asked[0].status == asked[1].status == 200
            assert asked[0].body["data"] == asked[1].body["data"] != []


@contextmanager
def confined(place: Place, *names: str) -> Iterator[Snapshot]:
    """A snapshot for a request that reads some connections, all if none are named."""
    with closing(open_reader(place)) as engine, engine.snapshot() as snapshot:
        snapshot.confine(names or None)
        yield snapshot


@pytest.fixture(scope="module")
def everything() -> Grant:
    both = (StreamGrant(name, "letters", FIELDS) for name in (MINE, THEIRS))
    return Grant("grt_everything", None, tuple(both))


@pytest.fixture(scope="module")
def leaky(house: House, everything: Grant) -> View:
    """Every stream of the store, as our check lets them through by mistake, for a grant of one."""
    with confined(house.path) as snapshot:
        view = open_view(snapshot, everything)
    own = tuple(one for one in everything.streams if one.connection_id == MINE)
    return replace(view, grant=replace(everything, streams=own))


def test_without_our_own_check_no_record_comes_out(web: Database, leaky: View) -> None:
    said = list[object]()
    for ask in (
        lambda s: pages.search(s, leaky, SearchQuery("lantern"), SEALER),
        lambda s: pages.search(s, leaky, SearchQuery(f"{CANARY[:-2]}*"), SEALER),
        lambda s: pages.search(s, leaky, SearchQuery(CANARY[:-1]), SEALER),
        lambda s: lists.list_records(s, leaky, RecordQuery("letters", limit=9), SEALER),
        lambda s: changes.list_changes(s, leaky, CHANGES, SEALER),
        lambda s: aggregate.aggregate(s, leaky, BY_SIZE, SEALER),
    ):
        with confined(web, MINE) as snapshot:
            said.append(ask(snapshot))
    assert CANARY not in repr(said) and "theirs0" not in repr(said)
    assert "lantern of mine" in repr(said)


def test_without_our_own_check_no_count_comes_out(web: Database, leaky: View) -> None:
    with confined(web, MINE) as snapshot:
        listed = schema.list_streams(snapshot, leaky, None).rows
        assert {one.source.connection_id: one.record_count for one in listed} == {
            MINE: 3,
            THEIRS: 0,
        }
        own = (one for one in leaky.streams if one.connection_id == MINE)
        mine = snapshot.statistics(*zip(*((one.id, *one.searchable) for one in own))).get()
        streams, fields = tuple(leaky.covered.selections), leaky.covered.scope().fields
        assert snapshot.statistics(streams, fields).get() == mine
        assert mine[0] == 3


def test_without_our_own_check_no_byte_of_a_blob_comes_out(
    house: House, web: Database, leaky: View
) -> None:
    (theirs,) = (one for one in leaky.streams if one.connection_id == THEIRS)
    with confined(house.path, THEIRS) as snapshot:
        (known,) = snapshot.blobs(theirs.selection(), BLOB.format(THEIRS))
        assert CANARY.encode() in snapshot.blob_content(known)
    with closing(open_reader(web)) as engine:
        with pytest.raises(NotFound):
            blobs.open_blob(engine, leaky, BLOB.format(THEIRS), None)
        mine = blobs.open_blob(engine, leaky, BLOB.format(MINE), None)
        assert b"".join(mine.chunks(0, mine.size_bytes)) == b"a lantern of mine"
    # The number of their blob, as our check lets it through by mistake.
    with confined(web, MINE) as snapshot:
        assert snapshot.blob_content(known) == b""
        assert snapshot.blob_part(known, 0) is None


def test_without_our_own_check_no_name_or_manifest_comes_out(
    web: Database, everything: Grant
) -> None:
    """A grant of everything, in a request for one connection, after requests for all of them."""
    with closing(open_reader(web)) as engine:
        with engine.snapshot() as snapshot:
            assert [one.connection for one in overview(snapshot, 0)] == ["Mine", CANARY]
        with engine.snapshot() as snapshot:
            snapshot.confine({MINE})
            view = open_view(snapshot, everything)
            said = [
                snapshot.names(),
                schema.schema(view, SchemaQuery()),
                schema.list_streams(snapshot, view, None),
                pages.search(snapshot, view, SearchQuery("lantern"), SEALER),
            ]
            assert RegistryReader(snapshot).grants() == []  # they name connections
    assert THEIRS not in repr(said) and CANARY not in repr(said) and MINE in repr(said)


def test_a_transaction_that_names_no_connection_sees_nothing(second: Database) -> None:
    with psycopg.connect(second.url, autocommit=True) as db:
        for table in (*GUARDED, *(f"{one}_seen" for one in VIEWED)):
            assert db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)
        for table in VIEWED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"SELECT count(*) FROM {table}".encode())


def test_a_single_role_is_held_by_row_security_alone(house: House, second: Database) -> None:
    assert isinstance(house.path, Database)
    with psycopg.connect(house.path.url, autocommit=True) as db:
        for table in GUARDED:
            assert db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)
        for table in VIEWED:
            assert db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() != (0,)


def test_a_store_without_forced_row_security_gets_it_from_the_next_writer() -> None:
    role = f"{OWNER}_before"
    with as_role(empty_database(), role, f"GRANT CREATE ON SCHEMA public TO {role}") as place:
        worlds.fill(place, world())
        with psycopg.connect(place.url, autocommit=True) as db:
            for table in HELD:
                db.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY".encode())
                db.execute(f"DROP POLICY written ON {table}".encode())
            db.execute(OLDER_CONFINE)
            db.execute("DELETE FROM meta WHERE key = 'wall_layout'")
            assert db.execute("SELECT count(*) FROM record").fetchone() == (5,)
            house = House(place)
            api = house.api({"connection_id": MINE})
            assert db.execute("SELECT count(*) FROM record").fetchone() == (0,)
        house.add(MINE, worlds.row("letters", "new", body="a new lantern"))
        assert len(api.rest("/v1/search", q="lantern").body["data"]) == 3


@pytest.mark.skipif(not shutil.which("pg_dump"), reason="needs the programs of PostgreSQL")
def test_the_dump_of_the_guide_holds_every_record(house: House, tmp_path: Path) -> None:
    assert isinstance(house.path, Database)
    file, restored = tmp_path / "rung.dump", empty_database()
    guide = (ROOT / "docs" / "postgres.md").read_text(encoding="utf-8")
    assert f"$ {DUMP.format('rung')} > rung.dump" in guide
    for command in (
        f"{DUMP.format(house.path.url)} > {file}",
        f"pg_restore --no-owner --no-privileges -d {restored.url} {file}",
    ):
        subprocess.run(["sh", "-c", command], check=True)
    with psycopg.connect(restored.url) as db:
        assert db.execute("SELECT count(*) FROM record").fetchone() == (5,)
    said = House(restored).api().rest("/v1/search", q="lantern").body["data"]
    assert said == house.api().rest("/v1/search", q="lantern").body["data"] != []


def test_the_doctor_names_what_the_role_leaves_open(
    database: Database, house: House, second: Database
) -> None:
    for place, said in (
        (second, "can read only the connections that a request names"),
        (house.path, "the importer and the service use the same role"),
        (database, "can read every record"),
    ):
        found = CliRunner().invoke(rung, ["doctor"], env={"RUNG_STORE": spelled(place)})
        assert said in found.output
        assert ("CREATE ROLE rung_web LOGIN" in found.output) is (place is not second)


def test_every_table_with_a_connection_is_behind_the_wall(second: Database) -> None:
    """Row security, or no right to read the table itself."""
    with psycopg.connect(second.url) as db:
        tables = {name for (name,) in db.execute(OPEN_TABLES)}
    assert tables == {"meta", "counter", "commit_log", "vector_set", *TABLES}


def test_the_guide_has_the_rights_of_the_role() -> None:
    guide = (ROOT / "docs" / "postgres.md").read_text(encoding="utf-8")
    assert f"{WEB_GRANT.format('rung_web')};" in " ".join(guide.split())


def test_the_role_cannot_write(second: Database) -> None:
    with open_writer(second) as writer, pytest.raises(Exception, match="cannot be read"):
        with writer.transaction():
            writer.save_connection("new", None, None)
