"""Searches of a grant of 500 streams compared with one of 25, with and without time limits."""

import random
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.findings import Finding, Line, Note
from bench.plan import Plan
from bench.scale import timed
from bench.servers import UNCACHED
from service import bootstrap, settings
from service.ports import SearchQuery
from tests.helpers import worlds
from tests.helpers.worlds import Connection, House, World

FEW, MANY, RECORDS = 25, 500, 20
#: A phrase, a prefix, a word of titles, and plain words.
QUESTIONS = ('"invoice paid by"', "invo*", "title:payments", "invoice lantern")
WORDS = [
    f"{start}{middle}{end}"
    for start in ("invo", "lan", "pay", "gar")
    for middle in ("ice", "tern", "ment", "den")
    for end in ("", "s", "ed")
]
SINCE = "2026-03-01"
LIMITS = ({}, {"time_constraint": {"since": "2026-02-01T00:00:00Z"}})


def measure(plan: Plan) -> Iterator[Line]:
    with TemporaryDirectory() as few, TemporaryDirectory() as many:
        searches = [_searches(_built(Path(few), FEW)), _searches(_built(Path(many), MANY))]
        ratios, slowest = list[float](), 0.0
        for kind in searches[0]:
            of_few, of_many = (
                min((timed(each[kind]) for _ in range(plan.rounds)), key=lambda cost: cost[1])
                for each in searches
            )
            ratios.append(of_many[1] / of_few[1])
            slowest = max(slowest, of_many[1])
    yield Finding("streams-cpu", (max(ratios),))
    yield Note(f"the slowest search of {MANY} streams", f"{slowest:.0f} ms of CPU")


def _built(folder: Path, count: int) -> House:
    """A store of so many streams, with the same words everywhere."""
    chance = random.Random(5)
    fields = {"title": worlds.text("primary-title"), "body": worlds.text("primary-text")}
    query = {"search": {"lexical_fields": [*fields]}}
    streams, rows = [], []
    for number in range(count):
        name = f"s{number:03}"
        timed_fields = {**fields, "sent": worlds.moment()}
        streams.append(worlds.stream(name, timed_fields, cursor="sent", query=query))
        for key in range(RECORDS):
            body = " ".join(chance.choices(WORDS, k=30))
            body += " the invoice paid by lantern light" if key % 5 == 0 else ""
            title = " ".join(chance.choices(WORDS, k=4))
            sent = f"2026-{1 + key % 12:02}-{1 + number % 28:02}T10:00:00Z"
            rows.append(worlds.row(name, f"r{key}", title=title, body=body, sent=sent))
    world = World((Connection("many", "many", None, tuple(streams), tuple(rows)),))
    return worlds.build(world, folder, **UNCACHED)


def _searches(house: House) -> dict[object, Callable[[], object]]:
    """Each question, with and without a time, of a whole and of a time-limited grant."""
    found = dict[object, Callable[[], object]]()
    services = bootstrap.build(settings.load(house.environment))
    for number, limit in enumerate(LIMITS):
        _, token = house.grant({"connection_id": "many", **limit})
        for question, since in product(QUESTIONS, (None, SINCE)):
            query = SearchQuery(question, since=since)

            def search(token: str = token, query: SearchQuery = query) -> object:
                return services.open_session(token).rs.search(query)

            found[question, since, number] = search
    return found
