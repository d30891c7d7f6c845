"""Small worlds of records for tests, and the store, the application and the tokens around them.

    house = worlds.build(worlds.two_mailboxes(), tmp_path)
    api = house.api()                                            # everything
    api = house.api({"connection_id": "bank", "fields": ["id"], "stream": "transactions"})
    api.mcp("search", query="lantern")

A `World` is plain data: change it with `dataclasses.replace` and build again.
"""

import base64
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flask import Flask

from service import bootstrap, settings
from service.app import create_app
from service.place import Place, spelled
from service.access import grants
from service.access.registry import Registry
from service.records.writing.ingest import Batch
from service.records.intake import Row
from evidence.manifest import parse
from service.records.writing.streams import connect, declare, open_stream
from service.records.opening import open_writer
from tests.helpers.api import Api
from tests.helpers.places import new_place
from tests.helpers.server import UNLIMITED

__all__ = ["Api", "Connection", "House", "World", "build", "two_mailboxes", "odd_ids"]

#: The same for every store, so that the same world gives the same cursors.
SECRET = "a secret of tests only"
EMITTED_AT = "2026-05-02T00:00:00Z"
TIMES = ["gte", "gt", "lte", "lt"]


@dataclass(frozen=True)
class Connection:
    """A source: its manifest's streams and its rows, in the order they are imported."""

    id: str
    key: str
    label: str | None
    streams: tuple[dict[str, Any], ...]
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class World:
    """Connections, and rows that are imported later, as (connection, row), one import each."""

    connections: tuple[Connection, ...]
    later: tuple[tuple[str, Row], ...] = ()


@dataclass
class House:
    """A world in a store: makes tokens and clients for it. `app` is the whole application."""

    path: Place
    environ: dict[str, str] = field(default_factory=dict)

    @cached_property
    def app(self) -> Flask:
        return self.application()

    def application(self, **environ: str) -> Flask:
        """A new application over this store, with its own settings."""
        return create_app(bootstrap.build(settings.load({**self.environment, **environ})))

    @property
    def environment(self) -> dict[str, str]:
        """The environment that a process needs to serve this store."""
        own = {"RUNG_STORE": spelled(self.path), "RUNG_SECRET_KEY": SECRET}
        return {**UNLIMITED, **own, **self.environ}

    def grant(self, *entries: dict[str, Any], **more: Any) -> tuple[str, str]:
        """Creates a grant; returns (grant id, token). Without entries, it covers everything."""
        with open_writer(self.path) as writer:
            known = writer.connection_ids()
            named = entries or tuple({"connection_id": name} for name in known)
            return grants.create(Registry(writer), {"streams": list(named)}, **more)

    def api(self, *entries: dict[str, Any]) -> Api:
        """A client with a token for these entries of a grant document."""
        return Api(self.app, self.grant(*entries)[1])

    def change(self, sql: str, *values: Any) -> None:
        """Changes the store behind the application's back."""
        with open_writer(self.path) as writer:
            with nullcontext() if isinstance(self.path, Path) else writer.transaction():
                writer.run(sql, *values)

    def add(self, connection_id: str, *rows: Row) -> None:
        """Adds records to the store, as an import does."""
        with open_writer(self.path) as writer:
            batch = Batch(writer)
            for one in rows:
                batch.add(open_stream(writer, connection_id, one.stream or ""), one)
            batch.flush()
            assert not batch.counts.refused, batch.counts.refusals
            writer.finish()

    def revoke(self, grant_id: str) -> None:
        with open_writer(self.path) as writer:
            grants.revoke(Registry(writer), grant_id)


def build(world: World, folder: Path, **environ: str) -> House:
    """The world in a new store in `folder`."""
    path = new_place(folder)
    fill(path, world)
    return House(path, environ)


def fill(place: Place, world: World) -> None:
    """Puts the world into a store."""
    with open_writer(place) as writer:
        for connection in world.connections:
            connect(writer, connection.id, connector_key=connection.key, label=connection.label)
            declare(writer, connection.id, parse({"streams": list(connection.streams)}))
        rows = [(connection.id, row) for connection in world.connections for row in connection.rows]
        for group in (rows, *([one] for one in world.later)):
            batch = Batch(writer)
            for connection_id, row in group:
                batch.add(open_stream(writer, connection_id, row.stream or ""), row)
            batch.flush()
            assert not batch.counts.refused, batch.counts.refusals
        writer.finish()


def row(stream: str, key: str, **data: Any) -> Row:
    """A record whose id is `key`, in its data too."""
    return Row({"id": key, **data}, key, EMITTED_AT, stream)


def blob(content: bytes, media_type: str, blob_id: str) -> dict[str, Any]:
    """A blob object with its bytes, as a connector would send it."""
    encoded = base64.b64encode(content).decode()
    return {"blob_id": blob_id, "mime_type": media_type, "data_base64": encoded}


def text(role: str | None = None) -> dict[str, Any]:
    """A string field of a manifest."""
    return {"type": "string"} | ({"x_pdpp_role": role} if role else {})


def moment(role: str | None = "event-time") -> dict[str, Any]:
    """A date-time field of a manifest."""
    return {"type": "string", "format": "date-time"} | ({"x_pdpp_role": role} if role else {})


def stream(
    name: str, fields: dict[str, Any], cursor: str | None = None, **more: Any
) -> dict[str, Any]:
    """A stream of a manifest; `more` are its other members."""
    timed = {"cursor_field": cursor} if cursor else {}
    properties = {"id": {"type": "string"}, **fields}
    return {
        "name": name,
        "primary_key": ["id"],
        "schema": {"type": "object", "properties": properties},
        **timed,
        **more,
    }


def relation(name: str, target: str, key: str) -> dict[str, Any]:
    """A `has_many` relationship."""
    return {"name": name, "stream": target, "foreign_key": key, "cardinality": "has_many"}


# -- two mailboxes and a bank that also writes messages ------------------------------

NEEDLE = "the quorum met beneath the elm"
LONG = "lorem ipsum dolor sit amet consetetur " * 2_000
LONG_BODY = f"{LONG[:50_000]} {NEEDLE} {LONG[50_000:]}"
BINARY = bytes(range(256)) * 8


def two_mailboxes() -> World:
    """Two mailboxes with equal stream names, and a bank that has one stream of that name too."""
    return World((_mailbox("mail-home", "Home mail"), _mailbox("mail-work", "Work mail"), _bank()))


def _mailbox(name: str, label: str) -> Connection:
    here = name.removeprefix("mail-")
    rows = [
        row(
            "messages",
            f"m{number}",
            thread_id=f"t{number % 2}",
            subject=f"Lantern {number} at {here}",
            body=f"The lantern number {number} hangs at {here}." + " Lantern." * number,
            folder=("inbox", "sent", "archive")[number % 3],
            size=100 * number,
            unread=number % 2 == 0,
            received_at=f"2026-03-0{number}T10:00:00Z",
            headers={"to": [{"name": "Ada", "address": f"ada@{here}.example"}], "list/id": None},
        )
        for number in range(1, 7)
    ]
    rows.append(row("messages", "long", subject="The long one", body=LONG_BODY, folder="inbox"))
    rows += [row("threads", f"t{n}", topic=f"Thread {n} at {here}") for n in range(2)]
    files = (
        blob(f"A plain report from {here}.".encode(), "text/plain; charset=utf-8", f"text-{here}"),
        blob(BINARY, "application/pdf", f"pdf-{here}"),
    )
    rows += [
        row("attachments", f"a{n}", message_id=f"m{n + 1}", filename=f"file {n}", file=found)
        for n, found in enumerate(files)
    ]
    streams = (_messages(), _threads(), _attachments())
    return Connection(name, "mail", label, streams, tuple(rows))


def _messages() -> dict[str, Any]:
    fields = {
        "thread_id": text(),
        "subject": text("primary-title"),
        "body": text("primary-text"),
        "folder": text(),
        "size": {"type": "integer"},
        "unread": {"type": "boolean"},
        "received_at": moment(),
        "headers": {"type": "object"},
    }
    aggregations = {
        "sum": ["size"],
        "min": ["size", "received_at"],
        "max": ["size", "received_at"],
        "group_by": ["folder", "unread"],
        "group_by_time": ["received_at"],
        "count_distinct": ["folder", "thread_id"],
    }
    query = {
        "exact_filters": ["id", "thread_id", "folder", "unread", "size"],
        "range_filters": {"size": TIMES, "received_at": TIMES},
        "aggregations": aggregations,
        "search": {"lexical_fields": ["subject", "body"]},
        "expand": [{"name": "attachments", "default_limit": 2, "max_limit": 5}],
    }
    return stream(
        "messages",
        fields,
        "received_at",
        query=query,
        relationships=[relation("attachments", "attachments", "message_id")],
        views=[{"id": "basic", "label": "Subjects", "fields": ["id", "subject"]}],
    )


def _threads() -> dict[str, Any]:
    return stream(
        "threads",
        {"topic": text("primary-title")},
        query={
            "search": {"lexical_fields": ["topic"]},
            "expand": [{"name": "messages", "default_limit": 2, "max_limit": 5}],
        },
        relationships=[relation("messages", "messages", "thread_id")],
    )


def _attachments() -> dict[str, Any]:
    fields = {"message_id": text(), "filename": text("primary-title"), "file": {"type": "object"}}
    return stream("attachments", fields)


def _bank() -> Connection:
    messages = stream(
        "messages",
        {"subject": text("primary-title"), "received_at": moment()},
        "received_at",
        query={"search": {"lexical_fields": ["subject"]}},
    )
    payments = stream(
        "transactions",
        {"payee": text("primary-title"), "amount": {"type": "number"}, "booked_at": moment()},
        "booked_at",
        query={"aggregations": {"sum": ["amount"], "group_by": ["payee"]}},
    )
    rows = [row("messages", "m1", subject="A lantern statement", received_at="2026-04-01")]
    rows += [
        row("transactions", f"p{n}", payee=f"Shop {n % 2}", amount=n / 4, booked_at=f"2026-04-1{n}")
        for n in range(5)
    ]
    return Connection("bank", "bank", None, (messages, payments), tuple(rows))


# -- records with ids that nobody would choose ----------------------------------------------------

ODD_IDS = (
    "日記/2026-05-01",
    'path/to note: "draft" #1',
    "party 🎉 note",
    "a:b:c",
    "100% [done]; {really}, yes",
    "back\\slash",
    "two  spaces",
    "?q=1&x=2#part",
    "%2F",
    "%",
    "%zz%41",
    "a+b",
    "…/…",
    "../up",
    "//",
    "\u202egnp.exe\u202c",
    "tab\tline\nend",
    " ",
    "👩‍👩‍👧\U000e0041",
    "x" * 512,
)
ODD_CONNECTION = "büro 24/7: 100%"
ODD_STREAM = "möbel: a/b; [c]"
ODD_FIELD = "/the ~field"


def odd_ids() -> World:
    """One stream, oddly named, of records with odd ids; each contains the word `oddity` once."""
    fields = {"title": text("primary-title"), ODD_FIELD: text(), "at": moment()}
    things = stream(
        ODD_STREAM, fields, "at", query={"search": {"lexical_fields": ["title", ODD_FIELD]}}
    )
    rows = tuple(
        row(
            ODD_STREAM,
            key,
            at=f"2026-01-{number:02}",
            title=f"number {number}",
            **{ODD_FIELD: f"the oddity number{number}"},
        )
        for number, key in enumerate(ODD_IDS, start=1)
    )
    return World((Connection(ODD_CONNECTION, "odd: key", "An odd\nlabel", (things,), rows),))


def keys_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The record ids of rows of a REST list, or of search hits."""
    return [found.get("record_key") or found["id"] for found in rows]
