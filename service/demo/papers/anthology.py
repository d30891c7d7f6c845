"""Composes the one very long paper: essays from files, then the log of an invented lighthouse."""

from collections.abc import Iterable
from itertools import count

from service.demo.papers.keeper import log


def compose(opening: str, essays: Iterable[str], closing: str) -> str:
    """The whole text; an essay's first line is its heading. Chapters are numbered throughout."""
    number = count(1)
    parts = [opening]
    parts.append("## Part One: Essays\n")
    for essay in essays:
        heading, _, text = essay.partition("\n")
        parts.append(f"### {next(number)} {heading}\n\n{text.strip()}\n")
    parts.append("## Part Two: The Log of the Skerra Light\n")
    for heading, text in log():
        parts.append(f"### {next(number)} {heading}\n\n{text}\n")
    return "\n".join((*parts, closing))
