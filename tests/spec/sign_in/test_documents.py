"""Clients whose id is the URL of their metadata: what is fetched, and what never is."""

from typing import Any

import pytest
import requests

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.signin.clients import BYTES, MOST, USUAL
from tests.helpers.asset_server import AssetServer, Mode
from tests.helpers.signin import SAME, Browser, Client, call, new_code, signed_in
from tests.helpers.worlds import House
from tests.spec.sign_in.conftest import JSON, ON, PATH, published

pytestmark = pytest.mark.usefixtures("nothing_kept")


@pytest.fixture
def owner(served: str, house: House) -> Browser:
    found = Browser(served, house.path)
    assert found.sign_in(new_code(house.path)).status_code == 200
    return found


def page(owner: Browser, url: str) -> requests.Response:
    return owner.prove(Client(owner.base, id=url).path())


def refused(owner: Browser, url: str) -> str:
    got = page(owner, url)
    assert got.status_code == 400 and "Location" not in got.headers, got.text
    return got.text


def test_a_client_that_publishes_its_metadata_signs_in_and_refreshes(
    served: str, owner: Browser, publisher: AssetServer
) -> None:
    client = Client(served, id=published(publisher))
    described = requests.get(f"{served}/.well-known/oauth-authorization-server").json()
    assert described["client_id_metadata_document_supported"] is True
    text = page(owner, client.id).text
    assert '<strong class="host">127.0.0.1</strong>' in text and "unverified" not in text
    assert "program on this computer" in text
    tokens = signed_in(owner, client)
    assert call(served, tokens["access_token"]).status_code == 200
    publisher.mode = "500"
    renewed = client.refresh(tokens["refresh_token"])
    assert call(served, renewed.json()["access_token"]).status_code == 200
    assert publisher.paths == [PATH], "it is fetched once"
    assert "127.0.0.1)" in owner.get("/owner").text


def test_nothing_is_fetched_for_a_stranger(served: str, publisher: AssetServer) -> None:
    client = Client(served, id=published(publisher))
    stranger = Browser(served)
    for asked in (stranger.get(client.path()), stranger.post(client.path(), {"code": "x"})):
        assert "Confirm that you are the owner" in asked.text
    assert client.token("rung_code_x").json()["error"] == "invalid_grant"
    form = {"client_id": client.id, "token": "x"}
    assert requests.post(f"{served}/revoke", form).status_code == 200
    assert publisher.paths == []


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "https://claude.ai/client.json"},
        {"client_id": None},
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["https://elsewhere.example/callback"]},
        {"client_secret": "x"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
        {"filler": "x" * BYTES},
    ],
)
def test_a_document_that_cannot_be_used_is_refused(
    owner: Browser, publisher: AssetServer, change: dict[str, Any]
) -> None:
    refused(owner, published(publisher, **change))


def test_a_client_that_offers_no_secret_among_others_is_accepted(
    owner: Browser, publisher: AssetServer
) -> None:
    methods = ["none", "private_key_jwt"]
    url = published(publisher, token_endpoint_auth_methods_supported=methods)
    assert page(owner, url).status_code == 200


@pytest.mark.parametrize(
    "mode",
    [
        *("404", "500", "html", "stall", "drip_head", "drip_body", "reset", "wrong_length"),
        *("redirect_other", "redirect_loop", "gzip", "gzip_bomb", "huge", "chunked_huge"),
    ],
)
def test_a_site_that_misbehaves_is_refused_in_time(
    owner: Browser, publisher: AssetServer, mode: Mode
) -> None:
    url = published(publisher)
    publisher.mode = mode
    refused(owner, url)
    assert len(publisher.paths) <= 1, "no redirect is followed"
    publisher.mode = "good"
    assert page(owner, url).status_code == 200, "failures are not kept"


@pytest.mark.parametrize("body", [b"[]", b"null", b"\xff", b"{", b"x" * 100])
def test_a_document_that_is_no_json_object_is_refused(
    owner: Browser, publisher: AssetServer, body: bytes
) -> None:
    url = published(publisher)
    publisher.files = {PATH: body}
    refused(owner, url)


@pytest.mark.parametrize("header", ["Content-Type: text/html", "Content-Type: text/json", "X: 1"])
def test_a_document_of_another_type_is_refused(
    owner: Browser, publisher: AssetServer, header: str
) -> None:
    url = published(publisher)
    publisher.header = header
    refused(owner, url)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("max-age=600", 600), ("no-store", USUAL), ("max-age=0", 60), ("max-age=99999999", MOST)],
)
def test_a_document_is_kept_as_long_as_its_headers_say_within_bounds(
    house: House, owner: Browser, publisher: AssetServer, header: str, seconds: int
) -> None:
    url = published(publisher)
    publisher.header = f"{JSON}\r\nCache-Control: {header}"
    assert page(owner, url).status_code == 200
    with open_sidecar(house.path).transaction() as rows:
        now = Entries(open_sidecar(house.path))
        ((ends,),) = rows("SELECT expires_at FROM access_entry WHERE kind = 'document'")
    with now.reading() as kept:
        assert seconds - 60 < ends - kept.now <= seconds


@pytest.mark.parametrize(
    "rest",
    ["", "/a/../b.json", "/./a.json", "/%2e%2e/a.json", "/a.json#x", "/a b.json", "/\u00e9.json"],
)
def test_a_url_that_no_document_can_have_is_never_fetched(
    owner: Browser, publisher: AssetServer, rest: str
) -> None:
    published(publisher)
    before = len(publisher.connections)
    refused(owner, publisher.url + rest)
    refused(owner, publisher.url.replace("//", "//user@") + PATH)
    path = Client(owner.base, id=publisher.url + rest).path()
    assert Browser(owner.base).get(path).status_code == 400
    assert len(publisher.connections) == before


def test_a_stranger_does_not_learn_which_documents_are_kept(
    served: str, owner: Browser, publisher: AssetServer
) -> None:
    client = Client(served, id=published(publisher))
    assert page(owner, client.id).status_code == 200
    elsewhere = client.path(redirect_uri="https://elsewhere.example/callback")
    assert Browser(served).get(elsewhere).status_code == 200
    assert owner.prove(elsewhere).status_code == 400


def test_so_many_documents_are_fetched_a_minute(owner: Browser, publisher: AssetServer) -> None:
    url = published(publisher)
    statuses = {page(owner, f"{url}?{number}").status_code for number in range(25)}
    assert statuses == {400, 429}


def test_with_tls_no_document_names_the_host_of_rung(
    house: House, publisher: AssetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", publisher.other)
    base, own = "https://localhost:9443", "https://LOCALHOST:8443/callback"
    secure = {"RUNG_PUBLIC_URL": base, "RUNG_CLIENT_DOCUMENTS": "loopback"}
    visitor = house.application(**ON, **secure).test_client()

    def asked(*uris: str) -> Any:
        path = Client(base, id=published(publisher, redirect_uris=uris)).path(redirect_uri=uris[0])
        return visitor.post(path, data={"code": new_code(house.path)}, headers=SAME, base_url=base)

    elsewhere = "https://app.example.com/callback"
    got = asked(elsewhere, own)
    assert got.status_code == 400 and "must not be on the host of this server" in got.text
    assert publisher.paths == [PATH], "the document was read"
    got = asked(own, elsewhere)
    assert got.status_code == 400 and publisher.paths == [], "nothing is fetched"
    assert asked(elsewhere).status_code == 200


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "[::ffff:127.0.0.1]"]
)
def test_a_public_server_never_fetches_from_its_own_network(house: House, host: str) -> None:
    more = {**ON, "RUNG_PUBLIC_URL": "https://rung.example.com"}
    visitor = house.application(**more).test_client()
    path = Client("https://rung.example.com", id=f"https://{host}{PATH}").path()
    code = {"code": new_code(house.path)}
    got = visitor.post(path, data=code, base_url="https://rung.example.com")
    assert got.status_code == 400 and "cannot be used" in got.text


def test_documents_are_off_without_a_public_url_and_never_local_with_one(house: House) -> None:
    described = "/.well-known/oauth-authorization-server"
    told = "client_id_metadata_document_supported"
    public = {"RUNG_SIGN_IN": "on", "RUNG_PUBLIC_URL": "https://rung.example.com"}
    off = {"RUNG_CLIENT_DOCUMENTS": "off"}
    for more, supported in (({"RUNG_SIGN_IN": "on"}, False), (public, True), (public | off, False)):
        visitor = house.application(**more).test_client()
        assert (told in visitor.get(described).get_json()) is supported
    with pytest.raises(ValueError, match="RUNG_CLIENT_DOCUMENTS=loopback"):
        house.application(**public, RUNG_CLIENT_DOCUMENTS="loopback")
