"""A real Dovecot on loopback, with mailboxes in a folder of its own."""

import imaplib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from tests.helpers.loopback import free_port
from tests.helpers.waiting import WAIT_SECONDS
from tests.sources.daemon import PASSWORD, USER, home, running

INBOX = "INBOX"
CONFIGURATION = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
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

    def fill(self, folder: str, mails: Iterable[tuple[str, bytes]]) -> None:
        """Puts mails into a folder, by the paths of their files in its Maildir."""
        inner = "" if folder == INBOX else f".{folder.replace('/', '.')}"
        maildir = self.folder / "mail" / USER / inner
        for part in ("cur", "new", "tmp"):
            (maildir / part).mkdir(parents=True, exist_ok=True)
        for name, mail in mails:
            (maildir / name).write_bytes(mail)
        for path in (self.folder / "mail" / USER, maildir, *maildir.rglob("*")):
            shutil.chown(path, "nobody", "nogroup")

    def forget_uids(self) -> None:
        """Gives all mails new UIDs, with another UIDVALIDITY."""
        for path in (self.folder / "mail" / USER).rglob("dovecot*"):
            path.unlink()

    def mails(self) -> dict[str, tuple[str, list[str]]]:
        """The subject and the folders of each mail by its id, as another client reads them."""
        mails = dict[str, tuple[str, list[str]]]()
        with self.client() as client:
            listed = [bytes(line).decode().rpartition(' "/" ')[2] for line in client.list()[1]]
            for folder in sorted(listed, key=lambda name: (name != INBOX, name)):
                answer, counts = client.select(folder, readonly=True)
                if answer != "OK" or counts == [b"0"]:
                    continue
                for part in client.fetch("1:*", "(BODY.PEEK[HEADER])")[1] or ():
                    if isinstance(part, tuple):
                        head = message_from_bytes(part[1])
                        id = str(head["Message-ID"]).strip("<>")
                        folders = mails.setdefault(id, (str(head["Subject"]), []))[1]
                        folders += [folder] if folder not in folders else []
        return mails

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
