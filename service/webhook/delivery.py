"""Sends events about changed streams to a webhook, as the Standard Webhooks specification requires.

Commits write nothing for this. What is newer in the change log than the position of the webhook is
what it must get. The position and the events that wait are in the sidecar. An event gets its id
before it is sent and has it until the webhook accepts it, so that the webhook can drop repeats.
Several processes may deliver: the time before which none of them sends is in the sidecar too.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from threading import Event, Thread
from typing import Any, Final

import orjson

from evidence.errors import EvidenceError, InvalidRequest
from evidence.model import members
from evidence.times import to_the_second
from evidence.work import Deadline
from service.access.entries import FOREVER, Entries, Entry, Kept
from service.networks import is_loopback
from service.place import Place
from service.records.opening import open_reader
from service.records.sidecar import open_sidecar
from service.records.stream_changes import ChangedStream, LogPosition, changes_after
from service.settings import Settings, SettingsError, load
from service.sources.remote import outbound

_KIND: Final = "webhook"
EVENT_TYPE: Final = "stream.changed"
SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = range(24, 65)
#: Seconds between two requests, of one request, and until another process may take over.
RATE_SECONDS, REQUEST_SECONDS, LEASE_SECONDS = 1.0, 10.0, 20.0
#: Each failure doubles the wait, up to so many times.
DOUBLED_MOST: Final = 12
LONGEST_SECONDS: Final = RATE_SECONDS * 2.0**DOUBLED_MOST
#: Seconds between two looks for changes, and after an error.
IDLE_SECONDS, ERROR_SECONDS = 2.0, 15.0
#: A command sends events for at most so many seconds, and leaves the others to the next one.
COMMAND_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class State:
    """The position of a webhook: a version of the store with the epoch of its commit.

    `events` wait, the next one first. Nobody sends before `due`, in seconds since 1970.
    """

    version: int = 0
    epoch: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    failures: int = 0
    due: float = 0.0


def sidecar_time(entries: Kept) -> float:
    """The time of the sidecar, which all processes share."""
    return entries.time.timestamp()


class Delivery:
    """Delivers the events of a store. `failure` is why the last request failed, without the URL."""

    def __init__(
        self,
        store: Place,
        url: str,
        secret_file: Path,
        clock: Callable[[Kept], float] = sidecar_time,
    ) -> None:
        self._store, self._url, self._secret_file, self._clock = store, url, secret_file, clock
        self._entries, self._reader = Entries(open_sidecar(store)), open_reader(store)
        self.failure = ""

    def step(self) -> float | None:
        """Sends the next event if it is due.

        Returns the seconds to wait before the next call, or None if no event waits. Raises
        `EvidenceError`s if the store, the sidecar or the secret cannot be read.
        """
        if not self._store.exists():
            return None
        with self._entries.reading() as entries:
            before = _state(entries.get(_KIND, self._url))
        waiting = before if before.events else self._collect(before)
        if not waiting.events:
            return None
        keys = signing_keys(self._secret_file)
        with self._entries.changing() as entries:
            now = self._clock(entries)
            if self._lock(entries) != before:  # another process was first
                return RATE_SECONDS
            if 0 < (wait := before.due - now) <= LONGEST_SECONDS:
                return wait
            claimed = self._save(entries, replace(waiting, due=now + LEASE_SECONDS))
        self.failure = self._send(claimed.events[0], int(now), keys)
        failures = claimed.failures + 1 if self.failure else 0
        pause = RATE_SECONDS * 2.0 ** min(failures, DOUBLED_MOST)
        with self._entries.changing() as entries:
            if self._lock(entries) == claimed:
                left = claimed.events if self.failure else claimed.events[1:]
                due = self._clock(entries) + pause
                self._save(entries, replace(claimed, events=left, failures=failures, due=due))
        return pause

    def close(self) -> None:
        """Closes the store."""
        self._reader.close()

    def _lock(self, entries: Kept) -> State:
        """The state, which no other process changes before the end of the transaction."""
        return _state(entries.use(_KIND, self._url))

    def _save(self, entries: Kept, state: State) -> State:
        entries.put(_KIND, self._url, asdict(state), seconds=FOREVER)
        return state

    def _collect(self, state: State) -> State:
        """The state with events about what changed after it."""
        changes, end = changes_after(self._reader, LogPosition(state.version, state.epoch))
        events = [_event(change) for change in changes]
        return replace(state, version=end.version, epoch=end.epoch, events=events)

    def _send(self, event: dict[str, Any], seconds: int, keys: list[bytes]) -> str:
        """Sends an event; returns why that failed, or an empty text."""
        body = orjson.dumps(event["body"])
        signed = f"{event['id']}.{seconds}.".encode() + body
        headers = {
            "webhook-id": event["id"],
            "webhook-timestamp": str(seconds),
            "webhook-signature": " ".join(signature(key, signed) for key in keys),
            "Content-Type": "application/json",
            "Connection": "close",  # a reused connection that is closed would be tried twice
        }
        deadline = Deadline.after(REQUEST_SECONDS)
        accepts = is_loopback if self._url.startswith("http:") else None
        try:
            with outbound.opened(
                "POST", self._url, deadline=deadline, headers=headers, data=body, accepts=accepts
            ) as answer:
                is_accepted = 200 <= answer.status < 300
                return "" if is_accepted else f"The webhook answered with status {answer.status}."
        except EvidenceError as error:
            return f"The webhook failed. {error.message}"


def _state(entry: Entry | None) -> State:
    return State(**entry.body) if entry else State()


def _event(change: ChangedStream) -> dict[str, Any]:
    """An event with a new id."""
    data = {**members(change, "connection_id", "stream"), "count": change.records}
    body = {"type": EVENT_TYPE, "timestamp": to_the_second(change.at), "data": data}
    return {"id": f"msg_{token_hex(16)}", "body": body}


def signature(key: bytes, signed: bytes) -> str:
    """The signature of an id, a time and a body, joined by periods."""
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def signing_keys(path: Path) -> list[bytes]:
    """The keys in the file of secrets, one a line; raises `InvalidRequest`, without a secret."""
    try:
        lines = path.read_text(encoding="ascii").split()
        keys = [base64.b64decode(line.removeprefix(SECRET_PREFIX), validate=True) for line in lines]
    except (OSError, ValueError):
        keys = []
    if not keys or any(len(key) not in SECRET_BYTES for key in keys):
        raise InvalidRequest(
            "The file that RUNG_WEBHOOK_SECRET_FILE names contains no valid secret. Create one: "
            f'echo "{SECRET_PREFIX}$(openssl rand -base64 32)" > FILE'
        )
    return keys


def open_delivery(settings: Settings, store: Place) -> Delivery | None:
    """Delivers the events of a store to the webhook of the settings, if there is one."""
    url, file = settings.webhook_url, settings.webhook_secret_file
    return Delivery(store, url, file) if url and file else None


def start_sending(
    settings: Settings, store: Place, stop: Event, report: Callable[[str], None]
) -> bool:
    """Sends events in a thread until `stop`; False if there is no webhook."""
    if (delivery := open_delivery(settings, store)) is None:
        return False
    Thread(target=_send, args=(delivery, stop, report), daemon=True).start()
    return True


def send_waiting(store: Place, report: Callable[[str], None]) -> None:
    """Sends what waits, within `COMMAND_SECONDS`, if there is a webhook. What fails waits on."""
    try:
        delivery = open_delivery(load(), store)
    except (EvidenceError, SettingsError) as error:
        report(f"webhook: {error}")
    else:
        if delivery is not None:
            with closing(delivery):
                _send(delivery, Event(), report, Deadline.after(COMMAND_SECONDS))


def _send(
    delivery: Delivery, stop: Event, report: Callable[[str], None], until: Deadline | None = None
) -> None:
    """Sends events about all changes until `stop`, or those that wait, `until` a deadline.

    A failure that repeats is reported once.
    """
    reported = ""
    while not stop.is_set():
        try:
            pause, failure = delivery.step(), delivery.failure
        except EvidenceError as error:
            pause, failure = ERROR_SECONDS, error.message
        if failure and failure != reported:
            report(f"webhook: {failure}")
        reported = failure
        if until and (pause is None or pause >= until.left()):
            break
        stop.wait(IDLE_SECONDS if pause is None else pause)
