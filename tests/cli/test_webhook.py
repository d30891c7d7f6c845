"""Events about changed streams: from the change log to a receiver on loopback."""

import base64
import hashlib
import hmac
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import orjson
import pytest
from click.testing import Result

from service.records.engine.change_log import commit_time
from service.records.intake import Row
from service.records.opening import open_reader, open_writer
from service.records.writing.streams import open_stream
from service.webhook import delivery as webhook
from service.webhook.delivery import Delivery, signing_keys
from tests.helpers.filling import put
from tests.helpers.loopback import Asked, Loopback, Reply, answering
from tests.helpers.server import ROOT, serving
from tests.helpers.shell import Shell
from tests.helpers.stdio import environment
from tests.helpers.synced import Synced
from tests.helpers.waiting import WAIT_SECONDS

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
#: Texts of records, which no event may contain.
PRIVATE = b"Heliotrope"


@dataclass
class Receiver:
    """A person with a store and a webhook, whose clock moves only when somebody waits."""

    synced: Synced
    server: Loopback
    now: float = 1_700_000_000.0
    times: list[float] = field(default_factory=list)
    status: int = 204

    @property
    def environ(self) -> dict[str, str]:
        url, file = f"{self.server.url}/in?token=hush", self.synced.folder / "secret"
        return {"RUNG_WEBHOOK_URL": url, "RUNG_WEBHOOK_SECRET_FILE": str(file)}

    def ok(self, *words: str) -> Result:
        """Runs a command that has the webhook in its environment."""
        return Shell({**self.synced.environ, **self.environ}, self.synced.folder).ok(*words)

    def answer(self, asked: Asked) -> Reply:
        self.times.append(self.now)
        return Reply(self.status)

    def delivery(self) -> Delivery:
        url, file = self.environ.values()
        return Delivery(self.synced.store, url, Path(file), lambda entries: self.now)

    def deliver(self, steps: int = 100) -> Delivery:
        """Steps of a new process, until nothing waits."""
        process = self.delivery()
        for _ in range(steps):
            if (pause := process.step()) is None:
                break
            self.now += pause
        return process

    def write(self, **streams: int) -> None:
        """Imports streams with a number of rows each."""
        for name, count in streams.items():
            path = self.synced.folder / f"{name}.csv"
            lines = "".join(f"{n},{PRIVATE.decode()} {n}\n" for n in range(count))
            path.write_text(f"id,title\n{lines}")
            self.synced.ok("import", str(path), "--connection", "c", "--stream", name)

    def change(self, *rows: Row) -> None:
        with open_writer(self.synced.store) as writer:
            put(writer, open_stream(writer, "c", "notes"), rows)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [orjson.loads(asked.body) for asked in self.server.asked]

    @property
    def ids(self) -> list[str]:
        return [asked.headers["webhook-id"] for asked in self.server.asked]

    @property
    def counts(self) -> list[tuple[str, int]]:
        return [(event["data"]["stream"], event["data"]["count"]) for event in self.events]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    (tmp_path / "secret").write_text(SECRET)
    with answering(lambda asked: Reply(204)) as server:
        made = Receiver(Synced.make(tmp_path), server)
        server.answer = made.answer
        yield made


def row(key: str, title: str) -> Row:
    return Row({"id": key, "title": title}, key)


def test_an_event_is_signed_and_has_no_text_of_a_record(receiver: Receiver) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    receiver.write(notes=3)
    receiver.deliver()
    (asked,) = receiver.server.asked
    names = ("webhook-id", "webhook-timestamp")
    signed = ".".join(asked.headers[name] for name in names).encode() + b"." + asked.body
    digest = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert asked.headers["webhook-signature"] == f"v1,{digest}"
    assert asked.headers["webhook-timestamp"] == str(int(receiver.times[0]))
    event = orjson.loads(asked.body)
    assert before <= datetime.fromisoformat(event.pop("timestamp")) <= datetime.now(UTC)
    data = {"connection_id": "c", "stream": "notes", "count": 3}
    assert event == {"type": "stream.changed", "data": data}
    assert PRIVATE not in asked.body and SECRET.encode() not in asked.body


def test_counts_are_of_records_that_changed_since_the_last_event(receiver: Receiver) -> None:
    receiver.write(notes=3, tasks=2)
    receiver.deliver()
    assert sorted(receiver.counts) == [("notes", 3), ("tasks", 2)]
    receiver.change(row("0", "New"), row("7", "New"), Row({}, key="1", deleted=True))
    receiver.change(row("0", "Newer"))
    receiver.deliver()
    assert receiver.counts[2:] == [("notes", 3)]
    receiver.deliver()
    assert len(receiver.events) == 3


def test_requests_are_at_least_a_second_apart(receiver: Receiver) -> None:
    receiver.write(a=1, b=1, d=1)
    receiver.deliver()
    first, second, third = receiver.times
    assert second - first >= 1 and third - second >= 1


def test_two_processes_send_each_event_once(receiver: Receiver) -> None:
    receiver.write(a=1, b=1, d=1)
    processes = [receiver.delivery() for _ in range(2)]
    while pauses := [pause for process in processes if (pause := process.step()) is not None]:
        receiver.now += min(pauses)
    assert len(receiver.ids) == len(set(receiver.ids)) == 3
    assert all(after - before >= 1 for before, after in zip(receiver.times, receiver.times[1:]))


def test_a_failure_is_repeated_later_with_the_same_id_and_body(receiver: Receiver) -> None:
    receiver.write(notes=1)
    receiver.status = 500
    process = receiver.deliver(3)
    assert process.failure == "The webhook answered with status 500."
    receiver.change(row("9", "New"))
    receiver.status = 200
    receiver.deliver()
    assert len(set(receiver.ids[:4])) == 1 and len({a.body for a in receiver.server.asked[:4]}) == 1
    first, second, third, _ = receiver.times[:4]
    assert second - first >= 2 and third - second >= 4
    assert receiver.counts[3:] == [("notes", 1), ("notes", 1)]
    assert receiver.ids[4] != receiver.ids[3]


def test_a_receiver_that_hangs_is_given_up(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.write(notes=1)
    hung = Event()

    def hang(asked: Asked) -> Reply:
        hung.wait(WAIT_SECONDS)
        return Reply(200)

    receiver.server.answer = hang
    monkeypatch.setattr(webhook, "REQUEST_SECONDS", 0.3)
    assert "timed out" in receiver.deliver(1).failure
    hung.set()
    receiver.server.answer = receiver.answer
    receiver.deliver()
    assert len(receiver.ids) == 2 and len(set(receiver.ids)) == 1


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.write(notes=1)
    with answering(lambda asked: Reply(200)) as other:
        receiver.server.answer = lambda asked: Reply(307, headers={"Location": other.url})
        assert "redirects" in receiver.deliver(1).failure
        assert other.asked == []


def test_an_endless_answer_is_not_read(receiver: Receiver) -> None:
    receiver.write(notes=1)
    receiver.server.answer = lambda asked: Reply(200, headers={"Content-Length": str(10**12)})
    assert receiver.deliver(1).failure == ""


def test_what_a_killed_process_has_not_sent_is_sent_by_the_next(receiver: Receiver) -> None:
    script = "import os, signal\nfrom service.cli import importing\n"
    script += "importing.send_waiting = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    path = receiver.synced.folder / "notes.csv"
    path.write_text("id,title\n1,One\n")
    process = receiver.synced.start("import", str(path), "--connection", "c", script=script)
    process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == -signal.SIGKILL and receiver.events == []
    receiver.deliver()
    assert receiver.counts == [("notes", 1)]


def test_an_event_keeps_its_id_if_its_process_is_killed_while_it_sends(receiver: Receiver) -> None:
    path = receiver.synced.folder / "notes.csv"
    path.write_text("id,title\n1,One\n")
    script, started = f"import os\nos.environ.update({receiver.environ!r})", Event()

    def kill(asked: Asked) -> Reply:
        assert started.wait(WAIT_SECONDS)
        process.kill()
        process.wait(WAIT_SECONDS)
        return Reply(204)

    receiver.server.answer = kill
    process = receiver.synced.start("import", str(path), "--connection", "c", script=script)
    started.set()
    process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == -signal.SIGKILL
    receiver.server.answer = receiver.answer
    receiver.now = datetime.now(UTC).timestamp()
    receiver.deliver(1)
    assert len(receiver.ids) == 1  # the killed process may still be sending
    receiver.now += webhook.LEASE_SECONDS
    receiver.deliver()
    assert receiver.counts == [("notes", 1), ("notes", 1)] and len(set(receiver.ids)) == 1


def test_an_older_store_that_is_restored_is_announced_as_a_whole(receiver: Receiver) -> None:
    receiver.write(notes=2)
    if not isinstance(receiver.synced.store, Path):
        pytest.skip("a database has backups of its own")
    backup = receiver.synced.folder / "backup.db"
    receiver.synced.ok("backup", str(backup))
    receiver.change(row("7", "New"))
    receiver.deliver()
    receiver.synced.ok("restore", str(backup), "--yes")
    receiver.deliver()
    assert receiver.counts == [("notes", 3), ("notes", 2)]


def test_commands_send_what_they_changed(receiver: Receiver) -> None:
    folder = receiver.synced.folder / "docs"
    folder.mkdir()
    (folder / "rows.csv").write_text("id,title\n1,One\n")
    receiver.ok("import", str(folder / "rows.csv"), "--connection", "c")
    assert receiver.counts == [("rows", 1)]
    receiver.ok("source", "add", "files", str(folder), "--kind", "folder")
    receiver.ok("sync")
    assert [event["data"]["connection_id"] for event in receiver.events] == ["c", "files"]
    receiver.ok("sync")
    assert len(receiver.events) == 2


def test_a_failure_is_reported_without_the_url(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "COMMAND_SECONDS", 0.0)
    receiver.status = 500
    path = receiver.synced.folder / "notes.csv"
    path.write_text("id,title\n1,One\n")
    shown = receiver.ok("import", str(path), "--connection", "c")
    assert "webhook: The webhook answered with status 500." in shown.stderr
    assert "hush" not in shown.stdout + shown.stderr
    explained = receiver.ok("config", "--explain")
    assert "RUNG_WEBHOOK_URL" in explained.stdout and "hush" not in explained.stdout


def test_a_signature_is_that_of_the_libraries_of_standard_webhooks() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert webhook.signature(key, signed) == expected


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_YWJj", "whsec_ä", "hello there"])
def test_a_secret_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text(text)
    with pytest.raises(
        webhook.InvalidRequest, match="RUNG_WEBHOOK_SECRET_FILE names contains no valid"
    ):
        signing_keys(tmp_path / "secret")


def test_a_server_sends_from_a_process_of_its_own(receiver: Receiver) -> None:
    receiver.write(notes=1)
    arrived = Event()

    def answer(asked: Asked) -> Reply:
        arrived.set()
        return Reply(204)

    receiver.server.answer = answer
    env = {**receiver.synced.environ, **receiver.environ}
    with serving("service.app:create_app()", env, config="python:service.serving", cwd=ROOT):
        assert arrived.wait(WAIT_SECONDS)
    assert receiver.counts == [("notes", 1)]


def senders(server: Loopback) -> list[int]:
    """The processes whose environment names this webhook."""
    named = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            url = f"RUNG_WEBHOOK_URL={server.url}/".encode()
            if b"service.webhook" in words and url in (process / "environ").read_bytes():
                named.append(int(process.name))
    return named


def test_the_process_that_sends_ends_with_a_server_that_is_killed(receiver: Receiver) -> None:
    receiver.write(notes=1)
    started = list[int]()
    env = {**receiver.synced.environ, **receiver.environ}
    app, config = "service.app:create_app()", "python:service.serving"
    with serving(app, env, config=config, cwd=ROOT, started=started):
        (sender,) = senders(receiver.server)
        with open(f"/proc/{sender}/cmdline", "rb") as words:
            assert b"hush" not in words.read()
        ended = os.pidfd_open(sender)
        os.kill(started[0], signal.SIGKILL)
        readable, _, _ = select.select([ended], [], [], WAIT_SECONDS)
        assert readable
        os.close(ended)


def test_a_worker_does_not_load_what_sends() -> None:
    code = "import sys, service.app; print([name for name in sys.modules if 'webhook' in name])"
    words = [sys.executable, "-c", code]
    shown = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert shown.stdout.strip() == b"[]"


def test_the_epoch_of_a_commit_has_its_time(receiver: Receiver) -> None:
    before = datetime.now(UTC)
    receiver.write(notes=1)
    with open_reader(receiver.synced.store).snapshot() as snapshot:
        at = commit_time(snapshot.epoch(1) or "")
    assert -0.02 < (at - before).total_seconds() < WAIT_SECONDS
    assert commit_time("0123456789ab") <= datetime.now(UTC)  # of an older version of Rung
