"""A client that signs in, and the browser of the owner who approves it, both without scripts."""

import base64
import hashlib
import html
import itertools
import re
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import requests
from click.testing import CliRunner

from service.__main__ import rung
from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.owner import Owner
from service.place import Place, spelled
from tests.helpers.worlds import House

#: A stream of `worlds.two_mailboxes`, as in the value of its box.
MAIL = '["mail-work","messages"]'
REDIRECT = "http://127.0.0.1:9/callback"
REGISTRATION = {
    "client_name": "Notebook",
    "redirect_uris": [REDIRECT],
    "token_endpoint_auth_method": "none",
}
SAME = {"Sec-Fetch-Site": "same-origin"}
_numbers = itertools.count()


def address() -> str:
    """The header of a proxy with another client address, for limits per address."""
    return "198.18.{}.{}".format(*divmod(next(_numbers), 256))


def new_code(place: Place) -> str:
    """The code that `rung owner link` creates."""
    return Owner(Entries(open_sidecar(place))).new_code()


def inputs(page: str) -> list[dict[str, str]]:
    """The attributes of every input and button of a page, in their order."""
    tags = re.findall(r"<(?:input|button)\b([^>]*)>", page)
    return [
        {
            name: html.unescape(value or "")
            for name, value in re.findall(r'([a-z-]+)(?:="([^"]*)")?', tag)
        }
        for tag in tags
    ]


def hidden(page: str) -> dict[str, str]:
    """The hidden inputs of a page."""
    return {
        one["name"]: one.get("value", "") for one in inputs(page) if one.get("type") == "hidden"
    }


def begun_at(page: str) -> str:
    """The path of the session that a page begins; empty for other pages."""
    found = re.search(r'data-act="begin" data-path="(/s/[\w-]{22})"', page)
    return found[1] if found else ""


def led_to(page: str) -> str:
    """The plain address to which a page that begins or ends a session goes on."""
    found = re.search(r' data-to="([^"]*)"', page)
    return html.unescape(found[1]) if found else ""


@dataclass
class Browser:
    """The owner's browser. `place` is the store, whose shell gives codes."""

    base: str
    place: Place | None = None
    address: str = field(default_factory=address)
    session: requests.Session = field(default_factory=requests.Session)
    #: The path of the session, which a browser keeps in its storage.
    path: str = ""

    def __post_init__(self) -> None:
        self.session.headers["X-Forwarded-For"] = self.address

    def sign_in(self, secret: str) -> requests.Response:
        return self.post("/owner/login", {"code": secret, "onward": "/owner"})

    def get(self, path: str, **headers: str) -> requests.Response:
        url = self._url(path)
        return self.session.get(url, headers=headers, allow_redirects=False)

    def post(self, path: str, form: Any, **headers: str) -> requests.Response:
        headers, url = headers or SAME, self._url(path)
        answer = self.session.post(url, form, headers=headers, allow_redirects=False)
        begun = begun_at(answer.text)
        self.path = "" if 'data-act="end"' in answer.text else begun or self.path
        return answer

    def _url(self, path: str) -> str:
        """The address to which `session.js` leads from a plain one."""
        inside = self.path if path.startswith(("/owner", "/read")) else ""
        return self.base + inside + path

    def fill(self, page: str, *streams: str, **more: str) -> list[tuple[str, str]]:
        """The form of a page as sent with the boxes of these streams ticked."""
        sent = [*{**hidden(page), "lifetime": "30", **more}.items()]
        for one in inputs(page):
            value = one.get("value", "")
            if one.get("name") == "field" and "checked" in one:
                sent.append(("field", value))
            if one.get("name") == "stream" and ("checked" in one or value in streams):
                sent.append(("stream", value))
        return sent

    def code(self) -> str:
        """A new code from the shell."""
        assert self.place is not None
        return new_code(self.place)

    def prove(self, path: str) -> requests.Response:
        """The page that follows a proof at the page of a request."""
        return self.post(path, {"code": self.code()})

    def allow(self, path: str, *streams: str, **more: str) -> requests.Response:
        """Proves to be the owner at the page of a request and allows these streams."""
        page = self.prove(path).text
        return self.post(path, self.fill(page, *streams, decision="allow", **more))

    def grant(self, *streams: str, **more: str) -> requests.Response:
        """Sends the form of `/owner` that creates a grant, with a proof."""
        page = self.get("/owner/grant").text
        return self.post("/owner/grant", self.fill(page, *streams, code=self.code(), **more))


@dataclass
class Client:
    """A client that registered itself with one server."""

    base: str
    metadata: dict[str, Any] = field(default_factory=lambda: dict(REGISTRATION))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    id: str = ""
    secret: str = ""
    headers: dict[str, str] = field(default_factory=lambda: {"X-Forwarded-For": address()})

    def register(self) -> "Client":
        answer = requests.post(f"{self.base}/register", json=self.metadata, headers=self.headers)
        assert answer.status_code == 201, answer.text
        self.id, self.secret = answer.json()["client_id"], answer.json().get("client_secret", "")
        return self

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def query(self, **changes: Any) -> dict[str, Any]:
        """The parameters of an authorization request; None leaves one out."""
        sent = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "state": "st&te",
            "resource": f"{self.base}/mcp",
            **changes,
        }
        return {name: value for name, value in sent.items() if value is not None}

    def path(self, **changes: Any) -> str:
        return "/authorize?" + urlencode(self.query(**changes), doseq=True)

    def token(self, code: str, **changes: Any) -> requests.Response:
        return self.post(
            grant_type="authorization_code",
            code=code,
            **{"redirect_uri": REDIRECT, "code_verifier": self.verifier, **changes},
        )

    def refresh(self, token: str, **changes: Any) -> requests.Response:
        return self.post(grant_type="refresh_token", refresh_token=token, **changes)

    def post(self, **form: Any) -> requests.Response:
        sent = {"client_id": self.id, **form}
        kept = {name: value for name, value in sent.items() if value is not None}
        return requests.post(f"{self.base}/token", kept, headers=self.headers)


def onward(response: requests.Response) -> str:
    """The client's URL to which the browser returns, from the last page."""
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]*)"', response.text)
    location = html.unescape(found[1]) if found else response.headers.get("Location", "")
    assert location, response.text
    return location


def answer(response: requests.Response) -> dict[str, str]:
    """The parameters that the browser brings back to the client."""
    query = urlsplit(onward(response)).query
    return {name: values[0] for name, values in parse_qs(query).items()}


def call(base: str, token: str, path: str = "/mcp") -> requests.Response:
    """A search over MCP, or a read over REST, with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    if path != "/mcp":
        return requests.get(base + path, headers=headers)
    params = {"name": "search", "arguments": {"query": "lantern"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return requests.post(f"{base}/mcp", json=message, headers=headers)


def signed_in(browser: Browser, client: Client, *streams: str) -> dict[str, str]:
    """The token answer of a whole sign-in."""
    code = answer(browser.allow(client.path(), *(streams or (MAIL,))))["code"]
    got = client.token(code)
    assert got.status_code == 200, got.text
    found: dict[str, str] = got.json()
    return found


def later(house: House, seconds: int) -> None:
    """Moves all entries of the sidecar into the past."""
    with open_sidecar(house.path).transaction() as rows:
        rows(
            "UPDATE access_entry SET expires_at = expires_at - ?, used_at = used_at - ?"
            " WHERE kind IN ('access', 'refresh', 'code')",
            *(seconds, seconds),
        )


def run_command(house: House, *command: str) -> str:
    """The output of a command about the store."""
    done = CliRunner().invoke(rung, [*command, "--store", spelled(house.path)])
    assert done.exit_code == 0, done.output
    return done.output
