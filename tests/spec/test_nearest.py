"""The scan of codes finds what an exact scan finds: the nearest codes of a scope, and ties."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import shake_128
from threading import Event
from typing import Any

import numpy
import pytest

from evidence.work import Deadline
from service.meaning.building import build as build_vectors
from service.meaning.encoder import PROBES
from service.records.engine import Scope, Snapshot
from service.records.engine.vectors import VectorRow
from service.records.search import nearest
from service.records.search.meaning import SAMPLED
from service.records.search.nearest import Nearness, NearText
from tests.helpers.stores import BODY, TIME, WORD, Connection, House, Stream, build
from tests.helpers.trigrams import DIMENSIONS, Trigrams

RECORDS = 5_000
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def embed(text: str) -> bytes:
    return shake_128(text.encode()).digest(DIMENSIONS)


class Spread(Trigrams):
    """Vectors in all directions. Texts of the same kind have the same one."""

    def passage(self, text: str) -> bytes:
        return embed(text)


def day(number: int) -> str:
    return (FIRST_DAY + timedelta(hours=number)).isoformat()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    fields = {"id": WORD, "at": TIME, "title": {**WORD, "x_pdpp_role": "primary-title"}}
    streams = [
        Stream(
            name,
            {**fields, "body": BODY},
            [
                {"id": f"{n:05}", "at": day(n), "title": f"{name} {n % kinds}", "body": f"own {n}"}
                for n in range(size)
            ],
            ["title", "body"],
            "at",
        )
        for name, kinds, size in (("many", 7 * RECORDS, RECORDS), ("alike", 4, RECORDS))
    ]
    house = build([Connection("c", streams, "key")], tmp_path_factory.mktemp("nearest"))
    build_vectors(house.path, Spread(), Event(), on_commit=lambda progress: None)
    house.change(
        "DELETE FROM vector WHERE seq IN (SELECT seq FROM record WHERE record_key LIKE ?)", "%13"
    )
    yield house


QUESTION = embed("a question")
HALF = {"time_constraint": {"since": day(RECORDS // 2)}}
FEW = {"resources": [f"{n:05}" for n in range(0, 90, 3)]}
SCOPES: dict[str, list[dict[str, Any]]] = {
    "everything": [{"stream": "many"}, {"stream": "alike"}],
    "one field": [{"stream": "many", "fields": ["id", "title"]}],
    "hidden titles": [{"stream": "many", "fields": ["id", "body"]}, {"stream": "alike", **FEW}],
    "half of the time": [{"stream": "many", **HALF}, {"stream": "alike"}],
    "a few records": [{"stream": "many", **FEW}],
    "many ties": [{"stream": "alike", "fields": ["id", "title", "at"], **HALF}],
}


@pytest.mark.parametrize("listed_most", [20_000, 100], ids=["narrow", "broad"])
@pytest.mark.parametrize("name", SCOPES)
def test_a_scan_equals_an_exact_one(
    house: House, monkeypatch: pytest.MonkeyPatch, name: str, listed_most: int
) -> None:
    """With broad limits, records are tested in parts, which hidden records fill as well."""
    monkeypatch.setattr(nearest, "LISTED_MOST", listed_most)
    monkeypatch.setattr(nearest, "BLOCKS_TOGETHER", 3)
    entries = [{"connection_id": "c", **entry} for entry in SCOPES[name]]
    server = house.app.extensions["rung"].store.open(house.grant(*entries)[1])

    def scanned(snapshot: Snapshot, view: Any) -> tuple[dict[int, NearText], int | None]:
        scope = view.covered.meaning_scope
        return nearness_of(snapshot, scope).search(scope, Deadline.after(60))

    found, compared = server.read(scanned)
    assert compared is None
    expected = server.read(lambda snapshot, view: exact(snapshot, view.covered.meaning_scope))
    assert found.keys() == expected.keys()
    assert all(abs(found[seq].nearness - expected[seq]) < 1e-4 for seq in expected)


def test_a_scan_that_ends_early_counts_no_hidden_vectors(house: House) -> None:
    entry = {"connection_id": "c", **SCOPES["a few records"][0]}
    server = house.app.extensions["rung"].store.open(house.grant(entry)[1])

    def compared(snapshot: Snapshot, view: Any) -> Any:
        scope = view.covered.meaning_scope
        return nearness_of(snapshot, scope).search(scope, Deadline.after(0))

    found, count = server.read(compared)
    assert count is None or count <= 2 * len(FEW["resources"])
    assert len(found) <= len(FEW["resources"])


def nearness_of(snapshot: Snapshot, scope: Scope) -> Nearness:
    vectors = snapshot.vector_set()
    assert vectors is not None
    sample = snapshot.vector_sample(vectors.id, scope, SAMPLED).get()
    return Nearness(snapshot, vectors, QUESTION, scope, sample, (0.0, 1.0))


def exact(snapshot: Snapshot, scope: Scope) -> dict[int, float]:
    """The nearness of records by the vectors with the nearest codes, all of them compared."""
    vectors = snapshot.vector_set()
    members = snapshot.members(scope, 10 * RECORDS).get()
    assert vectors is not None and members is not None
    rows = snapshot.vectors(vectors.id, scope.fields, members).get()
    middle = numpy.mean([components(one) / length(one) for one in map(embed, PROBES)], axis=0)
    centre = middle.astype(numpy.float32).astype(float)
    distances = sorted((distance(row, centre), n) for n, row in enumerate(rows))
    last = distances[: nearest.RESCORED][-1][0]
    chosen = [rows[n] for away, n in distances if away <= last]
    assert len(chosen) <= nearest.TIED
    sample = snapshot.vector_sample(vectors.id, scope, SAMPLED).get()
    question = components(QUESTION)
    if len(sample) >= 20:
        common = numpy.mean([components(one) / length(one) for one in sample], axis=0)
        question = question - numpy.rint(0.25 * length(QUESTION) * common)
    cosines = [cosine(vector, question) for vector in sample]
    mean, deviation = (numpy.mean(cosines), numpy.std(cosines)) if len(sample) >= 20 else (0.0, 1.0)
    found = dict[int, float]()
    for row in chosen:
        near = float((cosine(row.vector, question) - mean) / deviation)
        found[row.seq] = max(found.get(row.seq, near), near)
    return found


def distance(row: VectorRow, centre: Any) -> int:
    """How many components are above the centre in one of two vectors alone."""
    one, two = (components(each) > centre * length(each) for each in (row.vector, QUESTION))
    return int((one != two).sum())


def components(vector: bytes) -> Any:
    return numpy.frombuffer(vector, numpy.int8).astype(float)


def length(vector: bytes) -> float:
    return float(numpy.sqrt((components(vector) ** 2).sum()))


def cosine(vector: bytes, question: Any) -> float:
    product = components(vector) @ question
    return float(product / (length(vector) * length(QUESTION)))
