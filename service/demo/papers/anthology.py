"""The one very long paper: essays that stand in files, then the log of an invented lighthouse."""

from collections.abc import Iterable
from itertools import count

from service.demo.papers.keeper import log

OPENING = """\
# {title}

{authors}

*Written for this project and given to the public domain under CC0 1.0.*

## Abstract

{abstract}

The essays are about real lighthouses. The Skerra light, its keeper, its ships and its weather are \
invented; sunsets, moons and high waters are computed for a place that could be there.
"""

CLOSING = """\
## Afterword

The lamp of Skerra burned vapour of oil for thirty years and one evening more. The tower is a day \
mark now. Who climbs it will find a nail to the left of a barometer, the third one, and on the \
nail nothing."""


def compose(title: str, authors: str, abstract: str, essays: Iterable[str]) -> str:
    """The whole text; an essay's first line is its heading. Chapters are numbered throughout."""
    number = count(1)
    parts = [OPENING.format(title=title, authors=authors, abstract=abstract)]
    parts.append("## Part One: Essays\n")
    for essay in essays:
        heading, _, text = essay.partition("\n")
        parts.append(f"### {next(number)} {heading}\n\n{text.strip()}\n")
    parts.append("## Part Two: The Log of the Skerra Light\n")
    for heading, text in log():
        parts.append(f"### {next(number)} {heading}\n\n{text}\n")
    return "\n".join((*parts, CLOSING)) + "\n"
