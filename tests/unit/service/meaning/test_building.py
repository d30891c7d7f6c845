"""Vectors are built from what is missing, and never differ from those of the current texts."""

import os
import signal
from collections.abc import Hashable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evidence.errors import EvidenceError, Unavailable
from evidence.manifest import parse
from evidence.pointer import find, searched_text
from service.meaning import building
from service.meaning.building import Builder, Progress, build
from service.meaning.encoder import PROBES
from service.place import Place
from service.records.engine import Big, Snapshot, Stored
from service.records.engine.vectors import entry_of
from service.records.intake import Row
from service.records.opening import open_reader, open_writer
from service.records.writing import Writing
from service.records.writing.streams import declare, open_stream
from tests.helpers.filling import put
from tests.helpers.notes import NOTES
from tests.helpers.places import ENGINE, faults, new_place
from tests.helpers.trigrams import Trigrams

SEARCH = {"lexical_fields": ["title", "text"], "semantic_fields": ["title", "text"]}
TITLED = {
    **NOTES["schema"]["properties"],
    "title": {"type": "string", "x_pdpp_role": "primary-title"},
}
SEMANTIC_NOTES = {
    **NOTES,
    "schema": {**NOTES["schema"], "properties": TITLED},
    "query": {**NOTES["query"], "search": SEARCH},
}
LONG = "A sentence about lanterns. Another one about the sea! " * 200


class Reversed(Trigrams):
    """Another model: the vectors of the first, reversed."""

    def passage(self, text: str) -> bytes:
        return super().passage(text)[::-1]


MODELS: dict[str, Trigrams] = {"first:1": Trigrams("first:1"), "second:1": Reversed("second:1")}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return filled(tmp_path)


def filled(folder: Path) -> Place:
    place = new_place(folder)
    with open_writer(place) as writer:
        declare(writer, "c", parse({"streams": [SEMANTIC_NOTES]}))
    return place


def note(key: str, text: str, minute: int = 0) -> Row:
    record = {
        "id": key,
        "title": f"About {key}",
        "text": text,
        "at": f"2024-01-01T00:{minute:02}:00Z",
    }
    return Row(record, key)


def bring(place: Place, *rows: Row) -> None:
    with open_writer(place) as writer:
        put(writer, open_stream(writer, "c", "notes"), rows)


def built(place: Place, model: str = "first:1") -> list[Progress]:
    steps = list[Progress]()
    build(place, MODELS[model], Event(), steps.append)
    return steps


def texts(writer: Writing, snapshot: Snapshot) -> dict[tuple[int, int], tuple[str, str]]:
    """(title that stands before it, current text) of every field, by record and ordinal."""
    current = {}
    for stream, field, ordinal in writer.run("SELECT stream, field, ordinal FROM scope"):
        if field in SEARCH["semantic_fields"]:
            rows = writer.run("SELECT seq FROM record WHERE stream = ?", stream)
            for seq, record in snapshot.load([seq for (seq,) in rows]).get().items():
                text = _text(snapshot, record, field)
                if text:
                    title = "" if field == "title" else str(record.data.get("title") or "")
                    current[seq, ordinal] = f"{title[:160]}\n" if title else "", text
    return current


def _text(snapshot: Snapshot, record: Stored, field: str) -> str:
    big: Big | None = record.big.get(field)
    if big is not None:
        return "".join(snapshot.chunks(big))
    return searched_text(find(record.data, field)) or ""


def check(place: Place, *, complete: str | None = None) -> int:
    """Fails unless every vector is that of its text and in its block; returns their number."""
    with open_writer(place) as writer, closing(open_reader(place)) as reader:
        with reader.snapshot() as snapshot:
            snapshot.confine(None)
            current = texts(writer, snapshot)
        rows = writer.run(
            "SELECT m.model, m.centre, v.id, v.seq, v.ordinal, v.start, v.stop, v.block, v.slot,"
            " v.vector FROM vector v JOIN vector_set m ON m.id = v.set_id"
            " ORDER BY v.seq, v.ordinal, v.start"
        )
        blocks = {
            id: (width, entries)
            for id, width, entries in writer.run("SELECT id, width, entries FROM vector_block")
        }
        entries = 0
        for model, centre, id, seq, ordinal, start, stop, block, slot, vector in rows:
            heading, text = current[seq, ordinal]
            assert MODELS[model].passage(heading + text[start:stop]) == vector
            if block is not None:
                width, bytes_of = blocks[block]
                assert bytes_of[slot * width : (slot + 1) * width] == entry_of(
                    seq, id, vector, centre
                )
                entries += 1
        assert entries == sum(
            any(bytes_of[start : start + width])
            for width, bytes_of in blocks.values()
            for start in range(0, len(bytes_of), width)
        )
        if complete:
            assert {row[0] for row in rows} <= {complete}
            assert [model for _, model in writer.vectors().sets()] == [complete]
            covered: dict[tuple[int, int], str] = {}
            for _, _, _, seq, ordinal, start, stop, *_ in rows:
                text = covered.get((seq, ordinal), "")
                assert start == len(text)
                covered[seq, ordinal] = text + current[seq, ordinal][1][start:stop]
            assert covered == {key: text for key, (_, text) in current.items()}
            assert entries == len(rows)
    assert faults(place) == [] if ENGINE == "sqlite" else True
    return len(rows)


def test_every_window_gets_a_vector_and_progress_is_reported(place: Place) -> None:
    bring(place, note("a", "short"), note("b", LONG), note("c", ""), note("d", LONG * 10))
    steps = built(place)
    assert check(place, complete="first:1") > 150
    assert steps[-1] == (4, 4, 11)  # most windows have the same text as another one


def test_first_windows_come_before_further_ones_and_newer_records_first(place: Place) -> None:
    bring(place, note("old", f"old {LONG}", 1), note("new", "new text", 2))
    asked = list[str]()

    class Noting(Trigrams):
        def passages(self, texts: Sequence[str]) -> list[bytes]:
            asked.extend(texts)
            return super().passages(texts)

    build(place, Noting("first:1"), Event(), lambda progress: None)
    texts = asked[len(PROBES) :]
    assert texts[:3] == ["About new", "About new\nnew text", "About old"]
    assert texts[3].startswith("About old\nold A sentence") and len(texts) > 5


def test_equal_texts_are_embedded_once(place: Place) -> None:
    bring(place, note("a", "the same"))
    built(place)
    bring(place, Row({**note("b", "the same").data, "title": "About a"}, "b"))
    assert built(place)[-1].vectors == 0
    assert check(place, complete="first:1") == 4


def test_a_replaced_stream_embeds_only_what_is_new(place: Place) -> None:
    rows = [note(f"n{number}", f"{number} {LONG}") for number in range(3)]
    bring(place, *rows)
    built(place)
    with open_writer(place) as writer, writer.staging([("c", "notes")]) as stage:
        stage.keep_manifests()
        put(writer, open_stream(writer, "c", "notes"), [*rows[:2], note("n3", "new")])
        stage.publish()
    assert check(place) > 30
    assert built(place)[-1].vectors == 2
    check(place, complete="first:1")


@pytest.mark.skipif(ENGINE != "sqlite", reason="a database counts its commits")
def test_a_store_that_an_older_version_wrote_is_built(place: Place) -> None:
    bring(place, note("a", "one"))
    with open_writer(place) as writer:
        writer.run("DELETE FROM meta WHERE key = 'epoch'")
    assert built(place)[-1] == (1, 1, 2)


def test_another_model_builds_a_second_set_that_replaces_the_first(place: Place) -> None:
    bring(place, note("a", "one"), note("b", "two"))
    built(place)
    built(place, "second:1")
    assert check(place, complete="second:1") == 4


def test_one_builder_works_on_a_store_at_a_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(place, note("a", "one"))
    with open_writer(place) as writer:
        first = Builder(writer, Trigrams(), lambda progress: None)
        monkeypatch.setattr(os, "getpid", lambda: os.getppid())
        with pytest.raises(Unavailable, match="Another process is building"):
            Builder(writer, Trigrams(), lambda progress: None)
        first.close()
        Builder(writer, Trigrams(), lambda progress: None).close()


def test_a_builder_goes_on_when_records_change(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "IDLE_SECONDS", 0.01)
    bring(place, note("a", "one"))
    stop, errors, counts = Event(), list[EvidenceError](), list[int]()

    def step(progress: Progress) -> None:
        counts.append(progress.records)
        if progress.records == 1:
            bring(place, note("b", "two"))
        if progress.records == 2:
            stop.set()

    build(place, Trigrams("first:1"), stop, step, errors.append)
    assert counts[-1] == 2 and errors == []


def killed(place: Place, model: str, calls: int) -> None:
    """Builds in a process that is killed at a commit or before an embedding."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    remaining = calls

    def die_in_time(*_: Any) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    encoder = MODELS[model]
    embed = encoder.passages

    def passages(texts: Sequence[str]) -> list[bytes]:
        die_in_time()
        return embed(texts)

    encoder.passages = passages  # type: ignore[method-assign]
    try:
        build(place, encoder, Event(), die_in_time)
    finally:
        os._exit(0)


def on_full_disk(place: Place, model: str) -> None:
    """Builds while the file cannot grow."""
    if ENGINE != "sqlite":
        return
    with open_writer(place) as writer:
        db: Any = writer.db  # type: ignore[attr-defined]
        ((pages,),) = writer.run("PRAGMA page_count")
        db.execute(f"PRAGMA max_page_count = {pages + 2}")
        builder = Builder(writer, MODELS[model], lambda progress: None)
        with closing(open_reader(place)) as reader, suppress(EvidenceError):

            def state() -> Any:
                with reader.snapshot() as snapshot:
                    return snapshot.generation()

            builder.round(state, Event())


KEYS = st.sampled_from([f"k{number}" for number in range(6)])
TEXTS = st.sampled_from(["", "short", "the same", "other", LONG, f"x{LONG}", "word " * 30_000])
STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(KEYS, TEXTS), max_size=4)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("replace"), st.lists(st.tuples(KEYS, TEXTS), max_size=4)),
    st.tuples(st.just("build"), st.sampled_from(sorted(MODELS))),
    st.tuples(st.just("kill"), st.sampled_from(sorted(MODELS)), st.integers(0, 12)),
    st.tuples(st.just("full"), st.sampled_from(sorted(MODELS))),
)


def take(place: Place, step: tuple[Any, ...]) -> None:
    match step:
        case "put", rows:
            bring(place, *(note(key, text) for key, text in rows))
        case "delete", key:
            bring(place, Row(None, key, deleted=True))
        case "replace", rows:
            with open_writer(place) as writer, writer.staging([("c", "notes")]) as stage:
                stage.keep_manifests()
                unique = {key: note(key, text) for key, text in rows}
                put(writer, open_stream(writer, "c", "notes"), unique.values())
                stage.publish()
        case "build", model:
            built(place, model)
        case "kill", model, calls:
            killed(place, model, calls)
        case "full", model:
            on_full_disk(place, model)


@pytest.mark.parametrize("looks", range(1, 6))
def test_a_record_written_at_any_moment_is_built_or_seen_as_new(place: Place, looks: int) -> None:
    bring(place, note("early", "Lanterns"))
    with ExitStack() as stack:
        state = building._state(stack, place)
        calls = iter(range(1, 100))

        def state_after_a_write() -> Hashable:
            if next(calls) == looks:
                bring(place, note("late", "The sea"))
            return state()

        done = building._build_all(
            place, MODELS["first:1"], state_after_a_write, Event(), lambda progress: None
        )
        assert done != state() or built(place)[-1].vectors == 0


@pytest.mark.slow
@settings(max_examples=25, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=st.lists(STEPS, max_size=12))
def test_every_vector_is_that_of_the_current_text(steps: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(building, "COMMIT_VECTORS", 5)
        patch.setattr(building, "TEXTS_TOGETHER", 2)
        place = filled(Path(folder))
        for step in steps:
            take(place, step)
            check(place)
        built(place, "second:1")
        check(place, complete="second:1")
