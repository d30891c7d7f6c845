"""Forty questions that share no whole word with the records of the demo that answer them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import orjson

from quality.collections import Query
from quality.service import Service, opened
from service.demo.fill import fill, token_for
from service.meaning.building import build
from service.meaning.encoder import Encoder
from service.operations.base import Session
from service.records.opening import open_writer
from tests.helpers.places import new_place

QUESTIONS = Path(__file__).parent / "demo" / "questions.ndjson"
GROUP = "demo"
#: Records of the demo.
RECORDS = 555


def queries() -> list[Query]:
    """The questions by kind: other languages, synonyms, paraphrases, parts of compounds."""
    rows = map(orjson.loads, QUESTIONS.read_bytes().splitlines())
    return [
        Query(f"demo-{n}", GROUP, row["query"], row["kind"], dict.fromkeys(row["ids"], 1))
        for n, row in enumerate(rows)
    ]


@contextmanager
def serving(encoder: Encoder | None) -> Iterator[Service]:
    """The demo in a store of its own, with vectors if there is an encoder."""
    with TemporaryDirectory() as folder:
        place = new_place(Path(folder))
        with open_writer(place) as writer:
            token = token_for(writer, fill(writer), Path(folder) / "token")
        if encoder is not None:
            build(place, encoder, Event(), on_commit=lambda progress: None)
        store = opened(place, encoder)
        session = Session(store.open(token), fence_key=store.fence_key)
        yield Service({GROUP: session}, whole_ids=True)
