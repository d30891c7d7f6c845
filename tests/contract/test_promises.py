"""What a snapshot promises is the same whether promises are read one by one or together."""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from evidence.question import Term
from service.access.registry import Grant, StreamGrant
from service.records.engine import PassageKey, Scope, Snapshot
from service.records.engine.later import gather, run
from service.records.engine.selections import Cells, Grouped, Selection
from service.records.opening import open_reader
from service.records.view import View, open_view
from tests.helpers import worlds
from tests.helpers.worlds import Connection, House, World

WORDS = "amber basket cobalt dragon meadow quorum velvet harbour".split()
FIELDS = {
    "title": worlds.text("primary-title"),
    "body": worlds.text("primary-text"),
    "size": {"type": "integer"},
    "at": worlds.moment(),
}
#: Words of a body: short values, long ones with passages, and some in chunk rows.
SIZES = (3, 5, 8, 900, 15_000)
ROUNDS = 30


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    random = Random(7)
    query = {
        "search": {"lexical_fields": ["title", "body"]},
        "aggregations": {"sum": ["size"], "group_by": ["title"]},
    }
    letters = worlds.stream("letters", FIELDS, "at", query=query)

    def rows(count: int) -> Iterator[Any]:
        for number in range(count):
            yield worlds.row(
                "letters",
                f"r{number}",
                title=random.choice(WORDS),
                body=" ".join(random.choices(WORDS, k=random.choice(SIZES))),
                size=random.randrange(5),
                at=f"2026-03-0{random.randint(1, 9)}T05:06:07Z",
            )

    connections = [Connection(name, "post", None, (letters,), tuple(rows(20))) for name in "ab"]
    return worlds.build(World(tuple(connections)), tmp_path_factory.mktemp("promises"))


@contextmanager
def opened(house: House) -> Iterator[tuple[Snapshot, View]]:
    streams = [StreamGrant(name, "letters", ("id", *FIELDS)) for name in "ab"]
    with open_reader(house.path).snapshot() as snapshot:
        snapshot.confine("ab")
        yield snapshot, open_view(snapshot, Grant("grt", None, tuple(streams)))


def drawn(random: Random, snapshot: Snapshot, view: View) -> list[Awaitable[Any]]:
    """Promises of a snapshot, and coroutines that read one after the other."""
    scope = view.covered.scope()
    seqs = [n + 1 for n in range(45)]
    return [
        random.choice(PROMISES)(random, snapshot, scope, random.sample(seqs, random.randint(1, 9)))
        for _ in range(random.randint(1, 40))
    ]


def selection(random: Random, scope: Scope) -> Selection:
    return random.choice(scope.selections)


def cells(random: Random, scope: Scope) -> list[Cells]:
    return [Cells(selection(random, scope), random.choice(scope.fields))]


def terms(random: Random) -> list[list[Term]]:
    return [[Term((word,))] for word in random.sample(WORDS, random.randint(1, 2))]


async def folded(snapshot: Snapshot, fields: list[int], seqs: list[int]) -> Any:
    """The texts of values, then those of the first passages of long ones."""
    texts = await snapshot.texts(fields, sorted(seqs))
    places: list[PassageKey] = [(seq, ordinal, 0) for seq, ordinal, count, _ in texts if count]
    return sorted(texts), await snapshot.passages(places)


async def chunks(snapshot: Snapshot, seqs: list[int]) -> Any:
    """Records, and the first chunks of their large values."""
    records = await snapshot.loader(seqs, [])(seqs[:4], [])
    texts = [
        snapshot.text(big, 0, min(1, big.chunks - 1))
        for record in records.values()
        for big in record.big.values()
    ]
    return records, [await text for text in texts]


PROMISES = [
    lambda r, s, scope, seqs: s.count(selection(r, scope)),
    lambda r, s, scope, seqs: s.span(selection(r, scope)),
    lambda r, s, scope, seqs: s.find(selection(r, scope), f"r{r.randrange(25)}"),
    lambda r, s, scope, seqs: s.load(seqs),
    lambda r, s, scope, seqs: s.statistics([selection(r, scope).stream], scope.fields),
    lambda r, s, scope, seqs: s.words_like(scope.fields, [r.choice(WORDS)[:2]]).then(sorted),
    lambda r, s, scope, seqs: s.word_counts(scope.fields, r.sample(WORDS, 2)),
    lambda r, s, scope, seqs: s.rows(scope, terms(r), r.randint(5, 90), newest=True),
    lambda r, s, scope, seqs: s.sizes([(seq, r.choice(scope.fields)) for seq in seqs]).then(sorted),
    lambda r, s, scope, seqs: s.holding(scope, terms(r)[0], seqs).then(lambda rows: rows.records),
    lambda r, s, scope, seqs: s.passages_with(seqs[0], scope.fields[-1], terms(r), None).then(
        sorted
    ),
    lambda r, s, scope, seqs: s.distinct([Grouped(cells(r, scope)[0], 3)]),
    lambda r, s, scope, seqs: s.extreme(cells(r, scope), greatest=r.random() < 0.5),
    lambda r, s, scope, seqs: folded(s, list(scope.fields), seqs),
    lambda r, s, scope, seqs: chunks(s, seqs),
]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_promises_read_together_are_those_read_one_by_one(house: House, seed: int) -> None:
    with opened(house) as (snapshot, view):
        apart = [run(promise) for promise in drawn(Random(seed), snapshot, view)]
    with opened(house) as (snapshot, view):
        assert run(gather(drawn(Random(seed), snapshot, view))) == apart
    with opened(house) as (snapshot, view):
        promises = list(enumerate(drawn(Random(seed), snapshot, view)))
        Random(seed + 1).shuffle(promises)
        values = {number: run(promise) for number, promise in promises}
        assert [values[number] for number in sorted(values)] == apart
