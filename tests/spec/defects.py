"""Twenty-two ways in which an adapter like this one can fail its readers, stated as promises.

A test names the defects that it rules out with `@lacks("D7")`. `test_manifest` fails if a defect
has no test.
"""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

DEFECTS: dict[str, str] = {
    "D1": "What is shown as evidence holds the match, for queries of several words too.",
    "D2": "Marks are balanced wherever a window is cut.",
    "D3": "Every record of a page has its id and its reads in the text, and none is lost.",
    "D4": "Every hit of a page has its id in the text.",
    "D5": "No source of a package starves, and its cursor goes on where each source stopped.",
    "D6": "A source that is away or silent costs its own hits only, in time, and is told in text.",
    "D7": "Every id a record can have is printed whole, on one line, and can be called.",
    "D8": "A record is known by the id of its envelope, whatever its data say.",
    "D9": "No bytes in disguise are shown, and both channels are bounded.",
    "D10": "A blob leads to an address that gives its bytes to the same token.",
    "D11": "Numbers and objects are read as JSON where an upstream windows text only.",
    "D12": "What an upstream warns of stands in the text.",
    "D13": "Every answer has a request id, and none is null.",
    "D14": "Related records cost no request of their own, and a refusal says what works.",
    "D15": "The schema's text says all that can be asked, of every field, in the owner's labels.",
    "D16": "A document has five members; its address is absolute and in full, or empty.",
    "D17": "The read of a window lands on its match.",
    "D18": "Headers are plain values, and record text cannot pass for them.",
    "D19": "Offsets count code points, so that reading on skips nothing.",
    "D20": "Other verbs, origins and audiences are refused at once; nothing is built per request.",
    "D21": "A bad argument is an error in both channels that says how to put it right.",
    "D22": "No error asks for an argument that no tool takes.",
}


def lacks(*ids: str) -> Callable[[Test], Test]:
    """Marks a test as showing that these defects are absent; unknown ids fail at import."""
    unknown = [name for name in ids if name not in DEFECTS]
    if unknown or not ids:
        raise LookupError(f"No such defect: {unknown}. tests/spec/defects.py lists them.")
    return lambda test: test
