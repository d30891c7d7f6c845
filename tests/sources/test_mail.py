"""A mailbox of a real server: after each round, the store has what the server has."""

import re
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.cli.sources import WAITING
from service.syncing.kinds import imap
from tests.helpers.synced import Synced
from tests.helpers.waiting import WAIT_SECONDS
from tests.sources.daemon import PASSWORD
from tests.sources.dovecot import INBOX, Dovecot, dovecot
from tests.sources.relay import Wire, wire_to

MESSAGES = "messages"
#: The commands of a round, in this order.
COMMANDS = [b"LOGIN", b"LIST", b"STATUS", b"EXAMINE", b"SEARCH", b"RFC822.SIZE", b"BODY.PEEK"]
#: What an answer to a command says, and what comes instead.
LIES = {
    "no mails": (b"STATUS", rb"MESSAGES \d+", b"MESSAGES 0"),
    "another UIDVALIDITY": (b"EXAMINE", rb"UIDVALIDITY \d+", b"UIDVALIDITY 1"),
    "not all UIDs": (b"SEARCH", rb"SEARCH [\d ]+", b"SEARCH 1"),
    "further UIDs": (b"SEARCH", rb"SEARCH ", b"SEARCH 900 "),
    "no sizes": (b"RFC822.SIZE", rb"(?s)\A.*\r\n(?=\S+ OK)", b""),
    "no content": (b"BODY.PEEK", rb"(?s)\A.*\r\n(?=\S+ OK)", b""),
    "content of another mail": (b"BODY.PEEK", rb"UID \d+", b"UID 900"),
    "nonsense": (b"BODY.PEEK", rb"(?s)\A.*", b"\0\xff nonsense\r\n"),
    "content that ends too early": (b"BODY.PEEK", rb"BODY\[\] \{\d+\}", b"BODY[] {9}"),
}


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
def wire(server: Dovecot) -> Iterator[Wire]:
    with wire_to(server.port) as wire:
        yield wire


@pytest.fixture
def synced(tmp_path: Path, server: Dovecot, wire: Wire) -> Synced:
    """A mailbox whose password a command prints."""
    synced = Synced.make(tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    command = f"cat {tmp_path / 'password'}"
    words = ("source", "add", "mail", f"imap://ada@127.0.0.1:{wire.port}", "--kind", "imap")
    synced.ok(*words, "--password-command", command)
    return synced


def mail(number: int, subject: str = "Elm") -> bytes:
    head = f"Message-ID: <{number}@example.com>\r\nFrom: ada@example.com\r\nSubject: {subject}"
    return f"{head} {number}\r\nDate: Mon, 2 Mar 2026 08:00:00 +0000\r\n\r\nIn bloom.\r\n".encode()


def folders(synced: Synced) -> dict[int, list[str]]:
    """The folders of each mail in the store, by its number."""
    messages = synced.records("mail").get(MESSAGES, {})
    return {int(key.partition("@")[0]): data["labels"] for key, data in messages.items()}


def mails(synced: Synced) -> dict[str, tuple[str, list[str]]]:
    """The subject and the folders of each mail in the store, by its id."""
    messages = synced.records("mail").get(MESSAGES, {})
    return {key: (data["subject"], data["labels"]) for key, data in messages.items()}


@pytest.mark.slow
def test_a_thousand_mails_arrive_change_move_and_go(synced: Synced, server: Dovecot) -> None:
    read = ((f"cur/{n}.mail:2,{'FS' if n % 2 else ''}", mail(n)) for n in range(600))
    server.fill(INBOX, [*read, *((f"new/{n}.mail", mail(n)) for n in range(600, 800))])
    server.fill("Archive/2026", ((f"cur/{n}.mail:2,S", mail(n)) for n in range(750, 1_000)))
    before = server.state()
    assert "mail: 1000 new, 50 changed." in synced.ok("sync").stderr  # 50 are in two folders
    assert server.state() == before
    assert mails(synced) == server.mails()
    assert len(mails(synced)) == 1_000
    assert mails(synced)["760@example.com"] == ("Elm 760", [INBOX, "Archive/2026"])

    store = synced.content()
    with server.client() as client:
        client.select(INBOX)
        client.store("5:9", "+FLAGS", "\\Seen")
    assert "mail: nothing new." in synced.ok("sync").stderr
    assert synced.content() == store

    with server.client() as client:
        client.select(INBOX)
        client.copy("1:5", "Archive/2026")
        client.create("Drafts")
        client.copy("2:3", "Drafts")
        client.append("Drafts", "", "", mail(2_000, "Beech"))  # a draft that replaces another
        client.store("1:3,10:12", "+FLAGS", "\\Deleted")
        client.expunge()
        client.rename("Archive/2026", "Old")
    before = server.state()
    assert "mail: 1 new," in synced.ok("sync").stderr
    assert server.state() == before
    assert mails(synced) == server.mails()

    server.forget_uids()
    synced.ok("sync")
    assert mails(synced) == server.mails()


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
    server.forget_uids()
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
    assert "mail: " in looked and "whether IMAP is enabled" in looked
    assert secret not in result.output + listed + looked
    kept = [path for path in synced.folder.rglob("*") if path.is_file() and path.name != "password"]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    assert PASSWORD.encode() not in b"".join(path.read_bytes() for path in kept)


@pytest.mark.parametrize("says", [b"", b"* OK ready\r\n", b"\0\xff nonsense\r\n", b"* BYE\r\n"])
def test_a_server_that_is_none_changes_nothing(
    synced: Synced, server: Dovecot, wire: Wire, says: bytes
) -> None:
    server.add("INBOX", mail(1))
    synced.ok("sync")
    before = synced.content()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        wire.target = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            connection.sendall(says)
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        result = synced.run("sync")
        thread.join()
    assert result.exit_code == 1 and "127.0.0.1" in result.stderr
    assert synced.content() == before


def test_a_server_that_drops_the_connection_changes_nothing(
    synced: Synced, server: Dovecot, wire: Wire
) -> None:
    server.add(INBOX, mail(1))
    synced.ok("sync")
    server.add(INBOX, mail(2))
    before = synced.content()
    for command in COMMANDS:

        def drop(last: bytes, answer: bytes) -> bytes:
            if command in last:
                raise ConnectionAbortedError
            return answer

        wire.change = drop
        result = synced.run("sync")
        assert result.exit_code == 1 and "closed the connection" in result.stderr, command
        assert synced.content() == before
    wire.change = lambda last, answer: answer
    synced.ok("sync")
    assert mails(synced) == server.mails()


@pytest.mark.parametrize("command", [b"LOGIN", b"BODY.PEEK"])
def test_a_server_that_hangs_changes_nothing(
    synced: Synced, server: Dovecot, wire: Wire, monkeypatch: pytest.MonkeyPatch, command: bytes
) -> None:
    server.add(INBOX, mail(1))
    synced.ok("sync")
    server.add(INBOX, mail(2))
    before, end = synced.content(), threading.Event()

    def hang(last: bytes, answer: bytes) -> bytes:
        if command in last:
            end.wait()
        return answer

    wire.change = hang
    monkeypatch.setattr(imap, "ANSWER_SECONDS", 1)
    result = synced.run("sync")
    end.set()
    assert result.exit_code == 1 and "did not answer in time" in result.stderr
    assert synced.content() == before
    monkeypatch.undo()
    synced.ok("sync")
    assert mails(synced) == server.mails()


def test_a_server_that_lies_loses_nothing(synced: Synced, server: Dovecot, wire: Wire) -> None:
    """After each lie and one true round, the store has what the server has."""
    server.add(INBOX, mail(1), mail(2))
    server.add("Archive", mail(3))
    synced.ok("sync")
    for number, (name, (command, pattern, instead)) in enumerate(LIES.items(), start=4):
        server.add(INBOX, mail(number))

        lies = 0

        def lie(last: bytes, answer: bytes) -> bytes:
            nonlocal lies
            if command in last:
                answer, count = re.subn(pattern, instead, answer, count=1)
                lies += count
            return answer

        wire.change = lie
        assert synced.run("sync").exit_code in (0, 1) and lies, name
        wire.change = lambda last, answer: answer
        synced.ok("sync")
        assert mails(synced) == server.mails(), name


def test_labels_of_gmail_are_folders(synced: Synced, server: Dovecot, wire: Wire) -> None:
    """The server has flags in place of labels, whose names the relay changes."""
    server.add("Everything", *map(mail, range(4)))
    server.add(INBOX, mail(0))  # Gmail has a mail in all folders of its labels

    def change(command: bytes, answer: bytes) -> bytes:
        answer = re.sub(rb"(?<=CAPABILITY IMAP4rev1)", b" X-GM-EXT-1", answer)
        answer = re.sub(rb'(?=\) "/" "?Everything)', rb" \\All", answer)
        answer = answer.replace(b"FLAGS (", b"X-GM-LABELS (") if b"X-GM" in command else answer
        return (
            answer.replace(b"\\Flagged", b'"\\\\Inbox"')
            .replace(b"Reisen", b"&ANw-ber")
            .replace(b"\\Recent", b"")
        )

    wire.change = change
    wire.ask = lambda command: command.replace(b"X-GM-LABELS", b"FLAGS")
    with server.client() as client:
        client.select("Everything")
        client.store("1", "+FLAGS", "(Reisen \\Flagged)")
        client.store("2", "+FLAGS", "(Work)")
    assert "mail: 4 new." in synced.ok("sync").stderr
    labels = {0: [INBOX, "Über"], 1: ["Work"], 2: ["Everything"], 3: ["Everything"]}
    assert folders(synced) == labels
    with server.client() as client:
        client.select("Everything")
        client.store("2", "FLAGS", "(Later 2026)")
        client.store("3,4", "+FLAGS", "\\Deleted")
        client.uid("EXPUNGE", "4")
    server.add("Everything", mail(4))
    assert "mail: 1 new, 2 changed, 1 deleted." in synced.ok("sync").stderr
    assert folders(synced) == {
        **{0: labels[0], 1: ["2026", "Later"], 2: ["Deleted"]},
        4: ["Everything"],
    }
    assert "mail: nothing new." in synced.ok("sync").stderr


@pytest.mark.slow
def test_a_round_that_is_killed_is_completed_by_the_next(synced: Synced, server: Dovecot) -> None:
    """Each kill comes some commits later; in between, mail arrives, moves and goes."""
    server.add("Archive", mail(0))
    kills = 0
    for number, commits in enumerate((1, 2, 3, 5, 7, 9, 12, 15)):
        server.add(INBOX, *(mail(10 * number + n) for n in range(1, 5)))
        with server.client() as client:
            client.select(INBOX)
            client.copy("1:2", "Archive")
            client.store("2:3", "+FLAGS", "\\Deleted")
            client.expunge()
        kills += synced.killed(commits)
        synced.ok("sync")
        assert mails(synced) == server.mails(), commits
    assert kills > 4


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
