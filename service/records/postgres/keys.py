"""Values as bytes that sort as SQLite sorts the values: numbers first, then text by code point.

The key of a number is the nearest double, transformed so that its bytes sort, and the small
difference of a whole number from it. So equal numbers have equal keys, whether written as 1 or as
1.0.
"""

import struct
from decimal import Decimal
from hashlib import blake2b
from typing import Final

from service.records.engine.selections import Value

_NUMBER, _TEXT = b"\x01", b"\x02"
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_MIDDLE: Final = 1 << 15
_WHOLE: Final = range(-(2**63), 2**63)
DIGEST_BYTES: Final = 16


def key_of(value: Value) -> bytes:
    """The key of a value."""
    if isinstance(value, str):
        return _TEXT + value.encode()
    near = float(value)
    rest = value - int(near) if isinstance(value, int) else 0
    (bits,) = struct.unpack(">Q", struct.pack(">d", near + 0.0))
    bits = bits ^ _ALL if bits & _SIGN else bits | _SIGN
    return _NUMBER + struct.pack(">QH", bits, rest + _MIDDLE)


def value_of(key: bytes) -> Value:
    """The value of a key; a whole number is returned as an integer."""
    if key[:1] == _TEXT:
        return key[1:].decode()
    bits, rest = struct.unpack(">QH", key[1:])
    bits = bits ^ _SIGN if bits & _SIGN else bits ^ _ALL
    near: float = struct.unpack(">d", struct.pack(">Q", bits))[0]
    whole = int(near) + rest - _MIDDLE
    return whole if near.is_integer() and whole in _WHOLE else near


def number_of(value: Value) -> Decimal | None:
    """A number as the database stores it next to its key: a float has a fraction, at least .0."""
    if isinstance(value, str):
        return None
    if isinstance(value, int):
        return Decimal(value)
    exact = Decimal(repr(value))
    _, _, exponent = exact.as_tuple()
    whole = isinstance(exponent, int) and exponent >= 0
    return exact.quantize(Decimal("0.1")) if whole and abs(value) < _SIGN else exact


def kept_value(key: bytes, number: Decimal | None) -> Value:
    """The value of a cell."""
    if number is None:
        return value_of(key)
    _, _, exponent = number.as_tuple()
    whole = exponent == 0 and int(number) in _WHOLE
    return int(number) if whole else float(number)


def group_key(value: Value) -> bytes:
    """A short key for values that are compared only for equality."""
    return blake2b(key_of(value), digest_size=DIGEST_BYTES).digest()
