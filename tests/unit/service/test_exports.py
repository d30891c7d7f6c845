"""Long texts of exports: the same text from beginning to end, or none."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from evidence.errors import RateLimited, TimedOut, Unavailable
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.model import Source
from evidence.records import FieldRead
from service.cli.export import reading
from service.cli.export.reading import RetryingReader, Changed
from service.cli.output import Meter
from service.operations.base import Session
from service.ports import ResourceServer
from tests.helpers.sources import ListServer, Plan

SIZE = 4


def piece(text: str, start: int, total: int) -> FieldRead:
    """A window of a text."""
    ref = RecordRef("notes", "long")
    return FieldRead(ref, Source(None, None, None), "text", "string", text, start, total)


@dataclass
class Shelf:
    """A text in memory. `seen` is told the offset of every window before it is read."""

    text: str
    told: str = "1"
    seen: Callable[[int], None] = lambda offset: None

    def window(self, offset: int, limit: int | None = None) -> FieldRead:
        self.seen(offset)
        return piece(self.text[offset : offset + (limit or SIZE)], offset, len(self.text))

    def version(self) -> str:
        return self.told


def read(shelf: Shelf, state: dict[str, object] | None = None) -> str:
    return "".join(window.text for window, _ in reading.pieces(shelf, state or {}))


def state_at(shelf: Shelf, chars: int) -> dict[str, object]:
    found = (state for _, state in reading.pieces(shelf, {}))
    return next(state for state in found if state["chars"] == chars)


@pytest.mark.parametrize("text", ["", "abcd", "abcdefghij"])
def test_the_windows_of_a_text_are_the_text(text: str) -> None:
    assert read(Shelf(text)) == text


def test_a_text_is_gone_on_with_behind_what_was_read() -> None:
    shelf = Shelf("abcdefghij")
    assert read(shelf, state_at(shelf, 8)) == "ij"
    assert read(shelf, state_at(shelf, 10)) == ""


@pytest.mark.parametrize(
    ("now", "told"),
    [("abcdefgXij", "1"), ("abcdefghijk", "1"), ("abcdefg", "1"), ("abcdefghij", "2")],
    ids=["another last window", "longer", "shorter", "emitted later"],
)
def test_another_text_is_not_gone_on_with(now: str, told: str) -> None:
    state = state_at(Shelf("abcdefghij"), 8)
    with pytest.raises(Changed):
        read(Shelf(now, told), state)


@pytest.mark.parametrize(("now", "told"), [("abcdefghijk", "1"), ("abcdefghij", "2")])
def test_a_change_on_the_way_shows(now: str, told: str) -> None:
    def change(offset: int) -> None:
        if offset == SIZE:
            shelf.text, shelf.told = now, told

    shelf = Shelf("abcdefghij", seen=change)
    with pytest.raises(Changed):
        read(shelf)


def test_a_source_that_gives_nothing_more_is_not_asked_for_ever() -> None:
    class Stuck(Shelf):
        def window(self, offset: int, limit: int | None = None) -> FieldRead:
            return piece("", offset, 10)

    with pytest.raises(Unavailable, match="character 0"):
        read(Stuck(""))


def test_what_changes_every_time_is_given_up() -> None:
    begun = list[int]()

    def work() -> None:
        raise Changed

    with pytest.raises(Unavailable, match="changed during export"):
        reading.steady(lambda: begun.append(1), work)
    assert len(begun) == reading.TRIES - 1


def reader(waited: list[float]) -> RetryingReader:
    return RetryingReader(lambda: Session(ListServer("notes", "c", Plan(0))), waited.append)


def test_waits_are_as_told_or_grow_and_end() -> None:
    waited = list[float]()
    errors = [RateLimited("Slow.", retry_after=7), TimedOut("Late."), Unavailable("Away.")]

    def ask(rs: ResourceServer) -> str:
        if errors:
            raise errors.pop(0)
        return "here"

    assert reader(waited).ask(ask) == "here"
    pause = BUDGETS.export_pause_seconds
    assert waited == [7, 2 * pause, 4 * pause]


def test_what_does_not_pass_is_raised_at_once_or_in_the_end() -> None:
    waited = list[float]()

    def broken(rs: ResourceServer) -> None:
        raise Unavailable("No store.", code="store_unavailable")

    def away(rs: ResourceServer) -> None:
        raise Unavailable("Away.")

    with pytest.raises(Unavailable):
        reader(waited).ask(broken)
    assert waited == []
    with pytest.raises(Unavailable):
        reader(waited).ask(away)
    assert len(waited) == BUDGETS.export_tries - 1


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, b""),
        ("", b'""'),
        ("plain", b"plain"),
        ("a,b", b'"a,b"'),
        ('say "a"', b'"say ""a"""'),
        ("two\r\nlines", b'"two\r\nlines"'),
        (" room ", b'" room "'),
        (True, b"true"),
        (1.5, b"1.5"),
        ({"a": [1]}, b'"{""a"":[1]}"'),
    ],
)
def test_cells_of_csv(value: object, cell: bytes) -> None:
    assert b"".join(reading.as_cell(value, raw=False)) == cell


def test_a_meter_says_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 6.0, 6.0, 7.0, 20.0, 20.0])
    with Meter("notes", "records", clock=lambda: next(times)) as meter:
        for done in (10, 200, 300):
            meter.to(done, 1_000)
        meter.to(400, None)
    assert capsys.readouterr().err == "notes: 200 of 1,000 records (20%)\nnotes: 400 records\n"
