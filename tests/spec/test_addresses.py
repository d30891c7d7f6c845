"""Ids that are addresses of this server: understood without a connection, secrets left out."""

import logging
import socket
from urllib.parse import quote

import pytest

from evidence.handles import RecordRef
from service.pages import session_path
from tests.helpers import worlds
from tests.helpers.caller import Local
from tests.helpers.worlds import Connection, World

ODD = "a/b é%2F"
ID = str(RecordRef("notes", ODD, "one"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    fields = {"title": worlds.text("primary-title"), "text": worlds.text("primary-text")}
    stream = worlds.stream("notes", fields, query={"search": {"lexical_fields": ["text"]}})
    rows = (worlds.row("notes", ODD, title="Elm", text="beneath the elm"),)
    connections = [Connection(name, "notes", name, (stream,), rows) for name in ("one", "two")]
    return worlds.build(World(tuple(connections)), tmp_path_factory.mktemp("addresses"))


@pytest.mark.parametrize("public", [True, False])
def test_the_address_of_a_page_or_a_record_is_an_id_and_is_never_requested(
    house: worlds.House, public: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = session_path.new()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        base = f"http://127.0.0.1:{port}"
        environ = {"RUNG_PUBLIC_URL": base} if public else {"PORT": str(port)}
        caller = Local(house.application(**environ), house.grant()[1])
        page = f"/read/{quote(ID, safe='/:')}"
        addresses = [
            *(f"{base}{page}", f"{base}{secret}{page}?q=elm&offset=5#match"),
            f"HTTP://127.0.0.1:{port}{RecordRef('notes', ODD, 'one').url}",
            f"http://localhost:{port}{page}",
        ]
        for address in addresses:
            assert caller.ok("fetch", id=address).structured["id"] == ID, address
            window = caller.ok("read_record_field", id=address, field_path="text")
            assert window.structured["window"]["text"] == "beneath the elm"
        assert (
            caller.fails("fetch", id=f"{base}{secret}/read/papers").error["code"]
            == "invalid_request"
        )
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert secret not in caplog.text and secret[3:] not in caplog.text


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/read/one/notes:x",
        "https://rung.example.com.evil.example/read/one/notes:x",
        "https://rung.example.com@evil.example/read/one/notes:x",
        "http://rung.example.com/read/one/notes:x",
        "https://rung.example.com:8443/read/one/notes:x",
        "https://rung.example.com:x/read/one/notes:x",
        "https://rung.example.com/owner",
        "https://rung.example.com",
        "https://[::1/read/one/notes:x",
    ],
)
def test_another_address_is_refused(house: worlds.House, address: str) -> None:
    caller = Local(house.application(RUNG_PUBLIC_URL="https://rung.example.com"), house.grant()[1])
    assert caller.fails("fetch", id=address).error["code"] == "invalid_request"


def test_a_secret_path_is_in_no_answer(house: worlds.House) -> None:
    caller = Local(house.application(RUNG_PUBLIC_URL="https://rung.example.com"), house.grant()[1])
    secret = session_path.new()
    shared = quote(str(RecordRef("notes", ODD)), safe="/:")
    for id in (
        f"https://rung.example.com{secret}/read/{shared}",
        f"https://rung.example.com{secret}/read/nothing",
        f"https://rung.example.com{secret}/read/one/notes:nothing",
        f"https://rung.example.com{secret}",
        f"https://evil.example{secret}/read/one/notes:x",
    ):
        for tool, more in (("fetch", {}), ("read_record_field", {"field_path": "text"})):
            refused = caller.fails(tool, id=id, **more)
            assert secret not in refused.text + str(refused.structured)
    ambiguous = caller.fails("fetch", id=f"https://rung.example.com{secret}/read/{shared}")
    assert ambiguous.error["code"] == "ambiguous_connection"
