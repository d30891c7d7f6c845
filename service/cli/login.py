"""`rung login` and `rung logout`: OAuth sign-in with a callback on this machine, and sign-out."""

import base64
import hashlib
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import click
import orjson

from evidence.errors import EvidenceError, InvalidRequest, Unauthenticated, Unavailable
from service import credentials
from service.addresses import is_loopback, rung_url
from evidence.values import AUTHORIZATION_SERVER
from service.cli import tokens
from service.cli.opening import refuse_owners
from service.cli.output import on_terminal, say
from service.cli.store import teaching
from service.clients.writing import alone
from service.ports import Late, Unreached

ENDPOINTS = ("authorization", "token", "registration")
#: As long as a consent page is valid.
WAIT_SECONDS = 600


class Callback(ThreadingHTTPServer):
    """Waits on a random port until the browser returns with `state`."""

    daemon_threads = True

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.state, self.queries = state, Queue[dict[str, str]]()
        self.uri = f"http://127.0.0.1:{self.server_port}/callback"
        Thread(target=self.serve_forever, daemon=True).start()

    def answer(self) -> dict[str, str]:
        """The parameters of the answer."""
        try:
            return self.queries.get(timeout=WAIT_SECONDS)
        except Empty:
            raise Unauthenticated("Access was not approved within 10 minutes.") from None


class _Page(BaseHTTPRequestHandler):
    server: Callback

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        state = query.get("state", "").encode()
        valid = url.path == "/callback" and secrets.compare_digest(
            state, self.server.state.encode()
        )
        self.send_response(200 if valid else 400)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(b"Return to the terminal." if valid else b"This is not an answer to rung.")
        if valid:
            self.server.queries.put(query)

    def log_message(self, *_: object) -> None:
        """Logs nothing: the URL contains the code."""


@click.command()
@click.argument("url", envvar="RUNG_URL")
def login(url: str) -> None:
    """Sign in to a Rung server, so that --url and `rung stdio --provider-url` need no other token.

    URL is the address of the server, which must have RUNG_SIGN_IN=on. Your browser opens a page on
    this server where the owner chooses what you may read. Rung saves the tokens in the folder
    that PDPP_CACHE_ROOT names, by default the folder rung in XDG_DATA_HOME or in ~/.local/share,
    and refreshes the tokens when they expire.
    """
    with teaching():
        refuse_owners()
        base = rung_url(url)
        try:
            server = _metadata(base, *ENDPOINTS)
            if "S256" not in server.get("code_challenge_methods_supported", ()):
                raise InvalidRequest(f"{base} does not support PKCE with S256.")
            _sign_in(base, server)
        except (Unreached, Late) as error:
            error.message = f"{base} {error.why}. Run `rung doctor {base}` for details."
            raise
    say(f"Signed in. Try: rung schema --url {base}")


@click.command()
@click.argument("url", envvar="RUNG_URL")
def logout(url: str) -> None:
    """Sign out of a Rung server: revoke the tokens of `rung login` and delete them.

    The tokens are deleted even if the server cannot revoke them. The owner of the server can then
    revoke your access at /owner.
    """
    with teaching():
        base = rung_url(url)
        path = credentials.cache_file(tokens.root(base), base)
        with alone():
            document = tokens.read(path)
            if document.get("provider_url") != base or "client_id" not in document:
                raise InvalidRequest(f"{path} contains no tokens from `rung login {base}`.")
            path.unlink()
        form = {
            "token": document["credential"]["refresh_token"],
            "token_type_hint": "refresh_token",
            "client_id": document["client_id"],
        }
        try:  # to revoke all tokens of the sign-in (RFC 7009)
            tokens.ask("POST", _metadata(base, "revocation")["revocation_endpoint"], data=form)
        except EvidenceError as error:
            why = f"{base} {error.why}." if isinstance(error, (Unreached, Late)) else error.message
            raise Unavailable(
                f"The tokens were deleted on this machine, but they were not revoked. {why}",
                hint="The owner can revoke your access on the /owner page.",
            ) from error
    say(f"Signed out of {base}.")


def _metadata(base: str, *endpoints: str) -> dict[str, Any]:
    """The metadata of the server, which must be for this address and have these `endpoints`."""
    if base.startswith("http:") and not is_loopback(base):
        raise InvalidRequest("Sign-in requires https: with http, anyone could read the tokens.")
    try:
        metadata = tokens.ask("GET", base + AUTHORIZATION_SERVER)
    except Unauthenticated:
        raise InvalidRequest(
            f"{base} does not offer sign-in.",
            hint="Its owner can enable sign-in with RUNG_SIGN_IN=on, or give you a token.",
        ) from None
    if (issuer := metadata.get("issuer")) != base:
        advice = (
            f"Use the server's own URL: {issuer}"
            if issuer
            else "Ask the server's operator for the right URL."
        )
        raise InvalidRequest(f"The sign-in metadata of {base} is for another URL. {advice}")
    for name in endpoints:
        if not str(metadata.get(f"{name}_endpoint")).startswith(f"{base}/"):
            raise InvalidRequest(f"The metadata of {base} lists no {name} endpoint on that server.")
    return metadata


def _sign_in(base: str, server: dict[str, Any]) -> None:
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    with Callback(state) as callback:
        registration = {
            "client_name": "rung login",
            "redirect_uris": [callback.uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        }
        client = tokens.ask(
            "POST",
            server["registration_endpoint"],
            data=orjson.dumps(registration),
            headers={"Content-Type": "application/json"},
        )
        own = {"client_id": client.get("client_id", ""), "redirect_uri": callback.uri}
        own["resource"] = f"{base}/v1"
        query = {
            **own,
            "response_type": "code",
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        address = f"{server['authorization_endpoint']}?{urlencode(query)}"
        say(f"Open this page and allow access:\n{address}")
        if on_terminal():
            click.launch(address)
        answer = callback.answer()
        callback.shutdown()
    if answer.get("iss") != base:
        raise Unauthenticated("The answer came from another server. Nothing was saved.")
    if "code" not in answer:
        raise Unauthenticated("Access was denied on the sign-in page. Nothing was saved.")
    form = {"grant_type": "authorization_code", "code": answer["code"], "code_verifier": verifier}
    got = tokens.ask("POST", server["token_endpoint"], data={**form, **own})
    document = {"provider_url": base, "client_id": own["client_id"]}
    document["token_endpoint"] = server["token_endpoint"]
    with alone():
        tokens.keep(credentials.cache_file(tokens.root(), base), document, got)
