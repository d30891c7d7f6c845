"""A real Radicale on loopback, with calendars and address books in a folder of its own."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.helpers.loopback import free_port
from tests.helpers.waiting import WAIT_SECONDS
from tests.sources.daemon import PASSWORD, USER, home, running

CONFIGURATION = """
[server]
hosts = 127.0.0.1:{port}
[auth]
type = htpasswd
htpasswd_filename = {folder}/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {folder}/storage
[logging]
level = critical
"""
CACHE = ".Radicale.cache"


@dataclass(frozen=True, slots=True)
class Radicale:
    """A running server."""

    folder: Path
    port: int

    @property
    def home(self) -> Path:
        return self.folder / "storage/collection-root" / USER

    def clear(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)

    def collection(self, name: str, title: str, tag: str) -> Path:
        """A new collection with a title; the tag is VCALENDAR or VADDRESSBOOK."""
        folder = self.home / name
        folder.mkdir(parents=True)
        properties = {"tag": tag, "D:displayname": title}
        (folder / ".Radicale.props").write_text(json.dumps(properties), encoding="utf-8")
        return folder

    def token(self, name: str) -> str:
        """The sync token of a collection now."""
        url = f"http://127.0.0.1:{self.port}/{USER}/{name}/"
        answer = requests.request(
            "PROPFIND", url, auth=(USER, PASSWORD), headers={"Depth": "0"}, timeout=WAIT_SECONDS
        )
        return re.findall("<sync-token>(.*?)</sync-token>", answer.text)[0]

    def read(self, name: str) -> list[str]:
        """The summaries or names of the objects of a collection, as another client reads them."""
        url = f"http://127.0.0.1:{self.port}/{USER}/{name}/"
        answer = requests.get(url, auth=(USER, PASSWORD), timeout=WAIT_SECONDS)
        assert answer.ok
        return re.findall(r"^(?:SUMMARY|FN):(.*?)\r?$", answer.text, re.MULTILINE)

    def forget_tokens(self) -> None:
        for folder in list(self.home.rglob("sync-token")):
            shutil.rmtree(folder)

    def state(self) -> dict[str, bytes]:
        """All files of the collections, without the caches of the server."""
        files = (path for path in sorted(self.home.rglob("*")) if path.is_file())
        return {str(path): path.read_bytes() for path in files if CACHE not in path.parts}


def event(folder: Path, number: int, summary: str = "Elm") -> Path:
    """Writes an event into a calendar."""
    path = folder / f"event {number}@x.ics"
    lines = [
        *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests", "BEGIN:VEVENT", f"UID:{number}@x"),
        *("DTSTAMP:20260302T080000Z", "DTSTART:20260302T080000Z", f"SUMMARY:{summary} {number}"),
        *("END:VEVENT", "END:VCALENDAR", ""),
    ]
    path.write_bytes("\r\n".join(lines).encode())
    return path


def card(folder: Path, number: int, name: str = "Ada") -> Path:
    """Writes a card into an address book."""
    path = folder / f"{number}.vcf"
    lines = [
        *("BEGIN:VCARD", "VERSION:3.0", f"UID:card-{number}", f"FN:{name} {number}"),
        *(f"N:{name};{number};;;", "END:VCARD", ""),
    ]
    path.write_bytes("\r\n".join(lines).encode())
    return path


@contextmanager
def radicale() -> Iterator[Radicale]:
    """Runs a server in a temporary folder."""
    with home("radicale") as folder:
        port = free_port()
        (folder / "users").write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
        configuration = folder / "configuration"
        configuration.write_text(CONFIGURATION.format(folder=folder, port=port), encoding="utf-8")
        with running([sys.executable, "-m", "radicale", "--config", str(configuration)], port):
            yield Radicale(folder, port)
