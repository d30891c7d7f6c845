"""A real Dovecot on loopback, with mailboxes in a folder of its own."""

import imaplib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from tests.helpers.waiting import WAIT_SECONDS

USER, PASSWORD = "ada", "correct-horse"
CONFIGURATION = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:{folder}/mail/%u
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Dovecot:
    """A running server."""

    folder: Path
    port: int

    @property
    def address(self) -> str:
        return f"imap://{USER}@127.0.0.1:{self.port}"

    @contextmanager
    def client(self) -> Iterator[imaplib.IMAP4]:
        """Another client of the mailbox, signed in."""
        with imaplib.IMAP4("127.0.0.1", self.port, WAIT_SECONDS) as client:
            client.login(USER, PASSWORD)
            yield client

    def add(self, folder: str, *mails: bytes) -> None:
        with self.client() as client:
            client.create(folder)
            for mail in mails:
                assert client.append(folder, "", "", mail)[0] == "OK"

    def state(self) -> dict[str, bytes]:
        """All files of the mailboxes, without the indexes and logs of the server."""
        files = (path for path in sorted(self.folder.joinpath("mail").rglob("*")) if path.is_file())
        return {str(path): path.read_bytes() for path in files if "dovecot" not in path.name}


@contextmanager
def dovecot() -> Iterator[Dovecot]:
    """Runs a server in a folder that its processes can reach."""
    folder = Path(tempfile.mkdtemp(prefix="rung-dovecot-"))
    folder.chmod(0o755)
    (folder / "mail").mkdir()
    shutil.chown(folder / "mail", "nobody", "nogroup")
    port = free_port()
    text = CONFIGURATION.format(folder=folder, port=port, password=PASSWORD)
    (folder / "dovecot.conf").write_text(text, encoding="utf-8")
    command = ["dovecot", "-F", "-c", str(folder / "dovecot.conf")]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        wait_for(port, process)
        yield Dovecot(folder, port)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(WAIT_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Waits until a server listens."""
    pause = Event()
    for _ in range(WAIT_SECONDS * 10):
        assert process.poll() is None, "The server ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            pause.wait(0.1)
    raise TimeoutError("The server does not answer.")
