"""Clients that publish their metadata: the client id is the https URL of a JSON document.

Anybody can name a URL, so the server fetches it only for an owner who is signed in, from public
addresses, within limits, and follows no redirect. It keeps a valid document as long as the headers
allow, at most a day. Tokens are bound to the URL and need no document.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from evidence import json_text
from evidence.errors import EvidenceError, InvalidRequest
from evidence.work import Deadline
from service.access.entries import Entries
from service.access.owner import limit
from service.signin import redirects
from service.signin.clients import NONE, Client, claimed_name, redirect_uris
from service.sources.remote.outbound import opened

SECONDS: Final = 3
BYTES: Final = 5_120
#: The most fetches of all addresses, and the window in seconds.
FETCHES: Final = (10, 60)
#: How long a document is kept, in seconds: at least, without a header, at most.
LEAST, USUAL, MOST = 60, 3_600, 86_400
_DOCUMENT: Final = "document"
_HEADERS: Final = {"Accept": "application/json", "Connection": "close"}
_JSON: Final = re.compile(r"application/([a-z0-9.-]+\+)?json *(;.*)?", re.IGNORECASE)
_MAX_AGE: Final = re.compile(r"max-age=([0-9]{1,9})")
_PORT: Final = 443


class Documents:
    """Fetches and keeps documents. `accepts` decides which IP addresses they may come from, and
    `any_port` allows ports other than 443."""

    def __init__(
        self, entries: Entries, accepts: Callable[[str], bool], *, any_port: bool = False
    ) -> None:
        self._entries, self._accepts, self._any_port = entries, accepts, any_port

    def client(self, url: str) -> Client:
        """Returns the client at a URL; raises `InvalidRequest` with the reason if there is none."""
        with self._entries.reading() as kept:
            entry = kept.get(_DOCUMENT, url)
        if entry is None:
            self._check(url)
            with self._entries.changing() as kept:
                limit(kept, _DOCUMENT, "", *FETCHES)
            body, seconds = self._fetched(url)
            with self._entries.changing() as kept:
                kept.put(_DOCUMENT, url, body, seconds=seconds)
        else:
            body = entry.body
        return Client(url, body["name"], tuple(body["redirect_uris"]))

    def _check(self, url: str) -> None:
        parts = urlsplit(url) if redirects.acceptable(url) else None
        if (
            parts is None
            or not parts.path
            or not {".", ".."}.isdisjoint(unquote(parts.path).split("/"))
            or not (self._any_port or parts.port in (None, _PORT))
        ):
            raise InvalidRequest("The application's id is not a valid URL of client metadata.")

    def _fetched(self, url: str) -> tuple[dict[str, Any], int]:
        """Returns what is kept of the document, and for how many seconds."""
        deadline = Deadline.after(SECONDS)
        try:
            with opened(
                "GET", url, deadline=deadline, headers=_HEADERS, accepts=self._accepts
            ) as answer:
                sent = answer.headers
                if answer.status != 200 or not _JSON.fullmatch(sent.get("Content-Type", "")):
                    raise InvalidRequest("It is not a JSON document.")
                if "Content-Encoding" in sent:
                    raise InvalidRequest("It is compressed.")
                metadata = json_text.parse(answer.read(BYTES))
            body = _checked(metadata, url)
        except (EvidenceError, ValueError) as error:
            why = error.message if isinstance(error, EvidenceError) else "It is not valid JSON."
            host = urlsplit(url).hostname
            raise InvalidRequest(
                f"The application's metadata at {host} cannot be used. {why}"
            ) from None
        age = _MAX_AGE.search(sent.get("Cache-Control", ""))
        return body, min(max(int(age[1]) if age else USUAL, LEAST), MOST)


def _checked(metadata: Any, url: str) -> dict[str, Any]:
    """Returns the claimed name and the redirect URIs of a document."""
    if not isinstance(metadata, dict) or metadata.get("client_id") != url:
        raise InvalidRequest("It is the metadata of another application.")
    methods = metadata.get("token_endpoint_auth_methods_supported")
    if not isinstance(methods, list):
        methods = [metadata.get("token_endpoint_auth_method", NONE)]
    if NONE not in methods or "client_secret" in metadata:
        raise InvalidRequest("It requires client authentication, which is not supported here.")
    return {"name": claimed_name(metadata), "redirect_uris": redirect_uris(metadata)}
