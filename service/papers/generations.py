"""The current snapshot: it can be replaced while requests keep the one they began with."""

import logging
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.errors import Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.papers.disk import Stamp, look
from service.papers.snapshot import Snapshot, SnapshotRefused, open_snapshot

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Refusal:
    """A refused file, and until when it is not checked again unless it changes."""

    stamp: Stamp | None
    reason: str
    until: Deadline


@dataclass(slots=True)
class _Generations:
    """The state of one process. A forked process starts over: connections must not cross a fork."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshot: Snapshot | None = None
    refusal: _Refusal | None = None
    loading: threading.Event | None = None


class Snapshots:
    """The generations of the file at `path`. Safe to share between threads and to fork."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_process: dict[int, _Generations] = {}

    def current(self, wanted: str | None = None) -> Snapshot:
        """The snapshot for one request; a newer file is opened in the background.

        `wanted` is the tag a cursor names: if it is not the current one, it may name
        a newer file, which is waited for briefly. Raises `Unavailable` (`snapshot_unavailable`)
        with the reason if there is nothing to answer from.
        """
        state = self._state()
        loading = self._check(state)
        snapshot = _usable(state)
        if loading is not None:
            if snapshot is None:
                loading.wait(BUDGETS.upstream_seconds)
            elif wanted is not None and wanted != snapshot.tag:
                loading.wait(BUDGETS.snapshot_wait_seconds)
            snapshot = _usable(state)
        if snapshot is None:
            raise _unavailable(state.refusal)
        return snapshot

    def status(self) -> dict[str, Any]:
        """{status, snapshot, papers}; `refused` gives the reason if the file is not served."""
        try:
            snapshot = self.current()
        except Unavailable as error:
            return {"status": "unavailable", "refused": error.details["reason"]}
        status = {"status": "ready", "snapshot": snapshot.build_id, "papers": snapshot.papers}
        refusal = self._state().refusal
        return {**status, "refused": refusal.reason} if refusal else status

    def _state(self) -> _Generations:
        process = os.getpid()
        known = self._of_process.get(process)
        return known or self._of_process.setdefault(process, _Generations())

    def _check(self, state: _Generations) -> threading.Event | None:
        """Starts to open the file if it has changed; returns the pending load, if any."""
        try:
            stamp = look(self._path)
        except SnapshotRefused as error:
            with state.lock:
                if state.loading is None:
                    state.refusal = _refuse(None, str(error))
                return state.loading
        with state.lock:
            if state.snapshot is not None and state.snapshot.stamp == stamp:
                state.refusal = None
            elif state.loading is None and not _known_bad(state.refusal, stamp):
                done = threading.Event()
                arguments = (state, stamp, done)
                threading.Thread(target=self._load, args=arguments, daemon=True).start()
                state.loading = done
            return state.loading

    def _load(self, state: _Generations, stamp: Stamp, done: threading.Event) -> None:
        opened, reason = None, "it could not be opened; see the log"
        try:
            opened = self._newest()
        except SnapshotRefused as error:
            reason = str(error)
            logger.warning("snapshot refused: %s", reason)
        finally:
            with state.lock:
                if opened is not None:
                    state.snapshot = opened
                state.refusal = None if opened is not None else _refuse(stamp, reason)
                state.loading = None
            done.set()

    def _newest(self) -> Snapshot:
        """Opens the file, and again if it was replaced meanwhile."""
        deadline = Deadline.after(BUDGETS.upstream_seconds)
        while True:
            before = look(self._path)
            try:
                return open_snapshot(self._path)
            except SnapshotRefused:
                if look(self._path) == before or deadline.expired():
                    raise


def _known_bad(refusal: _Refusal | None, stamp: Stamp) -> bool:
    return refusal is not None and refusal.stamp == stamp and not refusal.until.expired()


def _refuse(stamp: Stamp | None, reason: str) -> _Refusal:
    return _Refusal(stamp, reason, Deadline.after(BUDGETS.snapshot_retry_seconds))


def _usable(state: _Generations) -> Snapshot | None:
    """The newest valid snapshot, unless its file was modified."""
    snapshot = state.snapshot
    return snapshot if snapshot is not None and snapshot.intact() else None


def _unavailable(refusal: _Refusal | None) -> Unavailable:
    if refusal is None:
        reason, advice = "it is still being opened", "Retry in a few seconds."
    else:
        reason, advice = refusal.reason, "The operator has to replace it with a valid one."
    return Unavailable(
        f"The snapshot cannot be served: {reason}. {advice}",
        code="snapshot_unavailable",
        reason=reason,
    )
