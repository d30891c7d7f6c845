"""Sign-in clients. `TYPES` lists the types: clients that publish metadata, and those that register.

Registrations are not stored. A client id is the client's metadata, encrypted with a key of the
deployment. Public clients with equal metadata have the same id.

The id of a client that publishes its metadata is the https URL of a JSON document. Anyone can name
a URL, so the server fetches it only after a proof of the owner, from public addresses, within
limits, and without following redirects. It keeps a valid document as long as the headers allow, at
most a day. Tokens are bound to the URL and need no document.
"""

import hmac
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import orjson

from evidence.errors import EvidenceError, InvalidRequest
from evidence.work import Deadline, parse_json
from service import keys
from service.access.entries import Entries
from service.access.guard import SCOPE
from service.networks import is_loopback, is_public
from service.signin.redirects import acceptable, elsewhere, is_registered, redirect_uris
from service.sources.remote.outbound import opened

OFFLINE: Final = "offline_access"
PREFIX: Final = "c_"
NONE, BASIC, POST = "none", "client_secret_basic", "client_secret_post"
METHODS: Final = (NONE, BASIC, POST)
GRANT_TYPES: Final = ("authorization_code", "refresh_token")
NAME_CHARS, ID_CHARS = 60, 2_048
SECONDS: Final = 3
BYTES: Final = 5_120
#: The most fetches for all addresses, and the window in seconds.
FETCHES: Final = (10, 60)
#: How long a document is kept, in seconds: at least, without a header, at most.
LEAST, USUAL, MOST = 60, 3_600, 86_400
_DOCUMENT: Final = "document"
_HEADERS: Final = {"Accept": "application/json", "Connection": "close"}
_JSON: Final = re.compile(r"application/([a-z0-9.-]+\+)?json *(;.*)?", re.IGNORECASE)
_MAX_AGE: Final = re.compile(r"max-age=([0-9]{1,9})")
_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class Client:
    """A registered client, in the form that Authlib needs. Public clients have no `secret`."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    method: str = NONE
    secret: str | None = None

    @property
    def host(self) -> str | None:
        """The host that publishes the client's metadata; None if the client registered itself."""
        return urlsplit(self.client_id).hostname if is_url(self.client_id) else None

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> None:
        """None: the redirect URI is required."""

    def get_allowed_scope(self, scope: str | None) -> str:
        """Returns the granted scopes, without unknown ones."""
        return f"{SCOPE} {OFFLINE}" if OFFLINE in (scope or "").split() else SCOPE

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return is_registered(redirect_uri, self.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        return self.secret is not None and hmac.compare_digest(
            self.secret.encode(), client_secret.encode()
        )

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return (method == NONE) == (self.method == NONE)

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in GRANT_TYPES


def is_url(client_id: str) -> bool:
    """Whether a client id is the URL of the client's metadata."""
    return client_id.startswith("https://")


@dataclass(frozen=True, slots=True)
class Deployment:
    """The server that clients sign in to: its URL, its secret, where it keeps small values, and the
    setting of client documents."""

    base: str
    secret: Callable[[], bytes]
    entries: Entries
    documents: str


class ClientType(Protocol):
    """A type of clients."""

    def metadata(self) -> dict[str, Any]:
        """Returns the members with which the metadata of the server announces the type."""

    def recognizes(self, client_id: str) -> bool:
        """Whether this is the id of a client of this type."""

    def find(self, client_id: str, redirect_uri: str | None) -> Client | None:
        """Returns a client, or None, without fetching anything. The redirect URI is that of an
        authorization request; None for other requests."""

    def complete(self, client: Client) -> Client:
        """Returns a client with its metadata, once the owner has given a proof. Raises
        `InvalidRequest` if that cannot be used."""


class Registered:
    """Clients that registered themselves. Their ids begin with `c_`."""

    def __init__(self, deployment: Deployment) -> None:
        self._secret, self._base = deployment.secret, deployment.base

    def metadata(self) -> dict[str, Any]:
        return {}

    def recognizes(self, client_id: str) -> bool:
        return True

    def find(self, client_id: str, redirect_uri: str | None = None) -> Client | None:
        try:
            payload = client_id.removeprefix(PREFIX)
            name, uris, method, _ = keys.of_clients(self._secret()).open(payload, bound="client")
        except (InvalidRequest, UnicodeError):
            return None
        secret = None if method == NONE else self._client_secret(client_id)
        name = claimed_name({"client_name": name})
        return Client(client_id, name, elsewhere(uris, self._base), method, secret)

    def complete(self, client: Client) -> Client:
        return client

    def register(self, metadata: Any) -> dict[str, Any]:
        """Returns the response to a registration. Raises `InvalidRequest` with a code of RFC 7591.

        Unknown members are ignored. A client without an authentication method gets a
        secret.
        """
        if not isinstance(metadata, dict):
            raise _invalid("The registration must be a JSON object.")
        method = metadata.get("token_endpoint_auth_method") or BASIC
        method = method if method in METHODS else NONE
        name, uris = claimed_name(metadata), redirect_uris(metadata, self._base)
        nonce = "" if method == NONE else token_urlsafe(12)
        payload = [name, uris, method, nonce]
        client_id = PREFIX + keys.of_clients(self._secret()).seal(payload, bound="client")
        if len(client_id) > ID_CHARS:
            raise _invalid("The registration is too large. Register fewer redirect URIs.")
        secret = {} if method == NONE else {"client_secret": self._client_secret(client_id)}
        return {
            "client_id": client_id,
            **secret,
            **({"client_secret_expires_at": 0} if secret else {}),
            "client_name": name,
            "redirect_uris": uris,
            "token_endpoint_auth_method": method,
            "grant_types": list(GRANT_TYPES),
            "response_types": ["code"],
            "scope": f"{SCOPE} {OFFLINE}",
        }

    def _client_secret(self, client_id: str) -> str:
        text = b"rung client secret\0" + client_id.encode()
        return hmac.digest(self._secret(), text, sha256).hex()


def claimed_name(metadata: Mapping[str, Any]) -> str:
    """Returns the claimed name, as `own_words`."""
    return own_words(metadata.get("client_name") or "", NAME_CHARS) or "No name"


def own_words(said: object, most: int) -> str:
    """Returns a client's own words on one line, so that they cannot look like ours: letters, digits
    and ordinary punctuation, without symbols, emoji and quotation marks."""
    text = said if isinstance(said, str) else orjson.dumps(said).decode()
    text = unicodedata.normalize("NFKC", text[: most * 4])
    return " ".join("".join(map(_plain, text)).split())[:most].strip()


def _plain(char: str) -> str:
    """A character of a client's words; a space or nothing if it is not shown."""
    if char.isspace():
        return " "
    kind = unicodedata.category(char)
    if kind[0] == "P":
        ordinary = char <= "\u2015" or char in "’…" or char >= "\u3000"
        return char if ordinary and char not in '"«»§¶〝〞〟' else ""
    letter = kind[0] == "L" or kind == "Nd" or kind in ("Mn", "Mc")
    return char if letter and "VARIATION SELECTOR" not in unicodedata.name(char, "") else ""


def _invalid(message: str) -> EvidenceError:
    return InvalidRequest(message, code="invalid_client_metadata")


class Published:
    """Clients that publish their metadata at the URL that is their id."""

    def __init__(self, deployment: Deployment) -> None:
        self._entries, self._base = deployment.entries, deployment.base
        self._setting = deployment.documents

    def metadata(self) -> dict[str, Any]:
        return {"client_id_metadata_document_supported": True} if self._setting != "off" else {}

    def recognizes(self, client_id: str) -> bool:
        return self._setting != "off" and is_url(client_id)

    def find(self, client_id: str, redirect_uri: str | None) -> Client:
        """Returns the client as if its document named the redirect URI; raises `InvalidRequest` if
        no document can be at the URL. Does not use what is kept, which would tell a stranger which
        clients signed in."""
        if redirect_uri is None:
            return Client(client_id, "", ())
        parts = urlsplit(client_id) if acceptable(client_id) else None
        if (
            parts is None
            or not parts.path
            or not {".", ".."}.isdisjoint(unquote(parts.path).split("/"))
            or not (self._is_local or parts.port in (None, _PORT))
        ):
            raise InvalidRequest("The application's id is not a valid URL of client metadata.")
        return Client(client_id, "", elsewhere(filter(acceptable, [redirect_uri]), self._base))

    def complete(self, client: Client) -> Client:
        url = client.client_id
        with self._entries.reading() as entries:
            entry = entries.get(_DOCUMENT, url)
        if entry is None:
            with self._entries.changing() as entries:
                entries.limit(_DOCUMENT, "", *FETCHES)
            body, seconds = self._fetched(url)
            with self._entries.changing() as entries:
                entries.put(_DOCUMENT, url, body, seconds=seconds)
        else:
            body = entry.body
        return Client(url, body["name"], elsewhere(body["redirect_uris"], self._base))

    @property
    def _is_local(self) -> bool:
        """Whether documents may come from this machine, and from any port."""
        return self._setting == "loopback"

    def _accepts(self, address: str) -> bool:
        """Whether a document may come from an IP address."""
        return is_public(address) or (self._is_local and is_loopback(address))

    def _fetched(self, url: str) -> tuple[dict[str, Any], int]:
        """Returns the parts of the document to keep, and for how many seconds."""
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
                metadata = parse_json(answer.read(BYTES))
            body = _checked(metadata, url, self._base)
        except (EvidenceError, ValueError) as error:
            why = error.message if isinstance(error, EvidenceError) else "It is not valid JSON."
            host = urlsplit(url).hostname
            raise InvalidRequest(
                f"The application's metadata at {host} cannot be used. {why}"
            ) from None
        age = _MAX_AGE.search(sent.get("Cache-Control", ""))
        return body, min(max(int(age[1]) if age else USUAL, LEAST), MOST)


def _checked(metadata: Any, url: str, base: str) -> dict[str, Any]:
    """Returns the claimed name and the redirect URIs of a document."""
    if not isinstance(metadata, dict) or metadata.get("client_id") != url:
        raise InvalidRequest("It is the metadata of another application.")
    methods = metadata.get("token_endpoint_auth_methods_supported")
    if not isinstance(methods, list):
        methods = [metadata.get("token_endpoint_auth_method", NONE)]
    if NONE not in methods or "client_secret" in metadata:
        raise InvalidRequest("It requires client authentication, which Rung does not support.")
    return {"name": claimed_name(metadata), "redirect_uris": redirect_uris(metadata, base)}


#: The types of clients. The first that recognizes the id of a client finds it.
TYPES: Final[tuple[Callable[[Deployment], ClientType], ...]] = (Published, Registered)
