"""JSON files of any size: a reader that has one value of them in memory at a time."""

import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Final, NoReturn, TextIO

from evidence.errors import InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from service.importing.source import Source, Undecodable

PIECE_CHARS: Final = 1 << 20
#: An error so near to the end of a piece may be that of a word or an escape that goes on.
CUT_CHARS: Final = 16
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class JsonReader:
    """Reads the JSON in the text of a source from its beginning, a value or a bracket at a time.

    Raises InvalidRequest if it is not JSON, TooLarge for a value that does not fit into memory.
    """

    def __init__(self, source: Source, file: TextIO) -> None:
        self._source, self._name, self._file = source, source.name, file
        self._scan = JSONDecoder().raw_decode
        self._text, self._place, self._before = "", 0, 0

    def next(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._place)
            self._place = found.end() if found else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more(PIECE_CHARS):
                return ""

    def value(self) -> str:
        """The JSON of the next value."""
        self.next()
        size = PIECE_CHARS
        while True:
            try:
                end, problem = self._scan(self._text, self._place)[1], None
            except JSONDecodeError as error:
                end, problem = len(self._text), error
                open_ = error.msg.startswith("Unterminated") or error.pos >= end
                if not open_ and error.pos + CUT_CHARS < end:
                    self._fail(error.msg, error.pos)
            except RecursionError:
                self._fail("It is nested too deeply", self._place)
            # After less than this a number may go on.
            if end + len("e+1") <= len(self._text) or not self._more(size):
                if problem is not None:
                    what = "It ends within a value" if open_ else problem.msg
                    self._fail(what, problem.pos)
                break
            size *= 2
            if len(self._text) > BUDGETS.import_row_bytes:
                raise TooLarge(
                    f"{self._name} has a value over {BUDGETS.import_row_bytes} bytes. "
                    "Split it into several records."
                )
        value = self._text[self._place : end]
        self._place = end
        return value

    def elements(self) -> Iterator[str]:
        """The JSON of each element of the array that begins here."""
        for _ in self._inside("[]"):
            yield self.value()

    def members(self) -> Iterator[str]:
        """The name of each member of the object that begins here; its value is to be read next."""
        for _ in self._inside("{}"):
            if self.next() != '"':
                self._fail("Expecting a name in double quotes", self._place)
            name = JSONDecoder().decode(self.value())
            self._take(":")
            yield name

    def end(self) -> None:
        """Checks that nothing is left to be read."""
        if self.next():
            advice = " If each line is a value of its own: --format ndjson."
            self._fail("There is more text after the value", self._place, advice)

    def _inside(self, brackets: str) -> Iterator[None]:
        self._take(brackets[0])
        if self.next() != brackets[1]:
            yield
            while self.next() == ",":
                self._place += 1
                yield
        self._take(brackets[1])

    def _take(self, char: str) -> None:
        if self.next() != char:
            self._fail(f"Expecting {char!r}", self._place)
        self._place += 1

    def _more(self, size: int) -> bool:
        """Reads on, and forgets what was read before the current place."""
        try:
            piece = self._source.repair.decoded(self._file.read(size))
        except Undecodable as error:
            raise InvalidRequest(f"{self._name} cannot be read. {error}.") from None
        if piece:
            self._before += self._place
            self._text, self._place = self._text[self._place :] + piece, 0
        return bool(piece)

    def _fail(self, problem: str, place: int, advice: str = "") -> NoReturn:
        at = self._before + place
        raise InvalidRequest(f"{self._name} is not JSON: {problem} (character {at}).{advice}")
