"""Text reads as a native speaker writes it: phrases that were mended do not come back."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.__main__ import rung
from service.cli.deferred import loaded
from service.mcp.surface import PapersSurface, RecordsSurface
from tests.architecture.sources import files, text, tree

LIST = Path("tests/architecture/phrases.toml")
#: A phrase and what to write instead. A phrase is a regular expression, without regard to case.
PHRASES: dict[str, str] = tomllib.loads(text(LIST))["phrases"]
#: Decisions and the changelog are records of their day; the tour is made of docstrings.
RECORDS = ("docs/adr/", "docs/tour.md")


def pages() -> Iterator[tuple[str, str]]:
    """The pages that people read, without what programs print in them."""
    for path in (Path("README.md"), Path("CONTRIBUTING.md"), *files("docs", ending=".md")):
        if not path.as_posix().startswith(RECORDS):
            yield path.as_posix(), re.sub(r"\s+", " ", text(path))


def help_texts() -> Iterator[tuple[str, str]]:
    """The help of every command and option."""
    commands = [(f"rung {name}", loaded(one)) for name, one in rung.commands.items()]
    for name, command in commands:
        yield f"{name} --help", re.sub(r"\s+", " ", command.help or "")
        for parameter in command.params:
            yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
        inner = getattr(command, "commands", {})
        commands += [(f"{name} {word}", loaded(one)) for word, one in inner.items()]


def model_texts() -> Iterator[tuple[str, str]]:
    """What every model reads before its first call."""
    for surface in (RecordsSurface(), PapersSurface()):
        yield f"instructions of {surface.name}", surface.instructions
        for tool in surface.tools:
            yield f"tool {tool['name']}", json.dumps(tool, ensure_ascii=False)


def messages() -> Iterator[tuple[str, str]]:
    """Texts that code and templates print."""
    for path in files("evidence", "renderers", "service"):
        parents = [node for node in ast.walk(tree(path)) if not isinstance(node, ast.Expr)]
        for node in parents:
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.Constant) and " " in str(part.value):
                    yield path.as_posix(), str(part.value)
    for ending in (".html", ".toml"):
        for path in files("service", ending=ending):
            yield path.as_posix(), re.sub(r"\s+", " ", text(path))


@pytest.mark.parametrize("texts", [pages, help_texts, model_texts, messages])
def test_no_text_has_a_phrase_that_was_mended(texts: object) -> None:
    assert callable(texts)
    found = [
        f"{where}: {match[0]!r}; write: {better}"
        for where, read in texts()
        for phrase, better in PHRASES.items()
        for match in re.finditer(phrase, read, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_the_list_finds_its_own_phrases() -> None:
    assert len(PHRASES) > 30
    for phrase, better in PHRASES.items():
        assert better and not re.search(phrase, better, re.IGNORECASE), phrase
