"""Clients of sign-in, which register themselves or publish their metadata.

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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import orjson

from evidence.errors import EvidenceError, InvalidRequest
from evidence.work import Deadline, parse_json
from service import keys
from service.access.entries import Entries
from service.access.guard import SCOPE
from service.sources.remote.outbound import opened

OFFLINE: Final = "offline_access"
PREFIX: Final = "c_"
NONE, BASIC, POST = "none", "client_secret_basic", "client_secret_post"
METHODS: Final = (NONE, BASIC, POST)
GRANT_TYPES: Final = ("authorization_code", "refresh_token")
NAME_CHARS, MOST_REDIRECTS, ID_CHARS = 60, 10, 2_048
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
MOST_CHARS: Final = 512
#: Schemes that a browser handles itself. Other schemes belong to applications.
REFUSED: Final = frozenset(
    "about blob chrome data file filesystem ftp http javascript mailto view-source vbscript ws wss"
    " feed intent jar resource search search-ms shell sms tel".split()
)
#: RFC 3986, without a fragment, a user or characters that a browser would rewrite.
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9\-._~:/?\[\]!$&()*+,;=%]+")
_LOOPBACK: Final = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?([/?].*)?")
_HOST: Final = re.compile(r"([a-z0-9-]+\.)*[a-z0-9-]+|\[[0-9a-f:.]+\]", re.IGNORECASE)

#: The last label of a host that browsers read as an IPv4 address.
_NUMBER: Final = re.compile("[0-9]+|0x[0-9a-f]*")


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


class Clients:
    """Registers and finds clients of the server at `base`. `secret` returns the secret of the
    deployment."""

    def __init__(self, secret: Callable[[], bytes], base: str) -> None:
        self._secret, self._base = secret, base

    def find(self, client_id: str) -> Client | None:
        """Returns a client by its id, or None."""
        try:
            payload = client_id.removeprefix(PREFIX)
            name, uris, method, _ = keys.of_clients(self._secret()).open(payload, bound="client")
        except (InvalidRequest, UnicodeError):
            return None
        secret = None if method == NONE else self._client_secret(client_id)
        name = claimed_name({"client_name": name})
        return Client(client_id, name, elsewhere(uris, self._base), method, secret)

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


def redirect_uris(metadata: Mapping[str, Any], base: str) -> list[str]:
    """Returns the redirect URIs; raises `InvalidRequest` if one cannot be used by a client of the
    server at `base`."""
    uris = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= MOST_REDIRECTS:
        raise _invalid(f"redirect_uris must list 1 to {MOST_REDIRECTS} URIs.", uris=True)
    if not all(map(acceptable, uris)):
        raise _invalid(
            "Each redirect URI must use https, http on a loopback address, or the application's own"
            " scheme, and have no fragment.",
            uris=True,
        )
    if len(elsewhere(uris, base)) < len(uris):
        raise _invalid("A redirect URI must not be on the host of this server.", uris=True)
    return uris


def elsewhere(uris: Iterable[str], base: str) -> tuple[str, ...]:
    """Returns the URIs that are not on the host of the server at `base`, on whatever port: a
    browser sends the cookies of a host there. Without TLS, returns all, because a client on this
    machine has no other host."""
    parts = urlsplit(base)
    ours = _host(parts.hostname or "")
    return tuple(
        uri
        for uri in uris
        if parts.scheme != "https" or _host(urlsplit(uri).hostname or "") not in (ours, None)
    )


def _host(name: str) -> str | None:
    """A host as browsers spell it; None for an IPv4 address in a spelling that they rewrite."""
    name = name.lower().removesuffix(".")
    try:
        return str(ip_address(name))
    except ValueError:
        return None if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def _invalid(message: str, *, uris: bool = False) -> EvidenceError:
    code = "invalid_redirect_uri" if uris else "invalid_client_metadata"
    return InvalidRequest(message, code=code)


class Documents:
    """Fetches and keeps documents for the server at `base`. `accepts` decides which IP addresses
    they may come from, and `any_port` allows ports other than 443."""

    def __init__(
        self,
        entries: Entries,
        accepts: Callable[[str], bool],
        base: str,
        *,
        any_port: bool = False,
    ) -> None:
        self._entries, self._accepts, self._base = entries, accepts, base
        self._any_port = any_port

    def client(self, url: str) -> Client:
        """Returns the client at a URL; raises `InvalidRequest` with the reason if there is none."""
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

    def unread(self, url: str, redirect_uri: str) -> Client:
        """Returns the client at a URL as if its document named this redirect URI; raises
        `InvalidRequest` if none can be at this URL. Does not use what is kept, which would tell a
        stranger which clients signed in."""
        parts = urlsplit(url) if acceptable(url) else None
        if (
            parts is None
            or not parts.path
            or not {".", ".."}.isdisjoint(unquote(parts.path).split("/"))
            or not (self._any_port or parts.port in (None, _PORT))
        ):
            raise InvalidRequest("The application's id is not a valid URL of client metadata.")
        return Client(url, "", elsewhere(filter(acceptable, [redirect_uri]), self._base))

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
        raise InvalidRequest("It requires client authentication, which is not supported here.")
    return {"name": claimed_name(metadata), "redirect_uris": redirect_uris(metadata, base)}


def acceptable(uri: object) -> bool:
    """Whether this URI can be registered: https, http on loopback, or an application's scheme."""
    if not isinstance(uri, str) or len(uri) > MOST_CHARS or not _URI.fullmatch(uri):
        return False
    if _LOOPBACK.fullmatch(uri):
        return True
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(_HOST.fullmatch(_name(parts, host)))
    return parts.scheme not in REFUSED and not parts.scheme.startswith("ms-")  # Windows' own


def _name(parts: SplitResult, host: str) -> str:
    return f"[{host}]" if parts.netloc.startswith("[") else host


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether a URI is registered. On loopback, the port may differ."""
    if not acceptable(uri):
        return False
    portless = _without_port(uri)
    return any(
        uri == registered_uri or (portless and portless == _without_port(registered_uri))
        for registered_uri in registered
    )


def _without_port(uri: str) -> tuple[str, str] | None:
    """Returns (host, rest) of an http URI on loopback; None for other URIs."""
    match = _LOOPBACK.fullmatch(uri)
    return (match[1], match[2] or "") if match else None


def destination(uri: str) -> tuple[str, str]:
    """Returns (where the URI leads, and "web", "loopback" or "application")."""
    parts = urlsplit(uri)
    if _LOOPBACK.fullmatch(uri):
        return f"{parts.scheme}://{parts.netloc}", "loopback"
    if parts.scheme == "https":
        return f"{parts.scheme}://{parts.netloc}", "web"
    return f"{parts.scheme}:", "application"
