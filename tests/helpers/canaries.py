"""A world in which every name and every text is a unique word, to catch leaks.

    plan = canaries.plan()                       # plain JSON: easy to change, see variants.py
    house = worlds.build(canaries.world_of(plan), tmp_path)
    permitted = canaries.permitted(plan, entries)     # the words that a grant may show
    canaries.words_in(answer) - permitted             # must be empty

Three connections share the stream `NOTES`; two have `TASKS` below it, the third has `LEDGER`.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import unquote_plus

import orjson

from service.records.intake import Row
from evidence.times import microseconds
from tests.helpers.worlds import EMITTED_AT, TIMES, Connection, World, blob, moment, text

WORD = re.compile("zq[a-z]{10}")
BASE64 = (re.compile("[A-Za-z0-9_-]{16,}"), re.compile("[A-Za-z0-9+/]{16,}"))
LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: The number of words in every searchable text except the big ones. A text's rank in a search for
#: one word then depends only on that word's count, never on the average length of other texts.
TEXT_WORDS = 24
BIG_WORDS = 14_000
RECORDS = 5

Plan = dict[str, Any]
#: (connection id, stream name, record id) to the record's data, None for a deleted one.
State = dict[tuple[str, str, str], dict[str, Any] | None]


def word(*parts: Any) -> str:
    """The canary for these parts: twelve letters that begin with `zq`."""
    digest = sha256(repr(parts).encode()).digest()
    return "zq" + "".join(LETTERS[byte % 26] for byte in digest[:10])


NOTES, TASKS, LEDGER = (word("stream", name) for name in ("notes", "tasks", "ledger"))
CONNECTIONS = tuple(word("connection", number) for number in range(3))
SHARED = word("record", "in two connections")
KINDS = ("id", "title", "body", "kind", "amount", "flag", "at", "tree", "file", "big", "extra")
FIELDS = {
    NOTES: {name: word("field", NOTES, name) for name in KINDS},
    TASKS: {name: word("field", TASKS, name) for name in ("id", "parent", "note", "at")},
    LEDGER: {name: word("field", LEDGER, name) for name in ("id", "owner", "text", "at")},
}
RELATIONS = {name: word("relation", name) for name in ("tasks", "ledger", "parent")}
VIEWS = {name: word("view", name) for name in ("titles", "extras", "figures")}
BLOBS = tuple(word("blob", name) for name in CONNECTIONS)


def plan() -> Plan:
    """The world as JSON: connections with their streams and rows, and later changes."""
    found = [_connection(number, name) for number, name in enumerate(CONNECTIONS)]
    return {"connections": found, "later": list(_later(found))}


def _connection(number: int, name: str) -> Plan:
    streams = [_notes(), _ledger()] if number == 2 else [_notes(), _tasks()]
    rows = [_note(name, n) for n in range(RECORDS)]
    if number == 2:
        rows += [_other(LEDGER, "owner", "text", name, n) for n in range(4)]
    else:
        rows += [_other(TASKS, "parent", "note", name, n) for n in range(4)]
    label, key = word("label", name), word("connector", number // 2)
    return {"id": name, "key": key, "label": label, "streams": streams, "rows": rows}


def key_of(connection: str, number: int) -> str:
    """The id of a note. The first note is in every connection."""
    return word("record", connection, number) if number else SHARED


def prose(*parts: Any, count: int) -> str:
    """Text of `TEXT_WORDS` words: `count` times `common`, two canaries, the rest `filler`."""
    own = [word("text", *parts, 0), word("text", *parts, 1)]
    words = ["common"] * count + own + ["filler"] * (TEXT_WORDS - count - 2)
    return " ".join(words)


def _note(connection: str, number: int) -> list[Any]:
    key, place = key_of(connection, number), (connection, NOTES, number)
    big = [word("big", *place, n // 500) if n % 500 == 0 else "bulk" for n in range(BIG_WORDS)]
    file = {
        "blob_id": word("blob", connection) if number == 1 else word("blob", connection, number),
        "mime_type": "text/plain" if number % 2 else "application/pdf",
        "data_text": word("inside a blob", *place),
    }
    data = {
        "id": key,
        "title": prose("title", *place, count=1 + number),
        "body": prose("body", *place, count=20 - 3 * number),
        "kind": word("enum", connection, number % 2),
        "amount": 1_000 + 37 * number + len(connection),
        "flag": number % 2 == 0,
        "at": f"2026-0{number + 1}-10T08:00:00Z",
        "tree": {"k": word("tree", *place), "deep": [{"x": word("deep", *place)}]},
        "file": file,
        "extra": prose("extra", *place, count=7),
    }
    if number == 3:
        data["big"] = " ".join(big)
    return _row(NOTES, key, data)


def _other(stream: str, link: str, prosaic: str, connection: str, number: int) -> list[Any]:
    key, place = word("record", connection, stream, number), (connection, stream, number)
    data = {
        "id": key,
        link: key_of(connection, number % 2),
        prosaic: prose(*place, count=2 + number),
        "at": f"2026-0{number + 2}-20T08:00:00Z",
    }
    return _row(stream, key, data)


def _row(stream: str, key: str, data: dict[str, Any]) -> list[Any]:
    named = {FIELDS[stream][name]: value for name, value in data.items()}
    return [stream, key, named, EMITTED_AT, False]


def _later(connections: list[Plan]) -> Iterator[list[Any]]:
    """Two edits and a deletion in each connection."""
    for connection in connections:
        for number, changed in ((1, "body"), (2, "extra")):
            row = _note(connection["id"], number)
            new = prose("later", changed, connection["id"], count=3)
            row[2] = {**row[2], FIELDS[NOTES][changed]: new}
            yield [connection["id"], row]
        gone = _note(connection["id"], 4)
        yield [connection["id"], [NOTES, gone[1], {}, EMITTED_AT, True]]


def _stream(name: str, cursor: str, fields: dict[str, Any], **more: Any) -> Plan:
    names = FIELDS[name]
    return {
        "name": name,
        "label": word("label", name),
        "primary_key": [names["id"]],
        "cursor_field": names[cursor],
        "schema": {"properties": {names[short]: kind for short, kind in fields.items()}},
        **more,
    }


def _notes() -> Plan:
    names = FIELDS[NOTES]
    fields = {
        "id": text(),
        "title": text("primary-title"),
        "body": text("primary-text"),
        "kind": text(),
        "amount": {"type": "integer"},
        "flag": {"type": "boolean"},
        "at": moment(),
        "tree": {"type": "object"},
        "file": {"type": "object", "x_pdpp_role": "blob-reference"},
        "big": text(),
        "extra": {"type": "string", "description": word("described")},
    }
    grouped = [names["kind"], names["flag"]]
    query = {
        "range_filters": {names["amount"]: TIMES, names["at"]: TIMES},
        "aggregations": {
            "sum": [names["amount"]],
            "min": [names["amount"], names["at"]],
            "max": [names["amount"], names["at"]],
            "group_by": grouped,
            "count_distinct": grouped,
            "group_by_time": [names["at"]],
        },
        "search": {"lexical_fields": [names[n] for n in ("title", "body", "big", "extra")]},
        "expand": [{"name": RELATIONS["tasks"]}, {"name": RELATIONS["ledger"]}],
    }
    views = {"titles": ("id", "title"), "extras": ("extra",), "figures": ("kind", "amount")}
    return _stream(
        NOTES,
        "at",
        fields,
        query=query,
        relationships=[
            _relation("tasks", TASKS, "parent"),
            _relation("ledger", LEDGER, "owner"),
        ],
        views=[
            {"id": VIEWS[name], "label": word("label", name), "fields": [names[n] for n in shown]}
            for name, shown in views.items()
        ],
    )


def _tasks() -> Plan:
    fields = {"id": text(), "parent": text(), "note": text("primary-title"), "at": moment()}
    query = {
        "search": {"lexical_fields": [FIELDS[TASKS]["note"]]},
        "expand": [{"name": RELATIONS["parent"]}],
    }
    relations = [_relation("parent", NOTES, "kind")]
    return _stream(TASKS, "at", fields, query=query, relationships=relations)


def _ledger() -> Plan:
    fields = {"id": text(), "owner": text(), "text": text("primary-title"), "at": moment()}
    query = {"search": {"lexical_fields": [FIELDS[LEDGER]["text"]]}}
    return _stream(LEDGER, "at", fields, query=query)


def _relation(name: str, stream: str, key: str) -> Plan:
    return {"name": RELATIONS[name], "stream": stream, "foreign_key": FIELDS[stream][key]}


def world_of(plan: Plan) -> World:
    """The world of a plan, ready to build."""
    connections = [
        Connection(one["id"], one["key"], one["label"], tuple(one["streams"]), _rows(one["rows"]))
        for one in plan["connections"]
    ]
    later = [(name, _rows([row])[0]) for name, row in plan["later"]]
    return World(tuple(connections), tuple(later))


def _rows(rows: Iterable[list[Any]]) -> tuple[Row, ...]:
    return tuple(
        Row({name: _sent(value) for name, value in data.items()}, key, at, stream, deleted)
        for stream, key, data, at, deleted in rows
    )


def _sent(value: Any) -> Any:
    """A blob with its bytes: text as it is, anything else not as UTF-8."""
    if not isinstance(value, dict) or "data_text" not in value:
        return value
    plain = value["mime_type"] == "text/plain"
    content = value["data_text"].encode()
    return blob(content if plain else b"\xff\xfe" + content, value["mime_type"], value["blob_id"])


def state_of(plan: Plan) -> State:
    """The final state of every record."""
    found: State = {}
    arrivals = [(one["id"], row) for one in plan["connections"] for row in one["rows"]]
    for connection, (stream, key, data, _, deleted) in (*arrivals, *plan["later"]):
        found[connection, stream, key] = None if deleted else data
    return found


def visible(entry: dict[str, Any], key: str, data: dict[str, Any], time_field: str) -> bool:
    """Whether an entry of a grant shows a record, judged by the record's last data."""
    if "resources" in entry and key not in entry["resources"]:
        return False
    bounds = entry.get("time_constraint", {})
    at = microseconds(data.get(time_field, ""))
    since, until = (microseconds(bounds.get(name, "")) for name in ("since", "until"))
    if at is None:
        return not bounds
    return (since is None or at >= since) and (until is None or at < until)


def permitted(plan: Plan, entries: Iterable[dict[str, Any]]) -> frozenset[str]:
    """The canaries that a grant with these entries may show."""
    granted = list(entries)
    parts: list[Any] = []
    for connection in plan["connections"]:
        own = {one["stream"]: one for one in granted if one["connection_id"] == connection["id"]}
        if own:
            parts.append([connection[name] for name in ("id", "key", "label")])
        for stream in connection["streams"]:
            if stream["name"] in own:
                parts.append(_of_stream(stream, own))
                parts += _of_records(plan, connection["id"], stream, own[stream["name"]])
    return frozenset(WORD.findall(orjson.dumps(parts).decode()))


def _of_stream(stream: Plan, own: dict[str, dict[str, Any]]) -> list[Any]:
    shown = own[stream["name"]]["fields"]
    properties = stream["schema"]["properties"]
    usable = [
        relation
        for relation in stream.get("relationships", ())
        if relation["foreign_key"] in own.get(relation["stream"], {}).get("fields", ())
    ]
    views = [
        (view["id"], view["label"])
        for view in stream.get("views", ())
        if {*view["fields"]} & {*shown}
    ]
    return [stream["name"], stream["label"], {n: properties[n] for n in shown}, usable, views]


def _of_records(
    plan: Plan, connection: str, stream: Plan, entry: dict[str, Any]
) -> Iterator[list[Any]]:
    history = {(c, row[0], row[1]): row[2] for c, row in _arrivals(plan) if not row[4]}
    for (owner, name, key), data in state_of(plan).items():
        last = history[owner, name, key]
        if (owner, name) != (connection, stream["name"]):
            continue
        if visible(entry, key, last, stream["cursor_field"]):
            yield [key, {n: (data or {}).get(n) for n in entry["fields"]}]


def _arrivals(plan: Plan) -> Iterator[tuple[str, list[Any]]]:
    yield from ((one["id"], row) for one in plan["connections"] for row in one["rows"])
    yield from ((name, row) for name, row in plan["later"])


def words_in(text: str) -> set[str]:
    """The canaries in a text, also inside two layers of percent-encoding and base64."""
    found = set(WORD.findall(text))
    for _ in range(2):
        opened = [unquote_plus(text)] if "%" in text else []
        opened += [_opened(found) for kind in BASE64 for found in set(kind.findall(text))]
        text = "\n".join(opened)
        found.update(WORD.findall(text))
    return found


def _opened(text: str) -> str:
    """The decoded forms of base64 text, for every position at which its first group may begin."""
    pieces = [text[start : start + (len(text) - start) // 4 * 4] for start in range(4)]
    return " ".join(base64.urlsafe_b64decode(piece).decode("latin-1") for piece in pieces)
