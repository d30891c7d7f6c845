"""Who the contract is asked of: resource servers, and what is known of the records behind them.

A further resource server is one more entry of `SUBJECTS`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from evidence.errors import EvidenceError
from evidence.handles import RecordRef
from service.ports import AggregateQuery, RecordQuery, ResourceServer, SchemaQuery, SearchQuery
from tests.helpers import small as small_world
from tests.helpers.caller import Local
from tests.helpers.remote import Open, opener
from tests.helpers.replay import recorded, replaying
from tests.helpers.server import serving
from tests.helpers.sources import of_grants
from tests.helpers.worlds import House


@dataclass(frozen=True)
class Subject:
    """A resource server, the requests that show what it promises, and what they must give.

    `keys` are all record ids of `stream`, in the order of the list, where all of it can be walked;
    `text` is the whole of `long`, where that can. `granted` are names the schema must show.
    """

    open: Open
    granted: frozenset[str]
    stream: RecordQuery
    one: RecordRef
    data: dict[str, Any]
    long: tuple[RecordRef, str]
    total: int
    search: SearchQuery
    found: tuple[RecordRef, str, str]
    pages: SearchQuery
    count: AggregateQuery
    value: int
    groups: AggregateQuery
    missing: RecordRef
    bad_cursors: tuple[Callable[[ResourceServer], object], ...]
    not_granted: tuple[Callable[[ResourceServer], object], ...]
    keys: tuple[str, ...] | None = None
    text: str | None = None

    def refused(self, ask: Callable[[ResourceServer], object]) -> EvidenceError:
        """The error of a request that must fail."""
        with pytest.raises(EvidenceError) as raised:
            ask(self.open())
        return raised.value


def _small(open: Open) -> Subject:
    """The small world, behind whatever opens it."""
    first = {"id": "m_001", "subject": "Quarterly plan"}
    return Subject(
        open=open,
        granted=frozenset({"messages", "attachments", "notes", "diary"}),
        stream=RecordQuery("diary", connection_id="notes", limit=2, count="exact"),
        keys=tuple(f"d{day}" for day in range(7, 0, -1)),
        one=RecordRef("messages", "m_001", "mail-work"),
        data=first,
        long=(RecordRef("messages", "m_long", "mail-work"), "body"),
        text=small_world.LONG_BODY,
        total=len(small_world.LONG_BODY),
        search=SearchQuery("quarterly plan"),
        found=(RecordRef("messages", "m_001", "mail-work"), "body", "plan"),
        pages=SearchQuery("standup*", limit=5),
        count=AggregateQuery("diary", "count", connection_id="notes"),
        value=7,
        groups=AggregateQuery("messages", "count", connection_id="mail-work", group_by="folder"),
        missing=RecordRef("messages", "nobody", "mail-work"),
        bad_cursors=(
            lambda rs: rs.records(RecordQuery("diary", cursor="garbage")),
            lambda rs: rs.search(SearchQuery("invoice", cursor="garbage")),
        ),
        not_granted=(
            lambda rs: rs.records(RecordQuery("secrets")),
            lambda rs: rs.stream("secrets"),
            lambda rs: rs.schema(SchemaQuery("secrets")),
            lambda rs: rs.search(SearchQuery("invoice", streams=("secrets",))),
            lambda rs: rs.aggregate(AggregateQuery("secrets", "count")),
            lambda rs: rs.records(RecordQuery("messages", connection_id="elsewhere")),
            lambda rs: rs.streams(connection_id="elsewhere"),
            lambda rs: rs.search(SearchQuery("invoice", connection_id="elsewhere")),
        ),
    )


def _reference(open: Open) -> Subject:
    """What was recorded of the reference server."""
    data = recorded("record_get_full")["body"]["data"]
    home = "cin_demo_personal"
    return Subject(
        open=open,
        granted=frozenset({"messages", "threads"}),
        stream=RecordQuery("messages", connection_id=home, limit=2),
        one=RecordRef("messages", "m_p001"),
        data={name: data[name] for name in ("id", "subject")},
        long=(RecordRef("messages", "m_p007", home), "body"),
        total=17_732,
        search=SearchQuery("4711", limit=25),
        found=(RecordRef("messages", "m_p007", home), "subject", "4711"),
        pages=SearchQuery("invoice", limit=2),
        count=AggregateQuery("messages", "count", connection_id="cin_demo_work"),
        value=61,
        groups=AggregateQuery("messages", "count", group_by="folder"),
        missing=RecordRef("messages", "nope", "cin_demo_work"),
        bad_cursors=(
            lambda rs: rs.records(RecordQuery("messages", connection_id=home, cursor="garbage")),
            lambda rs: rs.search(SearchQuery("invoice", limit=25, cursor="zzz")),
        ),
        not_granted=(
            lambda rs: rs.stream("nope"),
            lambda rs: rs.schema(SchemaQuery("zzz")),
            lambda rs: rs.schema(SchemaQuery(connection_id="cin_zz")),
            lambda rs: rs.search(SearchQuery("invoice", streams=("nope",), limit=25)),
            lambda rs: rs.records(RecordQuery("messages", connection_id="cin_zzz")),
            lambda rs: rs.streams(connection_id="cin_zz"),
            lambda rs: rs.search(SearchQuery("invoice", connection_id="cin_zz", limit=25)),
        ),
    )


@contextmanager
def _store(small_house: House, small: Local) -> Iterator[Subject]:
    store = small_house.app.extensions["rung"].store
    yield _small(lambda: store.open(small.api.token))


@contextmanager
def _http(small_house: House, small: Local) -> Iterator[Subject]:
    with serving("wsgi:app", small_house.environment) as url:
        yield _small(opener(url, str(small.api.token)))


@contextmanager
def _replay(small_house: House, small: Local) -> Iterator[Subject]:
    with replaying() as server:
        yield _reference(opener(server.url, "full"))


@contextmanager
def _package(small_house: House, small: Local) -> Iterator[Subject]:
    entries = {name: {"connection_id": name} for name in ("mail-work", "mail-home", "notes")}
    grants = {
        "Work and notes": (entries["mail-work"], entries["notes"]),
        "Home": (entries["mail-home"],),
    }
    yield _small(of_grants(small_house, grants))


#: By name, what makes a subject; it may use the small house and its client.
SUBJECTS = {"store": _store, "http": _http, "replay": _replay, "package": _package}
