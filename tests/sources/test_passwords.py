"""The passwords of sources are in no file but the owner's, whatever happens to a round."""

import tempfile
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import pytest

from tests.helpers.synced import Synced
from tests.sources.daemon import PASSWORD, USER
from tests.sources.dovecot import INBOX, dovecot
from tests.sources.radicale import card, event, radicale
from tests.sources.test_mail import mail

WRONG = "wrong-and-secret"
#: The passwords, and how they are sent.
SECRETS = [
    form
    for secret in (PASSWORD, WRONG)
    for form in (
        secret.encode(),
        b64encode(f"{USER}:{secret}".encode()),
        b64encode(f"\0{USER}\0{secret}".encode()),
    )
]


def files_with_secrets(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if any(secret in path.read_bytes() for secret in SECRETS)]


def command_lines() -> bytes:
    """The command lines of all processes."""
    lines = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            lines += path.read_bytes()
    return lines


@pytest.mark.slow
def test_passwords_are_in_no_file_but_that_of_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks into the store, the sidecar, logs, a backup, temporary files and command lines."""
    synced, temporary, logs = Synced.make(tmp_path), tmp_path / "temporary", list[str]()
    temporary.mkdir()

    def run(*words: str, typed: str | None = None) -> None:
        logs.append(synced.run(*words, typed=typed).output)

    with dovecot() as mails, radicale() as server:
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        monkeypatch.setenv("TMPDIR", str(temporary))
        mails.add(INBOX, *map(mail, range(3)))
        event(server.collection("office", "Work", "VCALENDAR"), 1)
        card(server.collection("friends", "Friends", "VADDRESSBOOK"), 1)
        for secret in (WRONG, PASSWORD):
            for kind, address in (
                ("imap", mails.address),
                ("caldav", f"http://{USER}@127.0.0.1:{server.port}/"),
                ("carddav", f"http://{USER}@127.0.0.1:{server.port}/"),
            ):
                run("source", "remove", kind)
                run("source", "add", kind, address, "--kind", kind, typed=f"{secret}\n")
            for words in (("sync",), ("source", "list", "--json"), ("doctor",)):
                run(*words)
        assert [len(synced.records(kind)) for kind in ("imap", "caldav", "carddav")] == [1, 1, 1]
        mails.add(INBOX, *map(mail, range(3, 9)))
        assert synced.killed(4)
        assert list(temporary.iterdir())  # a killed round leaves what it was reading
        process = synced.start("sync", "--every")
        assert process.stderr is not None
        logs.append(process.stderr.readline().decode())
        commands = command_lines()
        process.terminate()
        logs.append(process.communicate()[1].decode())
    run("backup", str(tmp_path / "backup.db"))
    run("stats")
    (tmp_path / "logs").write_text("\n".join(logs), encoding="utf-8")
    (tmp_path / "commands").write_bytes(commands)
    assert (tmp_path / "backup.db").exists() and "refused the sign-in" in "".join(logs)
    assert files_with_secrets(tmp_path) == ["sources.toml"]
    assert (tmp_path / "sources.toml").stat().st_mode & 0o777 == 0o600


def test_a_password_is_replaced_without_losing_the_source(tmp_path: Path) -> None:
    """What is deleted at the source is deleted in the store, as if nothing had happened."""
    synced = Synced.make(tmp_path)
    with radicale() as server:
        calendar = server.collection("office", "Work", "VCALENDAR")
        gone = [event(calendar, number) for number in range(3)][0]
        address = f"http://{USER}@127.0.0.1:{server.port}/"
        add = ("source", "add", "calendar", address, "--kind", "caldav")
        assert synced.run(*add, typed="\n").exit_code == 1  # the password is empty
        added = synced.run(*add, typed=f"{PASSWORD}\n")
        assert f"Its password is stored in {tmp_path / 'sources.toml'}." in added.stderr
        synced.ok("sync")
        synced.run("source", "password", "calendar", typed=f"{WRONG}\n")
        gone.unlink()
        refused = synced.run("sync").stderr
        assert "127.0.0.1 refused the sign-in" in refused
        again = refused.strip().rpartition(": ")[2]
        assert again == "rung source password calendar"
        assert again in synced.run(*add, typed=f"{PASSWORD}\n").stderr
        assert synced.run(*again.split()[1:], typed=f"{PASSWORD}\n").exit_code == 0
        assert "calendar: 1 deleted." in synced.ok("sync").stderr
    assert "127.0.0.1 does not answer: connection refused." in synced.run("sync").stderr


def test_a_stored_password_replaces_a_password_command(tmp_path: Path) -> None:
    synced = Synced.make(tmp_path)
    with radicale() as server:
        event(server.collection("office", "Work", "VCALENDAR"), 1)
        address = f"http://{USER}@127.0.0.1:{server.port}/"
        command = ("--password-command", f"echo {WRONG}")
        synced.ok("source", "add", "calendar", address, "--kind", "caldav", *command)
        assert synced.run("sync").exit_code == 1
        assert synced.run("source", "password", "calendar", typed=f"{PASSWORD}\n").exit_code == 0
        synced.ok("sync")
    synced.ok("source", "add", "rows", "task export", "--kind", "command")
    assert "needs no password" in synced.run("source", "password", "rows", typed="x\n").stderr


def test_a_server_that_requires_a_user_is_explained(tmp_path: Path) -> None:
    synced = Synced.make(tmp_path)
    with radicale() as server:
        server.collection("office", "Work", "VCALENDAR")
        address = f"http://127.0.0.1:{server.port}/"
        synced.ok("source", "add", "calendar", address, "--kind", "caldav")
        assert "If the server requires a user name" in synced.run("sync").stderr
