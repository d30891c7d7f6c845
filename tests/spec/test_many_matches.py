"""More records contain a word than are ranked: the best answers are among the ranked ones."""

from pathlib import Path

import pytest

from evidence.limits import BUDGETS, CONTRACT
from tests.helpers.caller import Local
from tests.helpers.stores import BODY, TIME, TITLE, WORD, Connection, Stream, build, client

MANY = 2 * BUDGETS.candidates_ranked
FEW = 5
#: Longer than a passage, with none of the words in the queries.
FILLER = "Nothing to report from the harbour today. " * (2 * CONTRACT.passage_chars // 40)


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """A few records that answer best, and many newer ones with the same words."""
    bodies = {
        "short": "The walnut is in the shed.",
        "near": f"{FILLER} The crane lifted the anchor. {FILLER}",
        "titled": f"{FILLER} A ferry passed. {FILLER}",
        "long": f"{FILLER} The walnut was found, then a ferry came. {FILLER}",
        "far": f"A crane was seen. {FILLER} {FILLER} An anchor was lost.",
    }
    count = {"long": MANY, "far": MANY}
    records = [
        {
            "id": f"{kind}-{number}",
            "title": f"Ferry {number}" if kind == "titled" else f"Day {number}",
            "body": body,
        }
        for kind, body in bodies.items()
        for number in range(count.get(kind, FEW))
    ]
    days = Stream("days", {"id": WORD, "title": TITLE, "body": BODY}, records, ["title", "body"])
    folder = tmp_path_factory.mktemp("harbour")
    return client(build([Connection("c", [days], "key", "Box")], folder))


@pytest.mark.parametrize(
    "query, best",
    [
        pytest.param("walnut", "short", id="a word in a short record"),
        pytest.param('"the walnut"', "short", id="a phrase in a short record"),
        pytest.param("crane anchor", "near", id="two words in one passage"),
        pytest.param("ferry", "titled", id="a word in the title too"),
    ],
)
def test_the_best_of_many_matches_come_first(harbour: Local, query: str, best: str) -> None:
    results = harbour.ok("search", query=query).structured["results"][:FEW]
    assert {one["record_id"].partition("-")[0] for one in results} == {best}


@pytest.mark.parametrize("extra", [0, 1])
def test_a_period_with_more_records_than_are_ranked_says_so(tmp_path: Path, extra: int) -> None:
    records = [
        {"id": f"{n}", "body": "A ferry passed.", "at": f"2026-03-{1 + n % 28:02}T08:00:00Z"}
        for n in range(BUDGETS.candidates_newest + extra)
    ]
    days = Stream("days", {"id": WORD, "body": BODY, "at": TIME}, records, ["body"], "at")
    caller = client(build([Connection("c", [days], "key", "Box")], tmp_path))
    walk = list(caller.pages("search", query="in March 2026", limit=50))
    hits = [hit["id"] for page in walk for hit in page.structured["results"]]
    assert len({*hits}) == len(hits) == BUDGETS.candidates_newest
    for page in walk:
        assert ("complete=false" in page.text) is (f"some>={len(hits)}" in page.text) is (extra > 0)
