"""A grant of hundreds of streams is searched as one of a few, whatever limits their records."""

from collections.abc import Callable

import pytest

from service.records.sqlite import search
from tests.helpers import worlds
from tests.helpers.worlds import Api, Connection, House, World

STREAMS = 300
SINCE = "2026-03-01"
#: What a search asks for, and whether a title and a body have it.
QUESTIONS: dict[str, Callable[[str, str], bool]] = {
    '"amber meadow"': lambda title, body: "amber meadow" in f"{title}|{body}",
    "quor*": lambda title, body: "quorum" in f"{title} {body}",
    "title:velvet": lambda title, body: "velvet" in title,
    "harbour cobalt": lambda title, body: "harbour" in body or "cobalt" in body,
}


def rows() -> list[tuple[str, str, str, str, str]]:
    """(stream, key, title, body, day) of the records: every eighth stream has what is sought."""
    made = []
    for number in range(STREAMS):
        sought = number % 8 == 0
        body = "amber meadow quorum harbour" if sought else "gravel meadow amber window"
        for month in ("02", "03"):
            title = f"velvet {month}" if sought else "ribbon"
            day = f"2026-{month}-{1 + number % 28:02}"
            made.append((f"s{number:03}", f"r{month}", title, body, day))
    return made


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> House:
    fields = {"title": worlds.text("primary-title"), "body": worlds.text("primary-text")}
    streams = tuple(
        worlds.stream(
            f"s{number:03}",
            {**fields, "sent": worlds.moment()},
            cursor="sent",
            query={"search": {"lexical_fields": [*fields]}},
        )
        for number in range(STREAMS)
    )
    records = tuple(
        worlds.row(stream, key, title=title, body=body, sent=f"{day}T10:00:00Z")
        for stream, key, title, body, day in rows()
    )
    world = World((Connection("many", "many", None, streams, records),))
    return worlds.build(world, tmp_path_factory.mktemp("many"), RUNG_WORK_SECONDS="1000")


def starts_of(limits: str) -> dict[str, str]:
    """The day at which the grant of each stream begins."""
    if limits == "none":
        return {}
    days = ["2026-02-10"] if limits == "one" else [f"2026-02-{day:02}" for day in range(1, 29)]
    return {f"s{number:03}": days[number % len(days)] for number in range(STREAMS)}


def granted(house: House, starts: dict[str, str]) -> Api:
    limits = {
        stream: {"time_constraint": {"since": f"{day}T00:00:00Z"}} for stream, day in starts.items()
    }
    names = (f"s{number:03}" for number in range(STREAMS))
    return house.api(
        *({"connection_id": "many", "stream": name, **limits.get(name, {})} for name in names)
    )


def ids(api: Api, question: str, since: str) -> list[str]:
    """The ids on all pages of a search."""
    arguments: dict[str, str] = {"query": question, **({"since": since} if since else {})}
    found, more = list[str](), True
    while more:
        content = api.mcp("search", limit=100, **arguments)["structuredContent"]
        assert "error" not in content, (question, since, content)
        found += [hit["id"] for hit in content["results"]]
        more = content["data"]["has_more"]
        arguments["cursor"] = content["data"].get("next_cursor") or ""
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [search.AT_ONCE_MOST, 0], ids=["at once", "by field"])
@pytest.mark.parametrize("limits", ["none", "one", "many"])
def test_many_streams_are_searched_whatever_limits_them(
    many: House, limits: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "AT_ONCE_MOST", at_once)
    starts = starts_of(limits)
    api = granted(many, starts)
    for question, matches in QUESTIONS.items():
        for since in ("", SINCE):
            expected = {
                f"many/{stream}:{key}"
                for stream, key, title, body, day in rows()
                if matches(title, body) and day >= max(since, starts.get(stream, ""))
            }
            assert sorted(ids(api, question, since)) == sorted(expected), (question, since)
