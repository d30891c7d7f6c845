"""A mailbox of a real server: after each round, the store has what the server has."""

import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.cli.sources import WAITING
from service.place import file_of
from tests.helpers.synced import Synced
from tests.helpers.waiting import WAIT_SECONDS
from tests.sources.daemon import PASSWORD
from tests.sources.dovecot import Dovecot, dovecot

MESSAGES = "messages"


@pytest.fixture(scope="module")
def running() -> Iterator[Dovecot]:
    with dovecot() as server:
        yield server


@pytest.fixture
def server(running: Dovecot) -> Dovecot:
    """The server without mail."""
    shutil.rmtree(running.folder / "mail/ada", ignore_errors=True)
    return running


@pytest.fixture
def synced(tmp_path: Path, server: Dovecot) -> Synced:
    """A mailbox whose password a command prints."""
    synced = Synced.make(tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    command = f"cat {tmp_path / 'password'}"
    words = ("source", "add", "mail", server.address, "--kind", "imap")
    synced.ok(*words, "--password-command", command)
    return synced


def mail(number: int, subject: str = "Elm") -> bytes:
    head = f"Message-ID: <{number}@example.com>\r\nFrom: ada@example.com\r\nSubject: {subject}"
    return f"{head} {number}\r\nDate: Mon, 2 Mar 2026 08:00:00 +0000\r\n\r\nIn bloom.\r\n".encode()


def folders(synced: Synced) -> dict[int, list[str]]:
    """The folders of each mail in the store, by its number."""
    messages = synced.records("mail").get(MESSAGES, {})
    return {int(key.partition("@")[0]): data["labels"] for key, data in messages.items()}


def test_mail_arrives_moves_and_goes(synced: Synced, server: Dovecot) -> None:
    server.add("INBOX", *map(mail, range(10)))
    server.add("Archive/2026", *map(mail, range(10, 12)))
    before = server.state()
    assert "mail: 12 new." in synced.ok("sync").stderr
    assert server.state() == before
    assert folders(synced) == {n: ["INBOX" if n < 10 else "Archive/2026"] for n in range(12)}
    with server.client() as client:
        client.select("INBOX")
        client.copy("1", "Archive/2026")
        client.copy("2", "Archive/2026")
        client.store("2,3", "+FLAGS", "\\Deleted")
        client.expunge()
    synced.ok("sync")
    expected = {n: ["INBOX" if n < 10 else "Archive/2026"] for n in range(12) if n != 2}
    expected |= {0: ["INBOX", "Archive/2026"], 1: ["Archive/2026"]}
    assert folders(synced) == expected
    assert "mail: nothing new." in synced.ok("sync").stderr


def test_a_mail_has_the_id_and_the_data_of_an_import(synced: Synced, server: Dovecot) -> None:
    folder = synced.folder / "INBOX/cur"
    folder.mkdir(parents=True)
    (synced.folder / "INBOX/new").mkdir()
    for number in range(3):
        (folder / f"{number}.eml").write_bytes(mail(number))
    synced.ok("import", str(synced.folder / "INBOX"), "--connection", "mail")
    imported = synced.records("mail")
    server.add("INBOX", *map(mail, range(3)))
    assert "3 changed" in synced.ok("sync").stderr
    messages = synced.records("mail")[MESSAGES]
    assert {key: {**data, "labels": []} for key, data in messages.items()} == imported[MESSAGES]


def test_a_new_uidvalidity_changes_no_record(synced: Synced, server: Dovecot) -> None:
    server.add("INBOX", *map(mail, range(60)))
    synced.ok("sync")
    before = synced.records("mail")
    (server.folder / "mail/ada/dovecot-uidlist").unlink()
    for path in (server.folder / "mail/ada").glob("dovecot*"):
        path.unlink()
    shown = synced.ok("sync").stderr
    assert "mail: nothing new." in shown
    assert synced.records("mail") == before


def test_an_emptied_mailbox_waits_for_the_owner(synced: Synced, server: Dovecot) -> None:
    server.add("INBOX", *map(mail, range(30)))
    synced.ok("sync")
    with server.client() as client:
        client.select("INBOX")
        client.store("1:25", "+FLAGS", "\\Deleted")
        client.expunge()
    assert synced.run("sync").exit_code == WAITING
    assert len(folders(synced)) == 30
    assert "25 deleted" in synced.ok("sync", "mail", "--accept-deletions").stderr
    assert sorted(folders(synced)) == [25, 26, 27, 28, 29]


def test_a_wrong_password_is_explained_and_shown_nowhere(synced: Synced, server: Dovecot) -> None:
    server.add("INBOX", mail(1))
    secret = "wrong-and-secret"
    (synced.folder / "password").write_text(secret, encoding="utf-8")
    result = synced.run("sync")
    assert result.exit_code == 1 and "refused the sign-in" in result.stderr
    listed = synced.ok("source", "list").stdout
    assert "failed" in listed and "app password" in listed
    looked = synced.run("doctor").output
    assert "mail: " in looked and "IMAP is switched on" in looked
    assert secret not in result.output + listed + looked
    kept = [path for path in synced.folder.rglob("*") if path.is_file() and path.name != "password"]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    assert PASSWORD.encode() not in b"".join(path.read_bytes() for path in kept)


@pytest.mark.parametrize("says", [b"", b"* OK ready\r\n", b"\0\xff nonsense\r\n", b"* BYE\r\n"])
def test_a_server_that_hangs_up_or_lies_changes_nothing(
    synced: Synced, server: Dovecot, says: bytes
) -> None:
    server.add("INBOX", mail(1))
    synced.ok("sync")
    before = (file_of(synced.store) or Path()).read_bytes()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = f"imap://ada@127.0.0.1:{listener.getsockname()[1]}"
        path = synced.folder / "sources.toml"
        path.write_text(path.read_text().replace(server.address, address), encoding="utf-8")

        def answer() -> None:
            connection, _ = listener.accept()
            connection.sendall(says)
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        result = synced.run("sync")
        thread.join()
    assert result.exit_code == 1 and "127.0.0.1" in result.stderr
    assert (file_of(synced.store) or Path()).read_bytes() == before


def test_new_mail_is_brought_at_once(synced: Synced, server: Dovecot) -> None:
    server.add("INBOX", mail(1))
    process = synced.start("sync", "--every")
    assert process.stderr is not None
    try:
        assert process.stderr.readline() == b"mail: 1 new.\n"
        server.add("INBOX", mail(2))
        assert any(line == b"mail: 1 new.\n" for line in iter(process.stderr.readline, b""))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_SECONDS)
