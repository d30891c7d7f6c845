from collections.abc import Sequence

_Question = tuple[bytes, float, float, int, float, float, float, float, int, float, float, int]
_Segments = tuple[tuple[bytes, ...], ...]

def match(
    question: _Question,
    lists: tuple[tuple[int, bool, bytes, _Segments], ...],
    fields: tuple[bytes, bytes],
    runs: tuple[bytes, bytes, bytes],
    last_seq: int,
    most: int,
    every: bool,
    apart: int,
    passages_max: int,
    stride: int,
    budget: int,
    seconds: float,
) -> tuple[
    int, int, float, float, list[tuple[int, float, int, int, list[tuple[int, int, int]]]]
]: ...
def score(
    question: _Question,
    words: tuple[tuple[int, bytes], ...],
    records: list[tuple[float, tuple[tuple[str, int], ...]]],
) -> list[float]: ...
def rows(term: bytes, segments: _Segments) -> list[tuple[int, list[int]]]: ...
