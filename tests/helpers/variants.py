"""A second world that differs from the first in everything a grant hides, and in nothing else.

    other = variants.vary(plan, entries, Random(seed))

What is hidden gets other names and other values, hidden records come and go, hidden fields of shown
records change once more, and a connection appears that repeats every granted word. What stays: the
shown records with their granted values, in their order, and the times they came in.
"""

from copy import deepcopy
from random import Random
from typing import Any

import orjson

from tests.helpers.canaries import (
    EMITTED_AT,
    FIELDS,
    LETTERS,
    WORD,
    Plan,
    permitted,
    state_of,
    visible,
    word,
)

Entry = dict[str, Any]
MOST_ADDED = 4
MOST_WORDS = 60


def vary(plan: Plan, entries: list[Entry], random: Random) -> Plan:
    """The other world. Its granted part is identical to the byte."""
    times = {fields["at"] for fields in FIELDS.values()}  # a grant's limits depend on them
    shown = permitted(plan, entries) | times
    found = _renamed(plan, shown, random)
    granted = {(one["connection_id"], one["stream"]): one for one in entries}
    for connection in found["connections"]:
        _change_rows(connection, granted, random)
    for row in found["later"]:
        _change_hidden(row[1], granted.get((row[0], row[1][0])), random)
    _add_hidden(found, granted, random)
    _add_connection(found, random)
    _add_changes(found, granted, random)
    return found


def _renamed(plan: Plan, shown: frozenset[str], random: Random) -> Plan:
    """Replaces every hidden canary with one of another length."""
    salt = random.random()

    def other(text: str) -> str:
        if text in shown:
            return text
        tail = "".join(Random(repr((text, salt))).choices(LETTERS, k=len(text) % 3 + int(salt * 9)))
        return word("another", text, salt) + tail

    text = orjson.dumps(plan).decode()
    found: Plan = orjson.loads(WORD.sub(lambda match: other(match.group()), text))
    return found


def _is_shown(entry: Entry | None, row: list[Any]) -> bool:
    at = FIELDS[row[0]]["at"] if entry else ""
    return entry is not None and (row[4] or visible(entry, row[1], row[2], at))


def _change_rows(connection: Plan, granted: dict[tuple[str, str], Entry], random: Random) -> None:
    """Changes hidden fields and removes some hidden records."""
    kept = []
    for row in connection["rows"]:
        entry = granted.get((connection["id"], row[0]))
        if not _is_shown(entry, row) and random.random() < 0.3:
            continue
        _change_hidden(row, entry, random)
        kept.append(row)
    connection["rows"] = kept


def _change_hidden(row: list[Any], entry: Entry | None, random: Random) -> None:
    """Changes the hidden fields of a row, except for times that limit a grant."""
    held = {FIELDS[row[0]]["at"]} if entry and "time_constraint" in entry else set()
    kept = {*entry["fields"], *held} if entry and _is_shown(entry, row) else held
    for name, value in list(row[2].items()):
        if name not in kept:
            row[2][name] = _other(value, random)
    if entry is None or "time_constraint" not in entry:
        for name in list(row[2]):
            if name not in kept and random.random() < 0.2:
                del row[2][name]


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, bool):
        return random.random() < 0.5
    if isinstance(value, int):
        return random.randrange(5_000)
    if isinstance(value, str) and value[:2] == "20" and value.endswith("Z"):
        return f"20{random.randrange(10, 40)}-0{random.randrange(1, 10)}-11T00:00:00Z"
    if isinstance(value, str):
        return value + " common filler bulk" * random.randrange(MOST_WORDS)
    return value


def _add_hidden(plan: Plan, granted: dict[tuple[str, str], Entry], random: Random) -> None:
    """Adds records that the grant's limits hide, with the same words as records it shows."""
    for connection in plan["connections"]:
        for (owner, stream), entry in granted.items():
            if owner != connection["id"]:
                continue
            rows = [row for row in connection["rows"] if row[0] == stream]
            for number in range(random.randrange(MOST_ADDED) if rows else 0):
                row = _hidden_copy(random.choice(rows), entry, (owner, stream, number))
                if not _is_shown(entry, row):
                    place = random.randrange(len(connection["rows"]) + 1)
                    connection["rows"].insert(place, row)


def _hidden_copy(row: list[Any], entry: Entry, place: tuple[Any, ...]) -> list[Any]:
    copied = deepcopy(row)
    if "resources" in entry:
        copied[1] = word("hidden", *place)
    elif "time_constraint" in entry:
        copied[1] = word("hidden", *place)
        since = "since" in entry["time_constraint"]
        copied[2][FIELDS[row[0]]["at"]] = f"20{10 if since else 40}-01-01T00:00:00Z"
    return copied


def _add_connection(plan: Plan, random: Random) -> None:
    """Adds a connection with the streams, the record ids and the words of another one."""
    source = deepcopy(random.choice(plan["connections"]))
    name = random.choice("az") + word("added connection", random.random())
    place = random.randrange(len(plan["connections"]) + 1)
    plan["connections"].insert(place, {**source, "id": name, "label": word("added label")})


def _add_changes(plan: Plan, granted: dict[tuple[str, str], Entry], random: Random) -> None:
    """Adds changes to hidden fields only, between the changes that are shown."""
    state = state_of(plan)
    for (owner, stream, key), data in list(state.items()):
        entry = granted.get((owner, stream))
        if data is None or random.random() < 0.5 or (owner, stream, key) in _changed(plan):
            continue
        row = [stream, key, deepcopy(data), EMITTED_AT, False]
        _change_hidden(row, entry, random)
        plan["later"].insert(random.randrange(len(plan["later"]) + 1), [owner, row])


def _changed(plan: Plan) -> set[tuple[str, str, str]]:
    return {(owner, row[0], row[1]) for owner, row in plan["later"]}
