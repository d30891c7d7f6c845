"""Packs the files here into the archive that the demo imports: `python -m tests.demo_life.rows`."""

import tomllib
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson

from service.demo.fill import ARCHIVE, CONNECTIONS

FOLDER = Path(__file__).parent
EMITTED_AT = "2026-05-11T00:00:00Z"


def files() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(name, rows) of each file; those of a second import are in a file of their own."""
    texts = tomllib.loads((FOLDER / "long.toml").read_text(encoding="utf-8"))["texts"]
    long = {each["id"]: each for each in texts}
    for connection_id, _, _ in CONNECTIONS:
        rows: tuple[list[dict[str, Any]], list[dict[str, Any]]] = [], []
        for line in (FOLDER / f"{connection_id}.ndjson").read_bytes().splitlines():
            row = orjson.loads(line)
            data, stream = row["data"], row["stream"]
            if text := long.get(f"{connection_id}/{stream}:{data['id']}"):
                data[text["field"]] = _compose(text)
            op = {"op": "delete"} if row.get("deleted") else {}
            stored = {"stream": stream, "key": data["id"], "emitted_at": EMITTED_AT, **op}
            rows[row.get("later", False)].append({**stored, "data": data})
        for number, some in enumerate(filter(None, rows), start=1):
            yield f"{connection_id}/{number}.ndjson", some


def pack(archive: Path) -> None:
    """Writes the archive, always with the same times."""
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for name, rows in files():
            content = b"".join(orjson.dumps(row) + b"\n" for row in rows)
            packed.writestr(ZipInfo(name), content, ZIP_DEFLATED, 9)


def _compose(text: dict[str, Any]) -> str:
    """A text of weekly entries, each with two thirds of the paragraphs in another order."""
    random, day = Random(text["id"]), date.fromisoformat(text["first_day"])
    paragraphs = text["paragraphs"].strip().split("\n\n")
    parts = [text["opening"].strip()]
    length = 0
    while length < text["chars"]:
        chosen = random.sample(paragraphs, len(paragraphs) * 2 // 3)
        parts += [day.strftime(text["heading"]), *chosen]
        length = sum(map(len, parts))
        day += timedelta(days=7)
    for share, sentence in text["once"]:
        parts.insert(int(share * len(parts)), sentence)
    return "\n\n".join([*parts, text["closing"]])


if __name__ == "__main__":
    pack(ARCHIVE)
