"""A real Dovecot on loopback, with mailboxes in a folder of its own."""

import imaplib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.loopback import free_port
from tests.helpers.waiting import WAIT_SECONDS
from tests.sources.daemon import PASSWORD, USER, home, running

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
    with home("dovecot") as folder:
        folder.chmod(0o755)
        (folder / "mail").mkdir()
        shutil.chown(folder / "mail", "nobody", "nogroup")
        port = free_port()
        text = CONFIGURATION.format(folder=folder, port=port, password=PASSWORD)
        (folder / "dovecot.conf").write_text(text, encoding="utf-8")
        with running(["dovecot", "-F", "-c", str(folder / "dovecot.conf")], port):
            yield Dovecot(folder, port)
