"""The authorization server, built on Authlib: code grant with PKCE, refresh and revocation.

Also has the resources that tokens are for, and the metadata of the server (RFC 8414).

It is stricter than Authlib: all clients must use PKCE with S256 and send a redirect URI, only
`resource` may be repeated, and the parameters of a token request are read from its body only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import OAuth2Payload
from authlib.oauth2.rfc6749.errors import InvalidClientError, InvalidGrantError, InvalidRequestError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Request, request

from evidence.errors import InvalidRequest, Unauthenticated
from service.access.entries import Entry
from service.access.signins import Signins
from service.access.guard import SCOPE
from service.networks import is_loopback
from service.signin.clients import GRANT_TYPES, METHODS, OFFLINE, Client, ClientType
from service.signin.consent import DETAILS_TYPE

UNREGISTERED: Final = "The client has not registered this redirect_uri."
AUTHORIZE, TOKEN, REGISTER, REVOKE = "/authorize", "/token", "/register", "/revoke"

#: The paths of the surfaces, the default first, each with the paths that accept its tokens.
Paths = Mapping[str, Sequence[str]]
_REPEATED: Final = "resource"
#: When a grant ends; None if never. Raises `Unauthenticated` if it has ended.
Ends = Callable[[str], datetime | None]


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a server: its base URL, and the paths of its surfaces."""

    base: str
    paths: Paths

    def canonical(self, uris: Sequence[str]) -> list[str] | None:
        """Returns URIs in canonical form; None if one belongs to another server."""
        valid = {self.base, *(self.base + path for path in self.paths)}
        targets = [_canonical(uri, self.base) for uri in uris] or [
            self.base + next(iter(self.paths))
        ]
        return targets if valid.issuperset(targets) else None

    def opened(self, uris: Iterable[str]) -> list[str]:
        """Returns the paths that tokens for canonical URIs open; those for the base open all."""
        paths = [uri.removeprefix(self.base) for uri in uris]
        path_lists = [self.paths[path] if path else self.paths for path in paths]
        return sorted(set(chain.from_iterable(path_lists)))


def _canonical(uri: str, base: str) -> str:
    """A URI without its query, and with the base's name for this machine if it has another one."""
    try:
        parts, ours = urlsplit(uri), urlsplit(base)
        local = "@" not in parts.netloc and all(map(_is_local, (parts.hostname, ours.hostname)))
        same = local and (parts.scheme, parts.port) == (ours.scheme, ours.port)
    except ValueError:
        return uri
    netloc = ours.netloc if same else parts.netloc.lower()
    return urlunsplit(parts._replace(netloc=netloc, path=parts.path.rstrip("/"), query=""))


def _is_local(host: str | None) -> bool:
    return host == "localhost" or is_loopback(host)


def metadata(base: str, types: Iterable[ClientType]) -> dict[str, Any]:
    """Returns the metadata of the authorization server for these types of clients."""
    return {
        "issuer": base,
        "authorization_endpoint": base + AUTHORIZE,
        "token_endpoint": base + TOKEN,
        "registration_endpoint": base + REGISTER,
        "revocation_endpoint": base + REVOKE,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": list(METHODS),
        "revocation_endpoint_auth_methods_supported": list(METHODS),
        "scopes_supported": [SCOPE, OFFLINE],
        "authorization_response_iss_parameter_supported": True,
        **{name: member for each in types for name, member in each.metadata().items()},
        "authorization_details_types_supported": [DETAILS_TYPE],
        "service_documentation": f"{base}/connect",
    }


class InvalidTarget(OAuth2Error):
    """A resource of another server, or one that was not granted (RFC 8707)."""

    error = "invalid_target"
    description = "The resource does not belong to this server or was not granted."


@dataclass(frozen=True, slots=True)
class Credential:
    """A code or refresh token, in the form that Authlib needs. `text` is what the client sent."""

    text: str
    entry: Entry
    ends: datetime | None
    code_challenge_method = "S256"

    @property
    def code_challenge(self) -> str:
        return str(self.entry.body["challenge"])

    def get_redirect_uri(self) -> str:
        return str(self.entry.body["redirect_uri"])

    def get_scope(self) -> str:
        return f"{self.entry.body['scope']} {OFFLINE}"

    def check_client(self, client: Client) -> bool:
        return bool(self.entry.body["client_id"] == client.client_id)


class _Payload(OAuth2Payload):
    """The parameters of a request: from the query for `/authorize`, otherwise from the body."""

    def __init__(self, flask_request: Request) -> None:
        self._values = flask_request.args if flask_request.path == AUTHORIZE else flask_request.form

    @property
    def data(self) -> Any:
        return self._values

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        return defaultdict(list, self._values.lists())

    @property
    def response_type(self) -> str:
        """`code` or `other`: Authlib repeats it in an error, which must be ASCII."""
        return "code" if self._values.get("response_type") == "code" else "other"


class _Request(OAuth2Request):
    """A request. Settings require https, but a proxy may terminate TLS."""

    def __init__(self, flask_request: Request) -> None:
        super().__init__(flask_request.method, "https://rung", headers=flask_request.headers)
        self.payload = _Payload(flask_request)

    @property
    def form(self) -> Any:
        return self.payload.data


class _S256(CodeChallenge):
    """PKCE with S256, required in every authorization request."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        data = grant.request.payload.data
        if not data.get("code_challenge") or data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE with code_challenge_method=S256 is required.")
        super().validate_code_challenge(grant, redirect_uri)


class _Grant:
    """What both grants have in common."""

    server: "Server"

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def authenticate_user(self, credential: Credential) -> Credential:
        return credential

    def save_token(self, token: dict[str, Any]) -> None:
        """Does nothing: the transaction that uses the code or the old token saves the new one."""


class _Code(_Grant, AuthorizationCodeGrant):
    """The authorization code grant."""

    @staticmethod
    def validate_authorization_redirect_uri(oauth_request: Any, client: Client) -> str:
        uri = str(oauth_request.payload.redirect_uri or "")
        if not client.check_redirect_uri(uri):
            raise InvalidRequestError(UNREGISTERED)
        return uri

    def query_authorization_code(self, code: str, client: Client) -> Credential | None:
        entry = self.server.signins.check_code(code)
        return self.server.credential(self.request, client, code, entry)

    def generate_token(self, user: Credential, **_: Any) -> dict[str, Any]:
        return self.server.issued(self.server.signins.exchange, user)

    def delete_authorization_code(self, credential: Credential) -> None:
        """Does nothing: a used code is kept until it expires."""


class _Refresh(_Grant, RefreshTokenGrant):
    """The refresh token grant."""

    def authenticate_refresh_token(self, refresh_token: str) -> Credential | None:
        entry = self.server.signins.refresh_token(refresh_token)
        return self.server.credential(self.request, self.request.client, refresh_token, entry)

    def issue_token(self, user: Credential, _: Credential) -> dict[str, Any]:
        return self.server.issued(self.server.signins.rotate, user)

    def revoke_old_credential(self, credential: Credential) -> None:
        """Does nothing: the old token works for two more minutes."""


class _Revocation(RevocationEndpoint):
    """The revocation endpoint. It revokes all tokens of the grant."""

    CLIENT_AUTH_METHODS = METHODS

    def authenticate_token(self, oauth_request: Any, client: Client) -> None:
        if not oauth_request.form.get("token"):
            raise InvalidRequestError("The request has no token parameter.")
        self.server.signins.revoke(oauth_request.form["token"], client.client_id)


class Server(AuthorizationServer):
    """The authorization server of one store."""

    def __init__(
        self, signins: Signins, types: Sequence[ClientType], resources: Resources, ends: Ends
    ) -> None:
        super().__init__()
        self.signins, self._types = signins, types
        self.resources, self._ends = resources, ends
        self.register_grant(_Code, [_S256(required=True)])
        self.register_grant(_Refresh)
        self.register_endpoint(_Revocation)

    def query_client(self, client_id: str) -> Client:
        """Returns a client. Unknown clients get 401, so that they register again."""
        # Only consent needs the metadata that a client publishes, and only after the proof.
        asks = request.path == AUTHORIZE
        redirect_uri = request.args.get("redirect_uri", "") if asks else None
        client = self._type(client_id).find(client_id, redirect_uri)
        if client is None:
            raise InvalidClientError("The client is unknown. Register again.", status_code=401)
        return client

    def complete(self, client: Client, redirect_uri: str) -> Client:
        """Returns a client with all its metadata. Raises `InvalidRequest` if that cannot be used or
        does not name the redirect URI."""
        client = self._type(client.client_id).complete(client)
        if not client.check_redirect_uri(redirect_uri):
            raise InvalidRequest(UNREGISTERED)
        return client

    def _type(self, client_id: str) -> ClientType:
        return next(each for each in self._types if each.recognizes(client_id))

    def create_oauth2_request(self, incoming: Any) -> OAuth2Request:
        oauth_request = _Request(request)
        for name, values in oauth_request.payload.datalist.items():
            if len(values) > 1 and name != _REPEATED:
                raise InvalidRequestError("A parameter is repeated. Send each parameter once.")
        return oauth_request

    def targets(self, payload: OAuth2Payload) -> list[str]:
        """Returns the resources of a request in canonical form; raises `InvalidTarget`."""
        targets = self.resources.canonical(payload.datalist[_REPEATED])
        if targets is None:
            raise InvalidTarget()
        return targets

    def credential(
        self, oauth_request: OAuth2Request, client: Client, text: str, entry: Entry | None
    ) -> Credential | None:
        """Returns a code or refresh token of this client if its grant is active, else None.

        Raises `InvalidTarget` if the request names a resource that was not granted.
        """
        if entry is None or entry.body["client_id"] != client.client_id:
            return None
        if oauth_request.payload.datalist[_REPEATED] and not (
            set(self.targets(oauth_request.payload)) <= set(entry.body["resource"])
        ):
            raise InvalidTarget()
        try:
            return Credential(text, entry, self._ends(entry.owner))
        except Unauthenticated:
            return None

    def issued(self, issue: Callable[..., dict[str, Any]], user: Credential) -> dict[str, Any]:
        """Returns new tokens; raises `invalid_grant` if the credential was already used."""
        body = {name: user.entry.body[name] for name in ("client_id", "scope", "resource", "paths")}
        token = issue(user.text, body, user.ends)
        if not token:
            raise InvalidGrantError("The code or token was already used.")
        return {**token, "grant_id": user.entry.owner}
