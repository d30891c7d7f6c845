"""A client like PDPP's own, written from its specification alone, reads every feed to its end.

Two servers are behind it: a Rung that relays, and the Rung with the records. The client uses `/v1`,
follows `next_cursor`, and stops where `has_more` is false.
"""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.records.intake import Row
from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.shell import Shell
from tests.helpers.worlds import House, row

STREAM = {"connection_id": "mail-home", "limit": "2"}


@dataclass(frozen=True, slots=True)
class Client:
    """A PDPP client: what it sends and reads."""

    url: str
    token: str

    def get(self, path: str, **params: str) -> dict[str, Any]:
        target = f"{self.url}{path}?{urllib.parse.urlencode(params)}"
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(target, headers=headers)) as answer:
            assert answer.headers["PDPP-Version"] == "2026-04-06"
            body: dict[str, Any] = json.load(answer)
            return body

    def pages(self, path: str, first: dict[str, str], same: dict[str, str]) -> Iterator[Any]:
        """Every page: the first, then those of its cursors, with the same arguments."""
        body, seen = self.get(path, **same, **first), set[str]()
        while True:
            assert body["object"] == "list" and len(body["data"]) <= int(same["limit"])
            yield body
            if not body["has_more"]:
                assert body["links"]["next"] is None
                return
            assert body["next_cursor"] not in seen and body["data"]
            seen.add(body["next_cursor"])
            body = self.get(path, **same, cursor=body["next_cursor"])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("behind"))


@pytest.fixture(scope="module")
def client(house: House) -> Iterator[Client]:
    """A client of the server in front."""
    _, token = house.grant({"connection_id": "mail-home"}, {"connection_id": "mail-work"})
    with serving("wsgi:app", house.environment) as behind:
        with serving("wsgi:app", {"RUNG_UPSTREAM_URL": behind}) as front:
            yield Client(front, token)


def test_a_client_learns_what_there_is(client: Client) -> None:
    (connector,) = client.get("/v1/schema", detail="compact")["connectors"]
    assert connector["connector_key"] == "mail"
    names = [one["connection_id"] for one in connector["granted_connections"]]
    assert names == ["mail-home", "mail-work"]
    assert {one["name"] for one in connector["streams"]} == {"attachments", "messages", "threads"}


def test_a_client_pages_all_records_once(client: Client, house: House) -> None:
    path = "/v1/streams/messages/records"
    records = [one for page in client.pages(path, {}, STREAM) for one in page["data"]]
    keys = [one["id"] for one in records]
    assert sorted(keys) == ["long", "m1", "m2", "m3", "m4", "m5", "m6"]
    for one in records:
        named = {"connection_id": one["connection_id"]}
        alone = client.get(f"{path}/{urllib.parse.quote(one['id'], safe='')}", **named)
        assert alone["data"] == one["data"] and alone["emitted_at"] == one["emitted_at"]


def test_a_client_pages_a_search_to_its_end(client: Client) -> None:
    same = {"q": "lantern", "limit": "3"}
    pages = list(client.pages("/v1/search", {}, same))
    hits = [(one["connection_id"], one["record_key"]) for page in pages for one in page["data"]]
    assert len(pages) > 3 and len(hits) == len(set(hits)) == pages[0]["meta"]["count"]
    assert all(one["evidence_excerpts"] for page in pages for one in page["data"])


def test_a_client_follows_changes_through_edits_and_a_replacement(
    client: Client, house: House, tmp_path: Path
) -> None:
    path = "/v1/streams/threads/records"
    copy: dict[str, Any] = {}

    def follow(since: str) -> tuple[list[str], str]:
        learnt = []
        for page in client.pages(path, {"changes_since": since}, STREAM):
            for one in page["data"]:
                learnt.append(one["id"])
                if one.get("deleted"):
                    copy.pop(one["id"], None)
                else:
                    copy[one["id"]] = one["data"]
            bookmark = page["next_changes_since"]
        return learnt, bookmark

    def there() -> dict[str, Any]:
        pages = client.pages(path, {}, STREAM)
        return {one["id"]: one["data"] for page in pages for one in page["data"]}

    learnt, bookmark = follow("beginning")
    assert len(learnt) == 2 and copy == there()
    house.add("mail-home", *(row("threads", f"t{n}", topic=f"Topic {n}") for n in range(3, 9)))
    house.add("mail-home", Row({}, "t0", stream="threads", deleted=True))
    learnt, bookmark = follow(bookmark)
    assert len(learnt) == 7 and copy == there() and "t0" not in copy

    rows = [{"id": "t1", "topic": "Thread 1 at home"}, {"id": "t3", "topic": "Another"}]
    file = tmp_path / "threads.ndjson"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    shell = Shell({"RUNG_STORE": str(house.path)})
    shell.ok("replace", "mail-home/threads", str(file), "--yes")
    learnt, bookmark = follow(bookmark)
    assert sorted(learnt) == ["t3", "t4", "t5", "t6", "t7", "t8"] and copy == there()
    assert follow(bookmark) == ([], bookmark)
