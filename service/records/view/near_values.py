"""Warns about exact filters that no granted record passes, and names similar granted values.

Nothing outside the grant's fields, times and records is read: a value that is not granted is
neither near nor a reason to leave the warning out.
"""

from difflib import SequenceMatcher
from typing import Any, Final

from evidence import pointer
from evidence.limits import BUDGETS
from evidence.text import clip
from service.ports import Filter
from service.records.engine import Order, Snapshot
from service.records.view.filters import tests_of
from service.records.view.streams import Streams

_NEWEST: Final = Order(by_cursor=False, descending=True)
_VALUE_CHARS: Final = 60
_LEAST_RATIO: Final = 0.5


def warnings(snapshot: Snapshot, streams: Streams, conditions: Filter) -> list[dict[str, Any]]:
    """A warning for each exact filter on text that no record of these streams passes alone."""
    reports = []
    for name, value in conditions.items():
        having = [stream for stream in streams if stream.shows(name)]
        if not isinstance(value, str) or not having:
            continue
        alone = [stream.selection(tests_of(stream, {name: value})) for stream in having]
        if snapshot.page(alone, _NEWEST, None, 1):
            continue
        message = f"No record has {name}={_short(value)}. Filter values must match exactly."
        if near := _near(_values(snapshot, having, name), value):
            message += f" Similar values: {', '.join(map(_short, near))}."
        reports.append(
            {"code": "filter_matches_nothing", "message": message, "param": "filter"}
            | ({"near_values": near} if near else {})
        )
    return reports


def _short(value: str) -> str:
    return repr(clip(value, _VALUE_CHARS))


def _values(snapshot: Snapshot, streams: Streams, name: str) -> set[str]:
    """The texts of a field in some granted records."""
    paths = {stream.id: stream.path(name) for stream in streams}
    if any(paths[stream.id] in stream.manifest.primary_key for stream in streams):
        return set()  # keys are looked up, not guessed
    most = BUDGETS.near_value_records
    rows = snapshot.page([stream.selection() for stream in streams], _NEWEST, None, most)
    records = snapshot.load([row.seq for row in rows]).get().values()
    values = (pointer.find(record.data, paths[record.stream]) for record in records)
    return {value for value in values if isinstance(value, str) and len(value) <= _VALUE_CHARS}


def _near(values: set[str], value: str) -> list[str]:
    """The nearest values, nearest first: by their letters, without regard to case and spaces."""
    text = value.strip().casefold()[:_VALUE_CHARS]
    ratios = dict[str, float]()
    for candidate in values:
        folded = candidate.casefold()
        is_inside = text != "" and text in folded
        ratios[candidate] = 1.0 if is_inside else SequenceMatcher(None, text, folded).ratio()
    near = [candidate for candidate in values if ratios[candidate] >= _LEAST_RATIO]
    return sorted(near, key=lambda word: (-ratios[word], len(word), word))[: BUDGETS.near_values]
