"""The page of the fault tests is what the last runs wrote, and every row runs for every change."""

import orjson

from tests.figures.__main__ import PAGE, RESULTS, page
from tests.figures.rows import ROWS
from tests.helpers.server import ROOT


def test_the_page_has_the_last_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(orjson.loads(RESULTS.read_bytes()))


def test_every_row_has_a_short_form() -> None:
    for row in ROWS:
        assert row.tests or row.short, row.number
        assert bool(row.command) == bool(row.short), row.number
        assert all((ROOT / path).exists() for path in row.tests), row.number
