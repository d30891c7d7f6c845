"""A feed of changes, followed page by page on every surface, reaches its end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from tests.helpers.api import Api
from tests.helpers.archive import asked_for
from tests.helpers.caller import Answer, over_http
from tests.helpers.two_owners import THERE, two
from tests.helpers.loopback import Asked, Loopback, Reply, answering, as_json
from tests.helpers.reading import Call, printed_calls, structured_calls
from tests.helpers.server import serving
from tests.helpers.shell import Shell, printed
from tests.helpers.worlds import SECRET

CHANGES, LIMIT = THERE, 2
PAGES = 3
MANY = 20
SCHEMA = {
    "bearer": {"token_kind": "client"},
    "connectors": [
        {
            "connector_key": "post",
            "granted_connections": [{"connection_id": "abroad"}],
            "streams": [{"name": "letters", "primary_key": ["id"]}],
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Feed:
    """A place where a feed of five changes is read."""

    url: str
    token: str
    connection: str
    size: int = CHANGES

    @property
    def asked(self) -> dict[str, Any]:
        return {
            "stream": "letters",
            "connection_id": self.connection,
            "limit": LIMIT,
            "changes_since": "beginning",
        }

    @property
    def target(self) -> str:
        where = f"connection_id={self.connection}&limit={LIMIT}"
        return f"/v1/streams/letters/records?{where}&changes_since=beginning"

    @property
    def words(self) -> list[str]:
        where = ["--connection-id", self.connection, "--limit", str(LIMIT)]
        return ["query", "letters", *where, "--changes-since", "beginning"]


def page(start: int, *, stop: int | None = None) -> dict[str, Any]:
    """A page of changes. `stop` is where its cursor leads, by default the end of the page."""
    end = min(CHANGES, start + LIMIT)
    body: dict[str, Any] = {
        "object": "list",
        "data": [
            {"id": f"abroad-{n}", "stream": "letters", "connection_id": "abroad", "data": {"n": n}}
            for n in range(start, end)
        ],
        "has_more": end < CHANGES,
        "next_changes_since": "of now",
    }
    return body | {"next_cursor": f"at {end if stop is None else stop}"} if end < CHANGES else body


def strict(asked: Asked) -> Reply:
    """A PDPP server that restarts the feed if a bookmark comes with the cursor."""
    if asked.target.startswith("/v1/schema"):
        return as_json(SCHEMA)
    bookmark, cursor = asked_for(asked, "changes_since"), asked_for(asked, "cursor")
    return as_json(page(0 if bookmark or not cursor else int(cursor.removeprefix("at "))))


def stuck(asked: Asked) -> Reply:
    """A server whose second page leads to itself."""
    if asked.target.startswith("/v1/schema"):
        return as_json(SCHEMA)
    return as_json(page(LIMIT, stop=LIMIT) if asked_for(asked, "cursor") else page(0))


@pytest.fixture(scope="module")
def source() -> Iterator[Loopback]:
    with answering(strict) as server:
        yield server


@pytest.fixture(scope="module")
def feeds(source: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Feed]]:
    remote = {"RUNG_UPSTREAM_URL": source.url, "RUNG_SECRET_KEY": SECRET}
    with two(tmp_path_factory.mktemp("pair")) as pair:
        package, here = pair.package(), pair.here.environment
        _, token = pair.there.grant()
        with serving("wsgi:app", here) as front, serving("wsgi:app", remote) as before:
            yield {
                "store": Feed(pair.url, token, "abroad"),
                "package": Feed(front, package.token, "abroad"),
                "remote": Feed(before, "at_client", "abroad"),
                "direct": Feed(source.url, "at_client", "abroad"),
            }


KINDS = ("store", "package", "remote")
ONWARD: dict[str, Callable[[Answer], list[Call]]] = {
    "text": lambda answer: printed_calls(answer.text),
    "structured": lambda answer: structured_calls(answer.structured),
}
EXPECTED = {f"abroad-{number}" for number in range(CHANGES)}


@pytest.mark.parametrize("channel", ONWARD)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_follows_the_calls_meets_every_change_once(
    feeds: dict[str, Feed], kind: str, channel: str
) -> None:
    feed, met = feeds[kind], list[str]()
    caller, args = over_http(feed.url, feed.token), feed.asked
    for _ in range(MANY):
        answer = caller.ok("query_records", **args)
        met += [row["id"] for row in answer.structured["data"]["data"]]
        onward = [call for call in ONWARD[channel](answer) if call.why == "next_page"]
        if not onward:
            break
        args = onward[0].args
        assert "cursor" in args and "changes_since" not in args
    assert len(met) == CHANGES and set(met) == EXPECTED


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_that_follows_links_does_too(feeds: dict[str, Feed], kind: str) -> None:
    feed, met = feeds[kind], list[str]()
    api, target = Api(feed.url, feed.token), feed.target
    for _ in range(MANY):
        answer = api.get(target)
        assert answer.status == 200, answer
        met += [row["id"] for row in answer.body["data"]]
        following = answer.body["links"]["next"]
        assert bool(following) == answer.body["has_more"]
        if not following:
            break
        assert "changes_since" not in parse_qs(urlsplit(following).query)
        target = following
    assert len(met) == CHANGES and set(met) == EXPECTED


@pytest.mark.parametrize("kind", [*KINDS, "direct"])
def test_so_does_somebody_at_a_shell(feeds: dict[str, Feed], kind: str, tmp_path: Path) -> None:
    feed, met, links = feeds[kind], "", list[str]()
    shell = Shell({"RUNG_URL": feed.url, "RUNG_TOKEN": feed.token}, tmp_path)
    result, body = shell.ok(*feed.words), shell.ok(*feed.words, "--json")
    for _ in range(MANY):
        met += result.stdout
        links.append(orjson.loads(body.stdout)["links"]["next"])
        onward = printed(result.stdout, "next_page")
        if not onward:
            break
        assert "--cursor" in onward[0] and "--changes-since" not in onward[0]
        result, body = shell.line(onward[0]), shell.line(f"{onward[0]} --json")
        assert result.exit_code == body.exit_code == 0, result.output
    assert [met.count(f"letters:{key} ") for key in sorted(EXPECTED)] == [1] * CHANGES
    assert len(links) == PAGES and links[-1] is None
    assert not any("changes_since" in link for link in links[:-1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_bookmark_that_comes_beside_a_cursor_does_not_begin_the_feed_anew(
    feeds: dict[str, Feed], kind: str
) -> None:
    feed = feeds[kind]
    caller = over_http(feed.url, feed.token)
    cursor = caller.ok("query_records", **feed.asked).structured["data"]["next_cursor"]
    both = caller.ok("query_records", **feed.asked, cursor=cursor).structured["data"]["data"]
    alone = {**feed.asked, "cursor": cursor}
    del alone["changes_since"]
    assert both == caller.ok("query_records", **alone).structured["data"]["data"]


def test_the_cursor_goes_to_the_source_alone(feeds: dict[str, Feed], source: Loopback) -> None:
    feed = feeds["remote"]
    before = len(source.asked)
    answer = Api(feed.url, feed.token).get(f"{feed.target}&cursor=at%202")
    assert answer.status == 200
    (asked,) = (one for one in source.asked[before:] if "/records" in one.target)
    assert asked_for(asked, "cursor") == "at 2" and asked_for(asked, "changes_since") is None


def test_a_page_that_repeats_ends_the_walk_with_an_error(
    feeds: dict[str, Feed], source: Loopback, tmp_path: Path
) -> None:
    feed = feeds["remote"]
    source.answer = stuck
    try:
        api, caller = Api(feed.url, feed.token), over_http(feed.url, feed.token)
        following = api.get(feed.target).body["links"]["next"]
        over = api.get(following)
        assert (over.status, over.error["code"]) == (503, "upstream_invalid_response")
        first = caller.ok("query_records", **feed.asked)
        call = next(one for one in printed_calls(first.text) if one.why == "next_page")
        told = caller.fails(call.tool, **call.args)
        assert told.error["code"] == "upstream_invalid_response"
        assert "same page again" in told.error["message"]
        shell = Shell({"RUNG_URL": source.url, "RUNG_TOKEN": "at_client"}, tmp_path)
        result = shell.line(printed(shell.ok(*feed.words).stdout, "next_page")[0])
        assert result.exit_code != 0 and "same page again" in result.stderr
        out = tmp_path / "out"
        result = shell.run("export", "stream", "letters", "-o", str(out))
        assert result.exit_code == 1 and "same page again" in result.stderr, result.output
        assert not out.exists()
    finally:
        source.answer = strict
