"""The resources that tokens are for, and the metadata of the authorization server (RFC 8414)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from service.access.guard import SCOPE
from service.signin.clients import GRANT_TYPES, METHODS, OFFLINE

AUTHORIZE, TOKEN, REGISTER, REVOKE = "/authorize", "/token", "/register", "/revoke"
DETAILS_TYPE: Final = "https://pdpp.dev/data-access"

#: The paths of the surfaces, the default first, with the paths that tokens for each open.
Paths = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a server: its base URL, and the paths of its surfaces."""

    base: str
    paths: Paths

    def canonical(self, uris: Sequence[str]) -> list[str] | None:
        """Returns URIs in canonical form; None if one belongs to another server."""
        known = {self.base, *(self.base + path for path in self.paths)}
        found = [_canonical(uri) for uri in uris] or [self.base + next(iter(self.paths))]
        return found if known.issuperset(found) else None

    def opened(self, uris: Iterable[str]) -> list[str]:
        """Returns the paths that tokens for canonical URIs open; those for the base open all."""
        paths = [uri.removeprefix(self.base) for uri in uris]
        found = [self.paths[path] if path else self.paths for path in paths]
        return sorted(set(chain.from_iterable(found)))


def _canonical(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.lower(), path=parts.path.rstrip("/")))


def document(base: str, *, documents: bool) -> dict[str, Any]:
    """Returns the metadata of the authorization server. `documents` are those of clients."""
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
        **({"client_id_metadata_document_supported": True} if documents else {}),
        "authorization_details_types_supported": [DETAILS_TYPE],
        "service_documentation": f"{base}/connect",
    }
