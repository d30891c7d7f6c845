"""Search answers as a naive search does that reads every record: `tests/helpers/reference.py`.

Random stores have threads, long values, titles and authors; random grants limit fields, times and
records; random questions have words, required parts, filters and times. Blocks are small, so that
every walk has several.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count, takewhile
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import Counts, SearchPage
from service.keys import Sealer
from service.meaning.building import build as build_vectors
from service.ports import SearchQuery
from service.records.search.pages import Search
from service.records.store import StoreResourceServer
from evidence.times import microseconds
from tests.helpers.reference import Reference
from tests.helpers.reference_meaning import Meaning, vectors_of
from tests.helpers.reference_parts import Part, Question, Record
from tests.helpers.stores import BODY, RANGE, TIME, TITLE, WHOLE, WORD, Connection, Stream, build
from tests.helpers.trigrams import Trigrams

#: No word is a form, a beginning or a misspelling of another, or a function word of a language.
WORDS = "amber basket cobalt dragon meadow quorum velvet harbour".split()
OTHERS = "gravel window chimney ribbon pocket".split()
ABSENT = ("zymurgy", "juxtapose", "phlegmatic")
FIELDS: dict[str, dict[str, Any]] = {
    "id": WORD,
    "kind": WORD,
    "at": TIME,
    "title": TITLE,
    "who": {**WORD, "x_pdpp_role": "actor"},
    "body": BODY,
    "notes": WORD,
    "thread": {**WORD, "x_pdpp_role": "thread"},
    "number": {**WHOLE, "x_pdpp_role": "position"},
}
SEARCHED = ("title", "who", "body", "notes")
QUERY = {"exact_filters": ["kind"], "range_filters": {"at": RANGE}}
DAYS = [f"2026-0{month}-{day:02}" for month in (2, 3, 4) for day in (1, 9, 20)]
MARCH = [microseconds(day) for day in ("2026-03-01", "2026-04-01")]
#: Words of a text: most are short, some are in passages, few are in chunk rows.
SIZES = (1, 2, 4, 4, 7, 12, 12, 30, 400, 900, 2_000)
CHUNKED = 12_000
#: The fields with vectors if their title is shown, and how the ids of records end that have none.
EMBEDDED = {"title", "body"}
WITHOUT_VECTORS = "7"
ENCODER = Trigrams()
embed = lru_cache(maxsize=10_000)(ENCODER.passage)
SEALER = Sealer(b"a secret of this test")


def text(random: Random, size: int) -> str:
    """Words of questions and others; the longer it is, the rarer are the former."""
    rare = max(2, size // 8)
    return " ".join(random.choice(OTHERS if random.randrange(rare) else WORDS) for _ in range(size))


def record(random: Random, id: str) -> dict[str, Any]:
    size = random.choice([*SIZES, CHUNKED] if random.random() < 0.1 else SIZES[:8])
    found = {
        "id": id,
        "kind": random.choice("pq"),
        "at": random.choice([*DAYS, None]),
        "title": text(random, random.randint(1, 4)),
        "who": random.choice([*WORDS, *OTHERS]),
        "body": text(random, size),
        "notes": text(random, random.choice(SIZES[:8])) if random.random() < 0.3 else None,
        "thread": random.choice("tuvw"),
        "number": random.randrange(30),
    }
    return {
        name: value
        for name, value in found.items()
        if value is not None and (name in ("id", "kind") or random.random() < 0.95)
    }


@st.composite
def worlds(draw: st.DrawFn) -> list[Connection]:
    random = Random(draw(st.integers(0, 2**32)))
    size = draw(st.integers(4, 50))
    connections = []
    for number in range(draw(st.integers(1, 2))):
        streams = [
            Stream(name, FIELDS, records, SEARCHED, "at", QUERY)
            for name in draw(st.sampled_from([["mail"], ["mail", "chat"]]))
            for records in [[record(random, f"{name}{number}{n:02}") for n in range(size)]]
        ]
        connections.append(Connection(f"c{number}", streams, "key"))
    return connections


@st.composite
def grants(draw: st.DrawFn, connections: Sequence[Connection]) -> list[dict[str, Any]]:
    entries = []
    for connection in connections:
        for stream in connection.streams:
            hidden = draw(st.sets(st.sampled_from(["title", "who", "notes", "thread"]), max_size=2))
            entry: dict[str, Any] = {
                "connection_id": connection.id,
                "stream": stream.name,
                "fields": [name for name in FIELDS if name not in hidden],
            }
            limit = draw(st.sampled_from(["", "", "", "since", "until", "resources"]))
            if limit == "resources":
                ids = [one["id"] for one in stream.records]
                entry["resources"] = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
            elif limit:
                entry["time_constraint"] = {limit: f"{draw(st.sampled_from(DAYS))}T00:00:00Z"}
            entries.append(entry)
    return entries


PARTS = st.sampled_from(
    [
        ('"amber basket"', Part(("amber basket",))),
        ("cob*", Part(("cob*",))),
        ("title:dragon", Part(("dragon",), "primary-title")),
        ("from:quorum", Part(("quorum",), "actor")),
        ('"window ribbon"', Part(("window ribbon",))),
    ]
)


@st.composite
def questions(draw: st.DrawFn, plain: bool = False) -> tuple[dict[str, Any], Question]:
    """(arguments of a search, the same in parts); `plain` ones have several words and no parts."""
    known = st.lists(st.sampled_from(WORDS), max_size=4, unique=True)
    words = [*draw(known), *draw(st.lists(st.sampled_from(ABSENT), max_size=3, unique=True))]
    required = [] if plain else draw(st.lists(PARTS, max_size=1 if words else 2, unique=True))
    if len(words) < 2 and (plain or not (words or required)):
        words += draw(st.sampled_from([WORDS[:1], WORDS[1:3], WORDS[3:6]]))
    words = list(dict.fromkeys(words))
    without = "" if plain else draw(st.sampled_from(["", "", "", "velvet"]))
    period = draw(st.sampled_from([False, False, True])) and bool(words)
    asked = [*words, *(["March 2026"] if period else []), *(typed for typed, _ in required)]
    arguments: dict[str, Any] = {
        "query": " ".join([*asked, *([f"-{without}"] if without else [])]),
        "words": "any" if plain else draw(st.sampled_from(["any", "any", "all"])),
    }
    if draw(st.booleans()):
        edge = draw(st.sampled_from(["since", "until"]))
        arguments[edge] = draw(st.sampled_from(DAYS))
    if draw(st.sampled_from([False, False, True])):
        arguments |= {"streams": ("mail",), "filter": {"kind": draw(st.sampled_from("pq"))}}
    typed = [*words, *(["march", "2026"] if period else [])]
    return arguments, Question(
        tuple(Part((word,)) for word in typed),
        tuple(part for _, part in required),
        (Part((without,)),) if without else (),
        arguments["words"] == "all",
        (MARCH[0] or 0, MARCH[1] or 0) if period else None,
    )


@st.composite
def scenes(
    draw: st.DrawFn,
) -> tuple[list[Connection], list[dict[str, Any]], list[tuple[dict[str, Any], Question]]]:
    connections, asked = draw(worlds()), st.booleans().flatmap(questions)
    return connections, draw(grants(connections)), draw(st.lists(asked, min_size=5))


@pytest.mark.slow
@pytest.mark.parametrize("vectored", [False, True], ids=["words", "vectors"])
@given(scene=scenes(), block_size=st.integers(3, 9), limit=st.integers(1, 12))
def test_pages_are_those_of_a_search_that_reads_every_record(
    vectored: bool,
    scene: tuple[list[Connection], list[dict[str, Any]], list[tuple[dict[str, Any], Question]]],
    block_size: int,
    limit: int,
) -> None:
    connections, entries, asked = scene
    with TemporaryDirectory() as folder:
        house = build(connections, Path(folder), RUNG_COMPILED="off")  # see test_whole_order
        if vectored:
            build_vectors(house.path, ENCODER, Event(), on_commit=lambda progress: None)
            house.change(
                "DELETE FROM vector WHERE seq IN (SELECT seq FROM record WHERE record_key LIKE ?)",
                f"%{WITHOUT_VECTORS}",
            )
        server = house.app.extensions["rung"].store.open(house.grant(*entries)[1])
        roles = {name for entry in entries for name in entry["fields"]}
        for arguments, question in asked:
            names = {"primary-title": "title", "actor": "who"}
            if all(part.role is None or names[part.role] in roles for part in question.required):
                records = list(shown(connections, entries, arguments))
                meaning = meaning_of(records, arguments["query"]) if vectored else None
                reference = Reference(records, question, meaning)
                check(server, reference, arguments, block_size, limit)


def meaning_of(records: Sequence[Record], query: str) -> Meaning | None:
    """The vectors of the records that a grant shows; None if they have none."""
    vectors = {one.id: one.vectors for one in records}
    question = ENCODER.question(query, ENCODER.patience)
    return Meaning(vectors, question, ENCODER.calibration) if any(vectors.values()) else None


def check(
    server: StoreResourceServer,
    reference: Reference,
    arguments: dict[str, Any],
    block_size: int,
    limit: int,
) -> None:
    """Compares the blocks of a question, and the pages cut from them, with the reference."""
    query = SearchQuery(**arguments)
    expected, first_block = list[str](), list[str]()
    blocks = server.read(
        lambda snapshot, view: slices(Search(snapshot, view, query, block_size=block_size))
    )
    for earlier, candidates in blocks:
        expected += reference.block(candidates, earlier, blocks[0][1])
        first_block = first_block or list(expected)
    pages = list(walk(server, replace(query, limit=limit), block_size))
    found = [hit.ref.record_id for page in pages for hit in page.proven]
    assert found == expected
    assert sorted(found) == sorted(reference.matching)
    first = blocks[0][1] if blocks else []
    assert [(hit.ref.record_id, hit.related is not None) for hit in pages[0].hits] == (
        reference.first_page(first_block, first, limit)
    )
    assert all(hit.related is None for page in pages[1:] for hit in page.hits)
    ranks = [hit.rank for page in pages for hit in page.hits]
    assert ranks == list(range(1, len(ranks) + 1))
    counts = Counts(len(reference.holding_every()), len(found), exact=True)
    assert all(page.counts == counts and page.recall["complete"] for page in pages)
    for variant in (query, replace(query, cut_tail=True), replace(query, sort="newest")):
        check_first_hits(server, replace(variant, limit=limit), block_size)


def check_first_hits(server: StoreResourceServer, query: SearchQuery, block_size: int) -> None:
    """A page that is shortened equals the shorter page, but for its related hits."""
    page = page_of(server, query, block_size)
    if not (number := len(page.hits) // 2):
        return
    assert page.first_hits is not None
    shortened = page.first_hits(number)
    if len(page.proven) == len(page.hits):
        assert shortened == page_of(server, replace(query, limit=number), block_size)
    elif query.sort == "relevance":
        whole, after = [*page.proven], [*shortened.proven]
        for hits, cursor in ((whole, page.next_cursor), (after, shortened.next_cursor)):
            asked = replace(query, cursor=cursor)
            hits += [hit for each in walk(server, asked, block_size) if cursor for hit in each.hits]
        assert [hit.id for hit in after] == [hit.id for hit in whole]
        assert shortened.hits == page.hits[:number]


def page_of(server: StoreResourceServer, query: SearchQuery, block_size: int) -> SearchPage:
    return server.read(
        lambda snapshot, view: Search(snapshot, view, query, ENCODER, block_size).page(SEALER)
    )


def slices(search: Search) -> list[tuple[list[str], list[str]]]:
    """(the candidates of the blocks before, its own) of every block."""
    own = list(takewhile(bool, (search.slice_of(number)[1] for number in count())))
    records = search.snapshot.load([seq for seqs in own for seq in seqs]).get()
    ids = [[records[seq].record_key for seq in seqs] for seqs in own]
    return [([id for each in ids[:n] for id in each], mine) for n, mine in enumerate(ids)]


def walk(server: StoreResourceServer, query: SearchQuery, block_size: int) -> Iterator[SearchPage]:
    """All pages, from the cursor of the query on."""
    cursor = query.cursor
    while True:
        asked = replace(query, cursor=cursor)
        page = page_of(server, asked, block_size)
        yield page
        cursor = page.next_cursor
        assert page.has_more == (cursor is not None)
        assert page.hits or not asked.cursor
        if cursor is None:
            return


def shown(
    connections: Sequence[Connection],
    entries: Sequence[dict[str, Any]],
    arguments: dict[str, Any],
) -> Iterator[Record]:
    """The records that a grant shows."""
    streams = {
        (connection.id, stream.name): stream
        for connection in connections
        for stream in connection.streams
    }
    for entry in entries:
        place = entry["connection_id"], entry["stream"]
        for one in streams[place].records:
            found = visible(place, one, entry, arguments)
            if found is not None:
                yield found


def visible(
    place: tuple[str, str],
    one: dict[str, Any],
    entry: dict[str, Any],
    arguments: dict[str, Any],
) -> Record | None:
    """A record as the grant shows it; None if it does not."""
    fields, id = entry["fields"], one["id"]
    at = microseconds(one["at"]) if "at" in one else None
    time = entry.get("time_constraint", {})
    if not within(at, time) or id not in entry.get("resources", [id]):
        return None
    roles = {"thread", "number"} <= {*fields} and {"thread", "number"} <= one.keys()
    kind = arguments.get("filter", {}).get("kind", one["kind"])
    streams = arguments.get("streams", (place[1],))
    texts = {name: one[name] for name in SEARCHED if name in fields and name in one}
    is_embedded = "title" in fields and not id.endswith(WITHOUT_VECTORS)
    embedded = {name: texts[name] for name in EMBEDDED & texts.keys()} if is_embedded else {}
    return Record(
        id,
        texts,
        "title" if "title" in fields else None,
        "who" if "who" in fields else None,
        (*place, one["thread"]) if roles else None,
        (one.get("number", 0), id),
        at,
        within(at, arguments) and kind == one["kind"] and place[1] in streams,
        bool(time or "resources" in entry),
        tuple(vectors_of((*place, id), embedded, "title", embed)),
    )


def within(at: int | None, times: dict[str, Any]) -> bool:
    since, until = (
        microseconds(times[name]) if name in times else None for name in ("since", "until")
    )
    if since is None and until is None:
        return True
    return at is not None and (since is None or at >= since) and (until is None or at < until)
