"""A store of records that need many calls to be read, and a walk that follows every call."""

import base64
from collections import deque
from typing import Any

import orjson

from tests.helpers.api import Api
from tests.helpers.caller import Answer, Caller
from tests.helpers.reading import Call, printed_calls, routes, structured_calls
from tests.helpers.stores import BODY, OBJECT, TEXT, TIME, TITLE, WORD, Connection, Stream

FIELDS = tuple(f"field_{number:03}" for number in range(300))
#: The 300 fields of a wide record: short ones, and some that need their own window.
WIDE = {
    name: f"value of {name} " + "pumpkin " * (9_000 if number % 75 == 7 else 25)
    for number, name in enumerate(FIELDS)
}
LONG_TITLE = "The title " + "goes on and on " * 40
GROUPS = 260
PICTURE = bytes(range(256)) * 5 + b"!"  # ends in padding
FILM = bytes(range(256)) * 500
BACK = ("previous", "end")
ODD_KEYS = ("party 🎉 note", "a=b", "<tag>", "it's", "`x`", "…", "日記/1", "e\u0301", "50%", "x~y")


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _wide() -> tuple[Stream, Stream]:
    plain = Stream("plain", {name: TEXT for name in FIELDS}, [{"id": "w", **WIDE}], FIELDS[:1])
    fields = {"title": TITLE, "body": BODY, **{name: TEXT for name in FIELDS}}
    record = {"id": "w", "title": LONG_TITLE, "body": "Body. " * 9_000, **WIDE}
    return plain, Stream("titled", fields, [record], ("title",))


def _groups() -> Stream:
    records = [
        {"id": f"g{n}", "kind": f"kind {n % GROUPS}", "at": f"{1700 + n % 265}-05-01T00:00:00Z"}
        for n in range(400)
    ]
    query = {
        "aggregations": {"group_by": ["kind"], "group_by_time": ["at"]},
        "range_filters": {"at": ["gte", "lt"]},
    }
    return Stream("visits", {"kind": WORD, "at": TIME}, records, (), "at", query)


def _binary() -> tuple[Stream, Stream]:
    def blob(name: str, content: bytes | None = None, **more: Any) -> dict[str, Any]:
        given = {} if content is None else {"data_base64": _encoded(content)}
        return {"blob_id": name, "mime_type": "image/png", **given, **more}

    properties = {
        "image": {**WORD, "contentEncoding": "base64", "contentMediaType": "image/png"},
        "film": {**WORD, "contentMediaType": "video/mp4"},
        "undeclared": WORD,
        "uri": WORD,
        "with, comma": WORD,
        "blob": OBJECT,
        "gone": OBJECT,
        "elsewhere": OBJECT,
        "files": {"type": "array"},
    }
    record = {
        "id": "b",
        "image": _encoded(PICTURE),
        "film": _encoded(FILM),
        "undeclared": _encoded(PICTURE),
        "uri": f"data:image/gif;base64,{_encoded(PICTURE)}",
        "with, comma": _encoded(PICTURE),
        "blob": blob("present", PICTURE, fetch_url="https://elsewhere.example/present"),
        "gone": blob("gone", size_bytes=77, fetch_url="https://elsewhere.example/gone"),
        "elsewhere": blob("elsewhere", size_bytes=1),
        "files": [blob("first", PICTURE), blob("gone", size_bytes=77)],
    }
    bytes_of = {"id": "l", "blob": blob("elsewhere", FILM)}
    return (
        Stream("binary", properties, [record]),
        Stream("uploads", {"blob": OBJECT}, [bytes_of]),
    )


def _odd() -> Stream:
    records = [{"id": key, "title": f"oddity {n}"} for n, key in enumerate(ODD_KEYS)]
    return Stream("odd", {"title": TITLE}, records, ("title",))


def connections() -> list[Connection]:
    """The connections of the store."""
    streams = (*_wide(), _groups(), *_binary(), _odd())
    return [Connection("c", streams, "kind", "Odd things")]


class Walk:
    """Follows every printed call, every call as data and every route to bytes, to the end."""

    def __init__(self, caller: Caller, api: Api) -> None:
        self.caller, self.api = caller, api
        self.answers: dict[bytes, tuple[Call, Answer]] = {}
        self.routes: dict[str, Any] = {}

    def follow(self, tool: str, *, most: int = 400, **args: Any) -> "Walk":
        """Fails if a call fails, a route does not exist, or the walk does not end."""
        waiting = deque([Call(tool, args)])
        while waiting:
            call = waiting.popleft()
            if call.key() in self.answers:
                continue
            assert len(self.answers) < most, "no end"
            answer = self.caller.ok(call.tool, **call.args)
            self.answers[call.key()] = call, answer
            printed, as_data = printed_calls(answer.text), structured_calls(answer.structured)
            assert {one.key() for one in printed} == {one.key() for one in as_data}, call
            if call.why in BACK:
                continue  # it works; what it leads to is also reached from the start
            waiting.extend(one for one in printed if one.tool != "schema")
            for route in routes(answer.text):
                if route not in self.routes:
                    found = self.api.get(route)
                    assert found.status == 200, (call, route, found)
                    self.routes[route] = found.body
        return self

    @property
    def fields(self) -> set[str]:
        """The fields whose whole value was shown, in a document or in windows."""
        whole: set[str] = set()
        windows: dict[str, set[int]] = {}
        for call, answer in self.answers.values():
            if call.tool == "fetch":
                document = answer.structured
                whole |= _shown(document)
                if name := document["metadata"].get("text_field"):
                    total = document["metadata"]["text_total_chars"]
                    windows.setdefault(name, set()).update({*range(len(document["text"])), -total})
            elif call.tool == "read_record_field" and "window" in answer.structured:
                window = answer.structured["window"]
                span = range(window["start_chars"], window["end_chars"])
                read = windows.setdefault(answer.structured["field"]["path"], set())
                read |= {*span, -window["total_chars"]}
        for path, read in windows.items():
            total = -min(read)
            if read >= set(range(total)):
                whole.add(path)
        return whole


def _shown(document: dict[str, Any]) -> set[str]:
    """The fields that a document shows whole."""
    metadata = document["metadata"]
    found = {name.removeprefix("data.") for name in metadata if name.startswith("data.")}
    if "text_field" in metadata:
        return found
    data = orjson.loads(document["text"])
    return found | {name for name, value in data.items() if not _is_preview(value)}


def _is_preview(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "field_preview"
