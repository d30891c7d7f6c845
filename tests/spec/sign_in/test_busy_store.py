"""Forms of the owner while an import has the store: they give up in time, and nothing is lost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import pytest

from evidence.errors import Unavailable
from service.access import grants
from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.registry import Registry
from service.records.opening import open_writer
from service.signin import owner_site
from tests.helpers.places import ENGINE
from tests.helpers.signin import MAIL, Browser, Client, answer, call, hidden, inputs, run_command
from tests.helpers.worlds import House


@contextmanager
def being_written(house: House) -> Iterator[None]:
    """The store while somebody else commits."""
    with open_writer(house.path) as writer, writer.transaction():
        if ENGINE != "sqlite":
            cast(Any, writer).rows_of("SELECT * FROM counter FOR UPDATE")
        yield


def form_again(page: str) -> list[tuple[str, str]]:
    """The form of a page as it is, sent by its first button."""
    sent = [*hidden(page).items()]
    for one in inputs(page):
        if one.get("type") in ("checkbox", "radio"):
            sent += [(one["name"], one["value"])] * ("checked" in one)
        elif one.get("type") in ("date", None) and one.get("name"):
            sent.append((one["name"], one.get("value", "")))
    first = [pair for pair in sent if pair[0] in ("decision", "grant")][:1]
    return [pair for pair in sent if pair[0] not in ("decision", "grant")] + first


def test_a_busy_store_is_503_with_the_form_to_send_again(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    made = browser.grant(MAIL, label="Old")
    old = made.text.partition('<code id="token">')[2].partition("<")[0]
    overview = browser.get("/owner").text
    revoked = next(
        one["value"] for one in inputs(overview) if one.get("aria-label") == "Revoke Old"
    )
    page = browser.prove(client.path()).text
    consent = browser.fill(page, MAIL, decision="allow", since="2026-03-05")
    consent.append(("field", '["mail-work","messages","received_at"]'))
    forms: dict[str, Any] = {
        client.path(): consent,
        "/owner/grant": browser.fill(
            browser.get("/owner/grant").text, MAIL, label="New", code=browser.code()
        ),
        "/owner/revoke": {**hidden(overview), "grant": revoked},
    }
    with being_written(house), ThreadPoolExecutor(len(forms)) as pool:
        waiting = pool.map(lambda sent: browser.post(*sent), forms.items())
        with pytest.raises(Unavailable) as error, open_writer(house.path, lock_seconds=1) as other:
            grants.revoke(Registry(other), "grt_x")
        assert error.value.code == "store_unavailable"
        refused = list(waiting)
    for got in refused:
        assert got.status_code == 503 and int(got.headers["Retry-After"]) > 0
        assert "another process" in got.text.lower()
        assert ENGINE != "sqlite" or f"for {owner_site.LOCK_SECONDS} seconds" in got.text
    assert call(base, old).status_code == 200

    allowed = browser.post(client.path(), form_again(refused[0].text))
    token = client.token(answer(allowed)["code"]).json()["access_token"]
    rows = call(base, token, "/v1/streams/messages/records?limit=100").json()["data"]
    assert rows and all(row["data"]["received_at"] >= "2026-03-05" for row in rows)
    assert not [row for row in rows if "body" in row["data"]]
    created = browser.post("/owner/grant", form_again(refused[1].text))
    assert created.status_code == 200 and "Revoke New" in browser.get("/owner").text
    again = {**hidden(refused[2].text), "grant": revoked}
    assert browser.post("/owner/revoke", again).status_code == 200
    assert call(base, old).status_code == 401


@pytest.mark.skipif(ENGINE != "sqlite", reason="only a file has one writer at a time")
def test_no_grant_is_left_if_its_code_cannot_be_stored(
    house: House, browser: Browser, client: Client
) -> None:
    before = run_command(house, "grant", "list")
    entries = Entries(open_sidecar(house.path))
    form = browser.fill(browser.prove(client.path()).text, MAIL, decision="allow")

    def form_is_used() -> bool:
        with entries.reading() as kept:
            entry = kept.get("form", dict(form)["form"])
        return entry is not None and entry.uses == 1

    with ThreadPoolExecutor(1) as pool:
        with being_written(house):
            waiting = pool.submit(browser.post, client.path(), form)
            while not form_is_used():
                assert not waiting.done()
            other_writer = ExitStack()
            other_writer.enter_context(entries.changing())
        with other_writer:
            refused = waiting.result()
    assert refused.status_code == 503
    assert run_command(house, "grant", "list") == before
