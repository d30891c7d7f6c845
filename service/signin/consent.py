"""The form that creates a grant: what can be shared, what a client requested and what is selected.

A client can request streams by `authorization_details` of PDPP. The form then shows only those
streams, and the owner can narrow them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

import orjson

from evidence.errors import InvalidRequest
from evidence.work import parse_json
from service.records.overview import StreamOverview
from evidence.times import microseconds, moment, to_the_second
from service.signin.clients import own_words

DETAILS_TYPE: Final = "https://pdpp.dev/data-access"
#: (days that a grant lasts, label); empty for a grant that does not expire.
LIFETIMES: Final = (("1", "1 day"), ("30", "30 days"), ("90", "90 days"), ("", "until I revoke it"))
DEFAULT_LIFETIME: Final = "30"
#: The statements of a client that the page quotes, with their labels.
_WORDS: Final = {
    "purpose_description": "Purpose",
    "purpose_code": "Purpose code",
    "retention": "Retention",
    "client_claims": "Claims",
}
_WORDS_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """One stream on the form. `fields` can be ticked; `ticked` are the ticked ones, none for all.

    `since`, `until` and `resources` are the limits that a client requested.
    """

    about: StreamOverview
    fields: tuple[str, ...]
    ticked: tuple[str, ...] = ()
    chosen: bool = False
    required: bool = False
    since: str | None = None
    until: str | None = None
    resources: tuple[str, ...] | None = None

    @property
    def value(self) -> str:
        """The value of its box on the form."""
        return self.field_value()

    def field_value(self, *field: str) -> str:
        """The value of the box of a field."""
        return orjson.dumps([self.about.connection_id, self.about.stream, *field]).decode()

    @property
    def shown(self) -> str:
        """The limits that a client requested, in words."""
        since = f"from {self.since}" if self.since else ""
        until = f"before {self.until}" if self.until else ""
        some = f"records: {len(self.resources)}" if self.resources is not None else ""
        return ", ".join(filter(None, (since, until, some)))


def everything(streams: Iterable[StreamOverview]) -> list[Choice]:
    """Returns every stream, none of them chosen."""
    return [Choice(stream, stream.fields) for stream in streams]


def parse_details(text: str) -> list[dict[str, Any]]:
    """Returns `authorization_details` as sent. Raises `InvalidRequest` for whatever is wrong in any
    store."""
    try:
        details = parse_json(text.encode())
    except ValueError:
        details = None
    if not isinstance(details, list) or not details:
        raise _fault("must be a JSON list")
    for detail in details:
        if not isinstance(detail, dict) or detail.get("type") != DETAILS_TYPE:
            raise _fault(f"must be of the type {DETAILS_TYPE}")
        entries = detail.get("streams")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise _fault("must list streams")
        for entry in entries:
            _check_entry(entry)
    return details


def _check_entry(entry: Mapping[str, Any]) -> None:
    lists = [entry.get(name) or [] for name in ("instance_ids", "fields", "resources")]
    times = entry.get("time_range") or {}
    if (
        not isinstance(times, dict)
        or not all(isinstance(values, list) for values in lists)
        or not all(isinstance(value, str | int) for value in chain.from_iterable(lists))
    ):
        raise _fault("has a value of the wrong type")
    for name in ("since", "until"):
        time_of(times.get(name))


def requested(
    details: Sequence[Mapping[str, Any]], streams: Sequence[StreamOverview]
) -> tuple[list[Choice], list[tuple[str, str]]]:
    """Returns (the streams in parsed `authorization_details`, none chosen; the client's statements
    with their labels).

    Raises `InvalidRequest` if the details cannot be granted.
    """
    choices: dict[tuple[str, str], Choice] = {}
    words: list[tuple[str, str]] = []
    for detail in details:
        for name, label in _WORDS.items():
            if said := own_words(detail.get(name) or "", _WORDS_CHARS):
                words.append((label, said))
        for choice in _of_detail(detail, streams):
            choices[choice.about.connection_id, choice.about.stream] = choice
    return list(choices.values()), words


def _of_detail(detail: Mapping[str, Any], streams: Sequence[StreamOverview]) -> list[Choice]:
    source = detail.get("source")
    id = str(source.get("id", "")) if isinstance(source, dict) else ""
    key = id.rstrip("/").rpartition("/")[2]
    ours = [
        stream
        for stream in streams
        if id in (stream.connection_id, "") or key == stream.connector_key
    ]
    choices = []
    for entry in detail["streams"]:
        ids, name = entry.get("instance_ids"), entry.get("name")
        matching = [
            stream
            for stream in ours
            if name in (stream.stream, "*") and (not ids or stream.connection_id in ids)
        ]
        if not matching:
            raise _fault(f"names the unknown stream {name!r}")
        choices += [_choice(stream, entry) for stream in matching]
    return choices


def _choice(stream: StreamOverview, entry: Mapping[str, Any]) -> Choice:
    requested = entry.get("fields")
    fields = tuple(name for name in stream.fields if requested is None or name in requested)
    if (
        entry.get("view")
        or (requested is not None and set(requested) - set(stream.fields))
        or not fields
    ):
        raise _fault(f"names fields that the stream {stream.stream!r} does not have")
    times = entry.get("time_range") or {}
    if times and not stream.timed:
        raise _fault(
            f"restricts the dates of the stream {stream.stream!r}, whose records have no dates"
        )
    resources = entry.get("resources")
    return Choice(
        stream,
        fields,
        required=entry.get("necessity") == "required",
        since=time_of(times.get("since")),
        until=time_of(times.get("until")),
        resources=None if resources is None else tuple(map(str, resources)),
    )


def filled(
    choices: Iterable[Choice], streams: Iterable[str], fields: Iterable[str]
) -> list[Choice]:
    """Returns the choices with only the boxes of these values ticked."""
    chosen, ticked = set(streams), set(fields)
    return [
        replace(
            choice,
            chosen=choice.value in chosen,
            ticked=tuple(name for name in choice.fields if choice.field_value(name) in ticked),
        )
        for choice in choices
    ]


def document(
    choices: Iterable[Choice], since: str | None, until: str | None, *, papers: bool
) -> dict[str, Any]:
    """Returns the grant document of a form. `since` and `until` limit every chosen stream.

    Raises `InvalidRequest` if nothing is chosen or a stream cannot be limited by time.
    """
    entries = []
    for choice in choices:
        about = choice.about
        if not choice.chosen:
            if choice.required:
                raise InvalidRequest(f"The client requires {about.label}. Select it, or refuse.")
            continue
        if (since or until) and not about.timed:
            raise InvalidRequest(
                f"The records of {about.label} have no dates. Deselect {about.label}, or clear the "
                "dates."
            )
        times = {
            "since": max(filter(None, (since, choice.since)), default=None),
            "until": min(filter(None, (until, choice.until)), default=None),
        }
        limits = {word: text for word, text in times.items() if text}
        entries.append(
            {
                "connection_id": about.connection_id,
                "stream": about.stream,
                "fields": list(choice.ticked or choice.fields),
                **({"time_constraint": limits} if limits else {}),
                **({} if choice.resources is None else {"resources": list(choice.resources)}),
            }
        )
    if not (entries or papers):
        raise InvalidRequest("Nothing is selected. Select what to share, or refuse.")
    return {"streams": entries, "papers": papers}


def time_of(text: Any) -> str | None:
    """Returns a date or time in a form that sorts as text; None if it is empty."""
    if not text:
        return None
    micros = microseconds(str(text))
    if micros is None:
        raise InvalidRequest(f"{str(text)[:40]!r} is not a date. Use the form YYYY-MM-DD.")
    return moment(micros)


def ends(lifetime: str, now: datetime) -> str | None:
    """Returns when a grant with one of `LIFETIMES` ends, from now; None if it never ends."""
    if lifetime not in dict(LIFETIMES):
        raise InvalidRequest("Choose how long access lasts.")
    if not lifetime:
        return None
    return to_the_second(now + timedelta(days=int(lifetime)))


def _fault(what: str) -> InvalidRequest:
    return InvalidRequest(f"authorization_details {what}.", code="invalid_authorization_details")
