"""Mailboxes over IMAP: each message in a folder is a part. Read-only: changes no flags.

A mail that is in several folders is one record, which lists them in `labels`. A folder is listed
again only if its UIDVALIDITY, its next UID or its number of mails has changed. At Gmail, the folder
of all mails is read alone, and the labels of a mail are its folders; they are its version.
"""

import imaplib
import json
import ssl
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from itertools import accumulate, groupby
from pathlib import Path
from threading import Event
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from evidence.errors import InvalidRequest, Unauthenticated, Unavailable
from evidence.work import Deadline, portions
from service.extras import install_command
from service.records.intake import Row
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings, Stored
from service.syncing.kinds.web import split

CONNECT_SECONDS, ANSWER_SECONDS = 30, 120
#: The mails that are fetched and imported together.
MAILS_TOGETHER, BYTES_TOGETHER = 200, 32 << 20
#: The mails whose labels are fetched together; a command must not be too long.
LABELS_TOGETHER: Final = 1_000
#: IDLE is renewed after so many seconds; servers may end it after 29 minutes.
IDLE_SECONDS, LOOK_SECONDS = 1_500, 5
INBOX: Final = "INBOX"
#: The stream of mails.
MESSAGES: Final = "messages"
#: Folders that are left out unless they are named.
_LEFT_OUT: Final = frozenset({b"\\noselect", b"\\nonexistent", b"\\trash", b"\\junk"})
_STATUS: Final = ("UIDVALIDITY", "UIDNEXT", "MESSAGES")
_GMAIL, _ALL, _MODIFIED, _LABELS = "X-GM-EXT-1", b"\\all", "HIGHESTMODSEQ", "X-GM-LABELS"
_SYSTEM: Final = {"\\Inbox": INBOX}
#: The version of a mail without labels of Gmail.
_PLAIN: Final = "1"
_OAUTH: Final = ";auth=xoauth2"
#: What large providers require, by the end of their host.
_ADVICE: Final = tomllib.loads(Path(__file__).with_name("providers.toml").read_text("utf-8"))


class Mailbox(Connector):
    """A mailbox that is open for reading."""

    strict = False
    joins = True
    format = "eml"

    def __init__(self, source: SourceSettings) -> None:
        if find_spec("imapclient") is None:
            raise InvalidRequest(f"To read mail over IMAP: {install_command('sync')}")
        from imapclient import IMAPClient, SocketTimeout

        address = urlsplit(source.address)
        self._source, self._host = source, str(address.hostname)
        #: UIDVALIDITY, next UID and number of mails by folder.
        self._statuses = dict[str, list[int]]()
        self._versions, self._is_gmail = dict[str, str](), False
        timeout = SocketTimeout(CONNECT_SECONDS, ANSWER_SECONDS)
        secure = address.scheme == "imaps"  # and the certificate is verified
        with explained(self._host), ExitStack() as failing:
            self._client: Any = IMAPClient(self._host, address.port, ssl=secure, timeout=timeout)
            failing.callback(self.close)
            self._sign_in(unquote(address.username or ""), source.secret() or "")
            failing.pop_all()

    def _sign_in(self, user: str, secret: str) -> None:
        from imapclient.exceptions import LoginError

        try:
            if user.lower().endswith(_OAUTH):
                self._client.oauth2_login(user[: -len(_OAUTH)], secret)
            else:
                self._client.login(user, secret)
        except LoginError as error:
            if isinstance(cause := error.__context__, imaplib.IMAP4.abort):
                raise cause from None  # the connection ended, which says nothing of the user
            ends = (text for host, text in _ADVICE.items() if self._host.endswith(host))
            advice = next(ends, "Many providers require an app password.")
            raise Unauthenticated(
                f"{self._host} refused the sign-in. Check the user name, the password and whether "
                f"IMAP is enabled. {advice} To replace the password: rung source password "
                f"{self._source.name}"
            ) from None

    def list_parts(self, stored: Stored) -> Listing | None:
        with explained(self._host):
            self._statuses = {name: self._status(name) for name in self._folders()}
            if self._statuses == stored.position:
                return None
            parts = stored.versions()
            for name, status in self._statuses.items():
                earlier = stored.position.get(name, [])
                if earlier == status:
                    unread = {part: text or _PLAIN for part, text in parts.items()}
                    self._versions |= {p: v for p, v in unread.items() if _split(p)[0] == name}
                    continue
                uids = self._uids(name)
                versions = {_part(name, status[0], uid): _PLAIN for uid in uids}
                if self._is_gmail:
                    since = earlier[-1] if earlier[:1] == status[:1] else 0
                    labels = parts | self._labels(name, status[0], uids, since)
                    versions |= {p: text for p, text in labels.items() if p in versions and text}
                self._versions |= versions
        return Listing(self._versions, self._statuses)

    def _labels(
        self, folder: str, validity: int, uids: Sequence[int], since: int
    ) -> dict[str, str]:
        """The versions of those mails of the selected folder whose labels may have changed."""
        from imapclient.imap_utf7 import decode

        modifiers = [f"CHANGEDSINCE {since}"] if since else None
        versions = dict[str, str]()
        for some in portions(uids, LABELS_TOGETHER):
            for uid, answer in self._client.fetch(some, [_LABELS], modifiers).items():
                names = [str(decode(label)) for label in answer.get(_LABELS.encode(), ())]
                labels = {_SYSTEM.get(name, name.removeprefix("\\")) for name in names}
                versions[_part(folder, validity, uid)] = json.dumps(_ordered(labels or {folder}))
        return versions

    def _folders(self) -> list[str]:
        listed = self._client.list_folders()
        flags_of = {name: {flag.lower() for flag in flags} for flags, _, name in listed}
        if self._source.folders:
            self._source.check_folders("folder", flags_of)
            return list(self._source.folders)
        every = [name for name, flags in flags_of.items() if _ALL in flags]
        self._is_gmail = bool(every and self._client.has_capability(_GMAIL))
        plain = sorted(name for name, flags in flags_of.items() if _LEFT_OUT.isdisjoint(flags))
        return every if self._is_gmail else plain

    def _status(self, folder: str) -> list[int]:
        names = (*_STATUS, _MODIFIED) if self._is_gmail else _STATUS
        status = self._client.folder_status(folder, names)
        return [int(status[name.encode()]) for name in names]

    def _uids(self, folder: str) -> list[int]:
        """The UIDs of the mails of a folder."""
        count = int(self._client.select_folder(folder, readonly=True)[b"EXISTS"])
        uids = sorted(set(map(int, self._client.search("ALL"))))
        if len(uids) < count:
            raise Unavailable(
                f"{self._host} listed only {len(uids)} of {count} messages. Try again."
            )
        return uids

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        places = sorted(_split(part) for part in parts)
        for (folder, validity), group in groupby(places, key=lambda entry: entry[:2]):
            uids = [uid for _, _, uid in group]
            with explained(self._host):
                selected = self._client.select_folder(folder, readonly=True)
            if int(selected[b"UIDVALIDITY"]) != validity:
                raise Unavailable(
                    f"The folder {folder!r} at {self._host} was replaced during the sync. "
                    "Try again."
                )
            for some in self._portions(uids):
                with explained(self._host):
                    answers = self._client.fetch(some, ["BODY.PEEK[]"])
                found = {uid: answer.get(b"BODY[]") for uid, answer in answers.items()}
                mails = {uid: mail for uid, mail in found.items() if mail is not None}
                if len(mails) < len(some):  # gone, or left out: the next round lists again
                    self._statuses.pop(folder, None)
                names = {uid: _part(folder, validity, uid) for uid in mails}
                yield from Fetched.written((names[uid], f"{uid}.eml", mails[uid]) for uid in mails)

    def _portions(self, uids: Sequence[int]) -> Iterator[list[int]]:
        """The UIDs in portions that are fetched together: of about `BYTES_TOGETHER`, or one."""
        for some in portions(uids, MAILS_TOGETHER):
            with explained(self._host):
                sizes = self._client.fetch(some, ["RFC822.SIZE"])
            ends = accumulate(int(sizes.get(uid, {}).get(b"RFC822.SIZE", 0)) for uid in some)
            portion_of = {uid: end // BYTES_TOGETHER for uid, end in zip(some, ends)}
            yield from (list(group) for _, group in groupby(some, key=portion_of.__getitem__))

    def adapt(self, part: str, row: Row) -> Row:
        if row.stream != MESSAGES:
            return row
        return row._replace(data={**row.data, **self._folders_of([part])}, digest=None)

    def members(self, parts: Collection[str]) -> dict[str, dict[str, Any]]:
        return {MESSAGES: self._folders_of(parts)} if parts else {}

    def _folders_of(self, parts: Collection[str]) -> dict[str, Any]:
        """The fields that list a message's folders, from the parts that contain the message."""
        labels = set[str]()
        for part in parts:
            text = self._versions.get(part, _PLAIN)
            labels |= {_split(part)[0]} if text == _PLAIN else set(json.loads(text))
        ordered = _ordered(labels)
        return {"folder": ordered[0], "labels": ordered}

    def watch(self, stop: Event, changed: Callable[[], None]) -> None:
        if not self._client.has_capability("IDLE"):
            return
        self._client.select_folder((*self._source.folders, INBOX)[0], readonly=True)
        while not stop.is_set():
            self._client.idle()
            changed()
            renewed = Deadline.after(IDLE_SECONDS)
            while not (stop.is_set() or renewed.expired()):
                if self._client.idle_check(timeout=LOOK_SECONDS):
                    changed()
            self._client.idle_done()

    def close(self) -> None:
        with suppress(Exception):
            self._client.shutdown()


@contextmanager
def explained(host: str) -> Iterator[None]:
    """Raises errors of the connection as `Unavailable`, without what the server sent."""
    try:
        yield
    except ssl.SSLError:
        raise Unavailable(f"{host} has no certificate that this machine trusts.") from None
    except TimeoutError:
        raise Unavailable(f"{host} did not answer in time.") from None
    except OSError:
        raise Unavailable(f"{host} cannot be reached. Check the address and the network.") from None
    except (imaplib.IMAP4.error, LookupError, ValueError, AssertionError):
        raise Unavailable(f"{host} closed the connection or violated the protocol.") from None


def _ordered(folders: Collection[str]) -> list[str]:
    return sorted(folders, key=lambda name: (name.upper() != INBOX, name))


def _part(folder: str, validity: int, uid: int) -> str:
    return f"{validity} {uid} {folder}"


def _split(part: str) -> tuple[str, int, int]:
    """(folder, UIDVALIDITY, UID) of a part."""
    validity, uid, folder = part.split(" ", 2)
    return folder, int(validity), int(uid)


def _check(address: str) -> str:
    parts = split(address)
    if parts.scheme not in ("imaps", "imap") or not (parts.hostname and parts.username):
        raise InvalidRequest(
            f"{address!r} is not the address of a mailbox. Write imaps://user@host, and write an @ "
            "in the user name as %40."
        )
    return address


KIND = Kind("imap", Mailbox, _check, needs_secret=lambda address: True, watches=True)
