"""Words, passages, counts, places and languages follow the records, whatever happens to them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.errors import Unavailable
from evidence.fold import fold
from evidence.limits import CONTRACT
from service.access import grants
from service.access.registry import Registry
from service.records.store import Store
from tests.helpers.filling import put
from service.records.intake import Row
from evidence.manifest import parse
from service.records.engine.health import Depth
from service.records.opening import engine_of
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import declare, open_stream
from service.records.sqlite.indexing import clear_derived
from service.records.sqlite.writer import Writer, open_writer
from evidence.work import Deadline
from tests.helpers.notes import LONG, NOTES, check, one
from tests.helpers.scale import times

CHARS, STRIDE = CONTRACT.passage_chars, CONTRACT.passage_stride_chars
#: Words that share a key, in two texts that together have more than a key shares among all fields.
LETTERS = [char for char in map(chr, range(0x400, 0x1400)) if char.isalpha() and fold(char) == char]
CROWD = [f"winter{letter}" for letter in LETTERS[:600]]
TEXTS = st.sampled_from(
    [
        "",
        "Owl",
        "Eule und Owl, owl",
        "E-Mail and +49 170 1234567, e-mail, 2026-03-01",
        "東京の空 and 東、京",
        "ภาษาไทย",
        "x" * CHARS,
        "y " * CHARS,
        "東京都" * 800,
        "é" * 40_000,
        LONG,
        LONG + "end",
        "hex" * 300 + " short",
        " ".join(CROWD[:400]),
        " ".join(CROWD[300:]),
        7,
        None,
    ]
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXTS,
        "text": TEXTS,
        "size": st.integers(0, 3) | st.text(max_size=2),
        "at": st.sampled_from(["1970-01-01", "1970-01-02T00:00:00Z", "never"]),
    },
)


def manifest(searchable: list[str], **roles: str) -> dict[str, Any]:
    """The stream of notes with other searchable fields, and roles by field."""
    document = json.loads(json.dumps(NOTES))
    document["query"]["search"]["lexical_fields"] = searchable
    for name, role in roles.items():
        document["schema"]["properties"][name]["x_pdpp_role"] = role
    return dict(document)


MANIFESTS = [
    manifest(["title", "text"]),
    manifest(["text"], title="thread", size="position"),
    manifest(["title"], id="thread", at="position"),
    manifest([]),
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.tuples(st.sampled_from("abc"), st.none() | DATA))),
        st.tuples(st.just("declare"), st.integers(0, len(MANIFESTS) - 1)),
        st.tuples(st.just("reindex"), st.none()),
        st.tuples(st.just("finish"), st.none()),
    ),
    max_size=8,
)


@settings(max_examples=times(60, 20), deadline=None)
@given(steps=STEPS)
def test_any_history_leaves_what_the_records_say(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    with open_writer(tmp_path_factory.mktemp("derived") / "rung.db") as writer:
        declare(writer, "c", parse({"streams": [NOTES]}))
        for step, value in steps:
            if step == "put":
                put(
                    writer,
                    open_stream(writer, "c", "notes"),
                    [
                        Row({"id": key} | (data or {}), key, deleted=data is None)
                        for key, data in value
                    ],
                )
            elif step == "declare":
                declare(writer, "c", parse({"streams": [MANIFESTS[value]]}))
            elif step == "reindex":
                writer.rebuild()
            else:
                writer.finish()
            check(writer)


@pytest.mark.parametrize("letter", ["x", "ß", "é", "東"])
@pytest.mark.parametrize("border", [CHARS, STRIDE, CHARS + STRIDE, CONTRACT.chunk_chars])
def test_a_phrase_at_any_border_of_passages_is_found_and_no_part_of_a_word(
    writer: Writer, notes: StreamHandle, border: int, letter: str
) -> None:
    rows = []
    for before in range(border - 26, border + 2):
        filler = (letter * 9 + " ") * (before // 10 + 1)
        text = filler[:before] + " wintering lantern " + filler
        rows.append(Row({"id": f"{before}", "text": text}))
    put(writer, notes, rows)
    found = "SELECT count(DISTINCT p.seq) FROM fts_passage f JOIN passage p ON p.id = f.rowid"
    for asked, expected in (('"wintering lantern"', 28), ("winter", 0), ("tering", 0), ("lan", 0)):
        row = writer.db.execute(f"{found} WHERE fts_passage MATCH ?", (asked,)).fetchone()
        assert (asked, row[0]) == (asked, expected)
    check(writer)


def test_a_word_counts_once_for_a_value(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a", "text": LONG}), Row({"id": "b", "text": "Lantern"})])
    count = "SELECT n FROM word_count JOIN word ON word.id = word WHERE text = 'lantern'"
    assert one(writer, count) == (2,)
    put(writer, notes, [Row({"id": "a", "text": "lanterns"})])
    assert one(writer, count) == (1,)
    put(writer, notes, [Row({}, "b", deleted=True)])
    assert one(writer, count) is None
    assert one(writer, "SELECT count(*) FROM word WHERE text = 'lantern'") == (0,)
    check(writer)


def test_languages_of_a_field_are_those_of_its_texts(writer: Writer, notes: StreamHandle) -> None:
    german = "Der Hund ist in dem Haus und die Katze ist auf dem Dach, wie an jedem Tag."
    english = "The dog is in the house and the cat is on the roof, as it is on every day."
    put(writer, notes, [Row({"id": f"{n}", "text": f"{german} {n}"}) for n in range(3)])
    assert _languages(writer) == ["de"]
    put(writer, notes, [Row({"id": "e", "text": english})])
    assert _languages(writer) == ["de", "en"]
    writer.rebuild()
    assert sorted(_languages(writer)) == ["de", "en"]


def test_a_title_that_could_be_of_several_languages_is_no_sign_of_one(
    writer: Writer, notes: StreamHandle
) -> None:
    title = "Similarity laws for stressing heated wings"  # `for` is Danish and Swedish, too
    other = "Hypersonic viscous transition de novo, second edition"
    put(writer, notes, [Row({"id": "1", "text": title}), Row({"id": "2", "text": other})])
    assert _languages(writer) == []
    english = "The dog is in the house and the cat is on the roof, as it is on every day."
    put(writer, notes, [Row({"id": "3", "text": english}), Row({"id": "4", "text": title})])
    assert _languages(writer) == ["en"]


def test_a_store_of_another_fold_is_indexed_anew(tmp_path: Path) -> None:
    path = tmp_path / "rung.db"
    texts = ["Der Hund ist in dem Haus und die Katze auf dem Dach.", LONG, "y " * CHARS, "東京の空"]
    with open_writer(path) as writer:
        declare(writer, "c", parse({"streams": [manifest(["title", "text"], size="thread")]}))
        notes = open_stream(writer, "c", "notes")
        put(
            writer,
            notes,
            [
                Row({"id": f"{n}", "title": "owl", "text": t, "size": n})
                for n, t in enumerate(texts)
            ],
        )
        put(writer, notes, [Row({}, "3", deleted=True)])
        writer.finish()
        _, token = grants.create(Registry(writer), {"streams": [{"connection_id": "c"}]})
        before = _contents(writer)
        clear_derived(writer.db)
        writer.set_meta("fold_version", "0")
    assert engine_of(path).check(Depth.SAMPLE, Deadline.after(10)).state.problem == "store-older"
    with pytest.raises(Unavailable, match="rung stats"):
        Store(path).open(token)
    with open_writer(path) as writer:
        check(writer)
        assert _contents(writer) == before
        put(writer, open_stream(writer, "c", "notes"), [Row({"id": "1", "text": "owl"})])
        check(writer)
    assert engine_of(path).check(Depth.SAMPLE, Deadline.after(10)).state.problem is None
    Store(path).open(token)


def _languages(writer: Writer) -> Any:
    return json.loads(one(writer, "SELECT languages FROM scope WHERE field = 'text'")[0])


def _contents(writer: Writer) -> list[Any]:
    """What is derived from the records, without numbers that are handed out."""
    queries = (
        "SELECT text, ordinal, n FROM word_count JOIN word ON word.id = word ORDER BY 1, 2",
        "SELECT * FROM cell ORDER BY 1, 2",
        "SELECT seq, id >> 32, start FROM passage ORDER BY 1, 2, 3",
        "SELECT seq, at, cursor, thread, place FROM record WHERE deleted = 0 ORDER BY 1",
        "SELECT languages FROM scope ORDER BY ordinal",
        "SELECT key, ordinal, text FROM word_key JOIN word ON word.id = word ORDER BY 1, 2, 3",
    )
    return [writer.db.execute(query).fetchall() for query in queries]


def test_words_that_another_writer_removed_meanwhile_are_added_again(tmp_path: Path) -> None:
    path = tmp_path / "rung.db"
    with open_writer(path) as writer, open_writer(path) as other:
        declare(writer, "c", parse({"streams": [NOTES]}))
        notes = open_stream(writer, "c", "notes")
        put(writer, notes, [Row({"id": "1", "title": "owl"})])
        put(other, notes, [Row({}, "1", deleted=True), Row({"id": "2", "title": "lantern"})])
        put(writer, notes, [Row({"id": "3", "title": "owl lantern"})])
        check(writer)


def test_words_of_a_transaction_that_failed_are_added_again(tmp_path: Path) -> None:
    with open_writer(tmp_path / "rung.db") as writer:
        declare(writer, "c", parse({"streams": [NOTES]}))
        notes = open_stream(writer, "c", "notes")
        with pytest.raises(KeyboardInterrupt), writer.transaction():
            put(writer, notes, [Row({"id": "1", "title": "owl", "text": " ".join(CROWD)})])
            raise KeyboardInterrupt
        put(writer, notes, [Row({"id": "2", "title": " ".join(CROWD)})])
        put(writer, notes, [Row({"id": "2", "title": "owl", "text": " ".join(CROWD)})])
        check(writer)
