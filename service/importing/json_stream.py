"""The values of a long JSON array, one in memory at a time."""

import codecs
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import BinaryIO, Final

from evidence.errors import InvalidRequest

PIECE_BYTES: Final = 1 << 20


def elements(name: str, file: BinaryIO) -> Iterator[bytes]:
    """The JSON of each object in a file that is one array.

    Raises InvalidRequest with its name.
    """
    decoder, utf_8 = JSONDecoder(), codecs.getincrementaldecoder("utf-8-sig")()
    text, place, size = "", 0, PIECE_BYTES
    while True:
        while place < len(text) and text[place] in " \t\r\n,[":
            place += 1
        if text[place : place + 1] == "]":
            return
        try:
            end = decoder.raw_decode(text, place)[1]
        except JSONDecodeError as error:
            piece = file.read(size)
            if not piece:
                raise InvalidRequest(f"{name} ends within a record: {error}.") from None
            try:
                text, place, size = text[place:] + utf_8.decode(piece), 0, size * 2
            except UnicodeDecodeError as wrong:
                raise InvalidRequest(
                    f"{name} is not UTF-8: {wrong}. Convert it to UTF-8."
                ) from None
        else:
            yield text[place:end].encode("utf-8", "surrogatepass")
            place, size = end, PIECE_BYTES
