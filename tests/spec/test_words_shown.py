"""Every word that a hit counts as matched is shown in one of its excerpts."""

import re
from pathlib import Path

import pytest

from tests.helpers import worlds
from tests.helpers.worlds import Connection, World, row, stream, text

FILLER = "lorem ipsum dolor sit amet "
NOTE = text("primary-text")
FIELDS = {"title": text("primary-title"), "body": NOTE, "note": text(), "place": text()}
SEARCHED = {"search": {"lexical_fields": [*FIELDS]}}


@pytest.mark.parametrize(
    "data",
    [
        {"body": "the quokka juggles", "note": "a common word"},
        {"body": f"the quokka juggles {FILLER * 60} a common word"},
        {"body": f"the quokka juggles {FILLER * 400} a common word"},
        {"body": "the quokka", "note": "that juggles", "place": "common ground"},
    ],
    ids=["fields", "field", "long field", "three fields"],
)
def test_each_matched_word_is_in_an_excerpt(tmp_path: Path, data: dict[str, str]) -> None:
    others = [row("notes", f"n{n}", title="Other", body=f"common {n}") for n in range(60)]
    rows = (row("notes", "all", title="A note", **data), *others)
    notes = stream("notes", FIELDS, query=SEARCHED)
    world = World((Connection("diary", "diary", "Diary", (notes,), rows),))
    api = worlds.build(world, tmp_path).api({"connection_id": "diary", "stream": "notes"})
    result = api.mcp("search", query="quokka juggles common")
    shown = result["content"][0]["text"].partition("\n2 ")[0]
    assert "coverage=" not in shown or "coverage=1.00" in shown
    marked = {word for one in re.findall("<mark>(.*?)</mark>", shown) for word in one.split()}
    assert {"quokka", "juggles", "common"} <= marked, shown
