"""The sign-ins of clients that cannot run here, request by request, to a tool call.

The requests follow captures, sources and reports of these clients. A row holds only what is
particular to a client; all use PKCE with S256, a state and the resource that the user entered.
"""

from base64 import b64encode
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import requests

from tests.helpers.asset_server import AssetServer
from tests.helpers.posting import legacy_body
from tests.helpers.signin import MAIL, Browser, Client, answer, later, new_code, run_command
from tests.helpers.worlds import House
from tests.spec.sign_in.conftest import published

CODE_AND_REFRESH: Final = {
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
}
NATIVE: Final = {"token_endpoint_auth_method": "none", "application_type": "native"}
VS_CODE: Final = {
    "client_name": "Visual Studio Code",
    "client_uri": "https://code.visualstudio.com",
    "redirect_uris": [
        "https://insiders.vscode.dev/redirect",
        "https://vscode.dev/redirect",
        "http://127.0.0.1/",
        "http://127.0.0.1:33418/",
    ],
    **CODE_AND_REFRESH,
    **NATIVE,
}
CURSOR: Final = {
    "client_name": "Cursor",
    "redirect_uris": [
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "https://www.cursor.com/agents/mcp/oauth/callback",
        "http://localhost:8787/callback",
    ],
    "token_endpoint_auth_method": "none",
    **CODE_AND_REFRESH,
}


@dataclass(frozen=True)
class Hosted:
    """What a client sends.

    `probe` is the method of its first request. Without `discovers` it uses the default endpoints.
    `method` is how it authenticates at `/token`. `scope` is a text, or the origin of the scopes:
    `challenge` or `metadata`. The values of `parameters` are added to the authorization request.
    """

    name: str
    registration: dict[str, Any]
    redirect: str
    method: str = "none"
    scope: str | None = "challenge"
    probe: str = "POST"
    version: str = "2025-06-18"
    discovers: bool = True
    parameters: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def claude(
    name: str,
    host: str = "claude.ai",
    *,
    method: str = "client_secret_post",
    scope: str | None = "metadata",
    discovers: bool = True,
) -> Hosted:
    """claude.ai and the applications that connect through its servers."""
    callback = f"https://{host}/api/mcp/auth_callback"
    registration = {
        "client_name": "Claude",
        "redirect_uris": [callback],
        "token_endpoint_auth_method": method,
        **CODE_AND_REFRESH,
    }
    return Hosted(name, registration, callback, method, scope, discovers=discovers)


def chatgpt(name: str, path: str) -> Hosted:
    """ChatGPT, which has a callback for each connector."""
    callback = f"https://chatgpt.com/{path}"
    registration = {
        "client_name": "ChatGPT",
        "redirect_uris": [callback],
        "token_endpoint_auth_method": "none",
        **CODE_AND_REFRESH,
    }
    return Hosted(name, registration, callback, scope="metadata", version="2025-11-25")


CHATGPT: Final = chatgpt("ChatGPT", "connector/oauth/Ab3_x-9")
#: ChatGPT prefers to sign its requests, and can do without.
EITHER: Final = {
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
}

HOSTED: Final = (
    claude("claude.ai"),
    claude("claude.com", "claude.com"),
    claude("claude.ai without discovery", discovers=False, scope=None),
    CHATGPT,
    chatgpt("ChatGPT, older callback", "connector_platform_oauth_redirect"),
    Hosted("Cursor", CURSOR, CURSOR["redirect_uris"][0]),
    Hosted("Cursor in the cloud", CURSOR, CURSOR["redirect_uris"][1]),
    Hosted(
        "VS Code",
        VS_CODE,
        "http://127.0.0.1:33418/",
        version="2025-11-25",
    ),
    Hosted("VS Code, another port", VS_CODE, "http://127.0.0.1:51123/", version="2025-11-25"),
    Hosted(
        "VS Code in a browser",
        VS_CODE,
        "https://vscode.dev/redirect",
        version="2025-11-25",
        parameters={"state": "vscode://dynamicauthprovider/rung?nonce=a%2Bb&windowId=1"},
    ),
    Hosted(
        "Copilot CLI",
        {
            "client_name": "GitHub Copilot CLI",
            "redirect_uris": ["http://127.0.0.1:40411/"],
            **NATIVE,
        },
        "http://127.0.0.1:40411/",
    ),
    Hosted(
        "Copilot Studio",
        {
            "client_name": "Copilot Studio",
            "redirect_uris": ["https://global.consent.azure-apim.net/redirect/rung-5f1c"],
            **CODE_AND_REFRESH,
        },
        "https://global.consent.azure-apim.net/redirect/rung-5f1c",
        method="client_secret_basic",
        scope=None,
        version="2025-03-26",
    ),
    Hosted(
        "Gemini CLI",
        {
            "client_name": "Gemini CLI MCP Client",
            "redirect_uris": ["http://localhost:37213/oauth/callback"],
            "token_endpoint_auth_method": "none",
            "scope": "",
            **CODE_AND_REFRESH,
        },
        "http://localhost:40991/oauth/callback",
        probe="HEAD",
    ),
)


#: What these clients publish instead, if the server accepts documents.
PUBLISHED: Final = (
    claude("claude.ai", method="none"),
    replace(CHATGPT, registration={**CHATGPT.registration, **EITHER}),
    Hosted("VS Code", VS_CODE, "http://127.0.0.1:33418/", version="2025-11-25"),
    Hosted(
        "Claude Code",
        {
            "client_name": "Claude Code",
            "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
            "token_endpoint_auth_method": "none",
            **CODE_AND_REFRESH,
        },
        "http://localhost:52113/callback",
        version="2025-11-25",
    ),
    Hosted(
        "Codex",
        {"client_name": "Codex", "redirect_uris": ["http://127.0.0.1/callback"], **NATIVE},
        "http://127.0.0.1:45991/callback",
        probe="GET",
    ),
)


@pytest.mark.parametrize("hosted", HOSTED, ids=str)
def test_a_client_that_registers_reads_refreshes_and_is_cut_off(
    base: str, house: House, browser: Browser, hosted: Hosted
) -> None:
    found = discovered(base, hosted) if hosted.discovers else {}
    client = Client(base, hosted.registration).register()
    assert bool(client.secret) == (hosted.method != "none")
    signs_in(client, house, browser, hosted, found)


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("hosted", PUBLISHED, ids=str)
def test_a_client_that_publishes_its_metadata_reads_refreshes_and_is_cut_off(
    served: str, house: House, publisher: AssetServer, hosted: Hosted
) -> None:
    browser = Browser(served, house.path)
    browser.sign_in(new_code(house.path))
    client = Client(served, id=published(publisher, **hosted.registration))
    signs_in(client, house, browser, hosted, discovered(served, hosted))


def signs_in(
    client: Client, house: House, browser: Browser, hosted: Hosted, found: dict[str, str]
) -> None:
    """A whole sign-in, from the request for consent to the end of the grant."""
    base = client.base
    scope = found.get(hosted.scope or "", hosted.scope)
    sent = {"redirect_uri": hosted.redirect, "scope": scope, **hosted.parameters}
    left = browser.allow(client.path(**sent), MAIL)
    back = answer(left)
    assert hosted.redirect in left.text
    assert back["state"] == client.query(**sent)["state"] and back["iss"] == base
    identity = authentication(client, hosted.method)
    resource = {"resource": f"{base}/mcp"}
    redeemed = client.token(back["code"], redirect_uri=hosted.redirect, **resource, **identity)
    tokens = checked(redeemed)
    assert reads(client, tokens, hosted.version)
    later(house, 3_601)
    assert not reads(client, tokens, hosted.version)
    renewed = checked(client.refresh(tokens["refresh_token"], **resource, **identity))
    assert reads(client, renewed, hosted.version)
    run_command(house, "grant", "revoke", tokens["grant_id"])
    assert not reads(client, renewed, hosted.version)
    refused = client.refresh(renewed["refresh_token"], **resource, **identity)
    assert refused.status_code == 400 and refused.json()["error"] == "invalid_grant"


def authentication(client: Client, method: str) -> dict[str, str | None]:
    """What a client changes in its forms to authenticate; Basic is a header of the client."""
    if method == "client_secret_basic":
        pair = f"{client.id}:{client.secret}".encode()
        client.headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
        return {"client_id": None}
    return {"client_secret": client.secret} if client.secret else {}


def discovered(base: str, hosted: Hosted) -> dict[str, str]:
    """Follows the metadata from a refusal; returns the scopes by their origin."""
    refused = requests.request(hosted.probe, f"{base}/mcp")
    assert refused.status_code in (401, 405)
    named = requests.post(f"{base}/mcp", json={}).headers["WWW-Authenticate"]
    where = named.partition('resource_metadata="')[2].partition('"')[0]
    assert urlsplit(where)[:2] == urlsplit(base)[:2]
    protected = requests.get(where, headers={"MCP-Protocol-Version": hosted.version}).json()
    assert protected["resource"] == f"{base}/mcp"
    issuer = protected["authorization_servers"][0]
    described = requests.get(f"{issuer}/.well-known/oauth-authorization-server").json()
    assert described["issuer"] == issuer and None not in described.values()
    for endpoint in ("authorization", "token", "registration"):
        assert described[f"{endpoint}_endpoint"].startswith(f"{base}/")
    assert hosted.method in described["token_endpoint_auth_methods_supported"]
    scopes = " ".join(described["scopes_supported"])
    return {"challenge": named.partition('scope="')[2].partition('"')[0], "metadata": scopes}


def checked(response: requests.Response) -> dict[str, Any]:
    """The tokens of an answer that clients accept."""
    assert response.status_code == 200, response.text
    assert "no-store" in response.headers["Cache-Control"]
    tokens: dict[str, Any] = response.json()
    assert tokens["token_type"] == "Bearer" and tokens["expires_in"] > 300
    return tokens


def reads(client: Client, tokens: dict[str, Any], version: str) -> bool:
    """Whether a session of this version finds a record; it is refused with 401 otherwise."""
    headers = {
        "Authorization": f"Bearer {tokens['access_token']}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "X-Forwarded-For": client.headers["X-Forwarded-For"],
    }
    hello = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "client", "version": "1"},
    }
    search = {"name": "search", "arguments": {"query": "lantern"}}
    calls = (("initialize", hello), ("tools/list", {}), ("tools/call", search))
    for call in calls:
        response = requests.post(f"{client.base}/mcp", json=legacy_body(*call), headers=headers)
        if response.status_code == 401:
            assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
            return False
        assert response.status_code == 200, response.text
    return "mail-work/messages:m6" in response.text
