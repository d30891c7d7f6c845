"""Only client tokens open an upstream, and who asked is remembered for a while, by hash."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from evidence.errors import EvidenceError, Forbidden, Unauthenticated, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote.origin import Bulkhead, Origin
from service.ports import SchemaQuery
from service.sources.remote.remote_authority import Introspection, RemoteAuthority
from tests.helpers.loopback import Asked, Loopback, Reply, answering, as_json
from tests.helpers.replay import RECORDED, recorded

TOKEN = "tok-1"
SECRET = "s3cret: with ünicode"
NOW = "Sat, 21 Nov 2026 02:08:11 GMT"
NOW_SECONDS = 1_795_226_891


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def after(self, seconds: float) -> Deadline:
        return Deadline(self.now + seconds, lambda: self.now)


class World:
    """A resource server and an introspection endpoint that say what a test wants."""

    def __init__(self, server: Loopback) -> None:
        self.server = server
        self.clock = Clock()
        self.says: Callable[[Asked], Reply] = lambda asked: as_json(schema("client"))
        server.answer = lambda asked: self.says(asked)

    def authority(self, *, introspected: bool = False, **more: Any) -> RemoteAuthority:
        url = f"{self.server.url}/introspect"
        there = Introspection(url, "rung", SECRET) if introspected else None
        return RemoteAuthority(Origin(self.server.url), there, after=self.clock.after, **more)

    def says_of_token(self, *, date: str = NOW, **said: Any) -> None:
        self.says = lambda asked: as_json({"active": True, **said}, Date=date)


@pytest.fixture
def world() -> Iterator[World]:
    with answering(lambda asked: Reply()) as server:
        yield World(server)


def schema(kind: Any) -> dict[str, Any]:
    bearer = {} if kind is None else {"bearer": {"token_kind": kind, "scope": "grant"}}
    return {"object": "schema", "connectors": [], **bearer}


def soon() -> Deadline:
    return Deadline.after(20)


def refused(authority: RemoteAuthority, token: str = TOKEN) -> EvidenceError:
    with pytest.raises(EvidenceError) as raised:
        authority.open(token, soon())
    shown = f"{raised.value!r} {raised.value.body()}"
    assert token not in shown and SECRET not in shown and "127.0.0.1" not in shown
    return raised.value


def test_a_client_token_opens_the_server_it_is_sent_to(world: World) -> None:
    server = world.authority().open(TOKEN, soon())
    assert server.schema(SchemaQuery()).value.bearer.token_kind == "client"
    assert {asked.token for asked in world.server.asked} == {TOKEN}


def test_the_kind_is_recorded_in_the_schema_of_the_reference(world: World) -> None:
    world.says = lambda asked: as_json(recorded("schema_compact")["body"])
    world.authority().open(TOKEN, soon())
    world.says = lambda asked: as_json(recorded("schema_compact_owner")["body"])
    assert isinstance(refused(world.authority()), Forbidden)


@pytest.mark.parametrize(
    "kind",
    ["owner", "OWNER", " Owner ", "owner_agent", "device-exporter", "mcp_package", "x", 7, None],
)
@pytest.mark.parametrize("introspected", [False, True])
def test_every_other_kind_is_refused(world: World, kind: Any, introspected: bool) -> None:
    body = {"active": True, "pdpp_token_kind": kind}
    world.says = lambda asked: as_json(body if introspected else schema(kind))
    error = refused(world.authority(introspected=introspected))
    assert isinstance(error, Forbidden) and error.code == "permission_error"


@pytest.mark.parametrize("token", ["rung_abc", ""])
@pytest.mark.parametrize("introspected", [False, True])
def test_tokens_of_the_store_are_never_sent(world: World, token: str, introspected: bool) -> None:
    with pytest.raises(Unauthenticated):
        world.authority(introspected=introspected).open(token, soon())
    assert world.server.asked == []


def test_introspection_gets_the_token_and_our_credentials(world: World) -> None:
    world.says_of_token(pdpp_token_kind="client")
    world.authority(introspected=True).open("a+b/c=", soon())
    asked = world.server.asked[0]
    assert (asked.method, asked.target, asked.body) == (
        "POST",
        "/introspect",
        b"token=a%2Bb%2Fc%3D",
    )
    sent = base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
    assert sent == "rung:s3cret%3A+with+%C3%BCnicode"
    assert len(world.server.asked) == 1


@pytest.mark.parametrize(
    "name, kind",
    [
        ("introspect_client", None),
        ("introspect_owner", Forbidden),
        ("introspect_bad", Unauthenticated),
    ],
)
def test_recorded_introspections_are_understood(
    world: World, name: str, kind: type[EvidenceError] | None
) -> None:
    body = orjson.loads((RECORDED / f"{name}.json").read_bytes())
    world.says = lambda asked: as_json(body, Date=NOW)
    authority = world.authority(introspected=True, audience="http://localhost:17663/")
    if kind is None:
        authority.open(TOKEN, soon())
    else:
        assert type(refused(authority)) is kind


@pytest.mark.parametrize(
    "told, good",
    [
        (None, True),
        ("https://rs.example", True),
        ("https://rs.example/", True),
        (["https://other.example", "https://rs.example"], True),
        ("https://other.example", False),
        ([], False),
        (7, False),
    ],
)
def test_a_token_for_another_audience_is_refused(world: World, told: Any, good: bool) -> None:
    world.says_of_token(pdpp_token_kind="client", aud=told)
    authority = world.authority(introspected=True, audience="https://rs.example")
    if good:
        authority.open(TOKEN, soon())
    else:
        assert isinstance(refused(authority), Unauthenticated)
    world.authority(introspected=True).open(TOKEN, soon())


@pytest.mark.parametrize(
    "reply",
    [
        as_json({"error": {"code": "context.authentication_failed"}}, 401),
        as_json({}, 200),
        as_json([], 200),
        as_json({"active": "true", "pdpp_token_kind": "client"}),
        Reply(200, b"<html>"),
        Reply(503, b"", {"Retry-After": "9"}),
        Reply(302, b"", {"Location": "/elsewhere"}),
    ],
    ids=lambda reply: str(reply.status),
)
def test_nobody_is_let_in_where_introspection_fails(world: World, reply: Reply) -> None:
    world.says = lambda asked: reply
    authority = world.authority(introspected=True)
    assert isinstance(refused(authority), Unavailable)
    world.says_of_token(pdpp_token_kind="client")
    authority.open(TOKEN, soon())


def test_a_kind_is_asked_for_once_a_minute(world: World) -> None:
    authority = world.authority()
    for _ in range(3):
        authority.open(TOKEN, soon())
    assert len(world.server.asked) == 1
    world.clock.now += BUDGETS.token_seconds
    authority.open(TOKEN, soon())
    assert len(world.server.asked) == 2


@pytest.mark.parametrize("exp, seconds", [(NOW_SECONDS + 10, 10), (NOW_SECONDS + 999, 60)])
def test_no_longer_than_the_token_lives(world: World, exp: int, seconds: int) -> None:
    world.says_of_token(pdpp_token_kind="client", exp=exp)
    authority = world.authority(introspected=True)
    authority.open(TOKEN, soon())
    world.clock.now += seconds - 0.5
    authority.open(TOKEN, soon())
    assert len(world.server.asked) == 1
    world.clock.now += 0.5
    authority.open(TOKEN, soon())
    assert len(world.server.asked) == 2


@pytest.mark.parametrize("exp, date", [("soon", NOW), ([], NOW), (NOW_SECONDS + 99, "no date")])
def test_an_end_that_cannot_be_known_is_believed_for_moments(
    world: World, exp: Any, date: str
) -> None:
    world.says_of_token(pdpp_token_kind="client", exp=exp, date=date)
    authority = world.authority(introspected=True)
    authority.open(TOKEN, soon())
    world.clock.now += BUDGETS.refused_token_seconds
    authority.open(TOKEN, soon())
    assert len(world.server.asked) == 2


def test_a_refusal_is_remembered_for_moments(world: World) -> None:
    world.says = lambda asked: as_json(
        {"error": {"code": "grant_revoked", "message": "Over."}}, 403
    )
    authority = world.authority()
    for _ in range(2):
        error = refused(authority)
        assert isinstance(error, Unauthenticated) and error.code == "grant_revoked"
    assert len(world.server.asked) == 1
    world.says = lambda asked: as_json(schema("client"))
    world.clock.now += BUDGETS.refused_token_seconds
    authority.open(TOKEN, soon())


def test_faults_of_the_way_are_not_remembered(world: World) -> None:
    world.says = lambda asked: Reply(500, b"oh")
    authority = world.authority()
    assert isinstance(refused(authority), Unavailable)
    world.says = lambda asked: as_json(schema("client"))
    authority.open(TOKEN, soon())


def test_one_token_says_nothing_of_another(world: World) -> None:
    world.says = lambda asked: as_json(schema("client" if asked.token == TOKEN else "owner"))
    authority = world.authority()
    authority.open(TOKEN, soon())
    assert isinstance(refused(authority, "tok-2"), Forbidden)
    authority.open(TOKEN, soon())


def test_tokens_are_not_kept(world: World) -> None:
    authority = world.authority()
    authority.open(TOKEN, soon())
    assert TOKEN not in repr(vars(authority))
    assert TOKEN not in repr(vars(authority.open(TOKEN, soon())))
    assert SECRET not in repr(Introspection("https://as.example", "rung", SECRET))


def test_who_asks_is_asked_from_a_seat(world: World) -> None:
    bulkhead = Bulkhead(threads=1)
    assert bulkhead.acquire()
    for introspected in (False, True):
        error = refused(world.authority(introspected=introspected, bulkhead=bulkhead))
        assert error.code == "upstream_busy"
    assert world.server.asked == []
