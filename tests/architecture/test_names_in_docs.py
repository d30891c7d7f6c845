"""How-tos and decisions name what exists: files, settings, and names of the code."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.architecture.sources import CODE, ROOT, files, text, tree

PAGES = [*files("docs/how-to", ending=".md"), *sorted(Path("docs/adr").glob("0*.md"))]
#: What the code may name, in whatever language.
ENDINGS = (".py", ".sql", ".toml", ".js", ".html", ".txt", ".conf", ".json")
BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODED = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")
#: Programs and settings of others.
FOREIGN = frozenset(
    {
        "pg_dump",
        "client_header_timeout",
        "client_body_timeout",
        "send_timeout",
        "csv.Sniffer",
        "sources.toml",
    }
)
PLACEHOLDER = "NAME"


@cache
def words() -> frozenset[str]:
    """Every word in the code and its data."""
    return frozenset(
        word
        for ending in ENDINGS
        for path in files(*CODE, "examples", ending=ending)
        for word in re.findall(r"\w+", text(path))
    )


@cache
def classes() -> frozenset[str]:
    return frozenset(
        node.name
        for path in files(*CODE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    )


@cache
def file_names() -> frozenset[str]:
    return frozenset(path.name for path in files(".", ending=""))


def is_there(name: str) -> bool:
    """Whether a coded word names something that exists; true of everything but names and paths."""
    if PLACEHOLDER in name or name in FOREIGN:
        return True
    if re.fullmatch(r"[\w.-]+\.(?:py|sql|toml|js|html)", name):
        return name in file_names()
    if re.fullmatch(r"(?:service|evidence|renderers|tests|bench|docs|quality)/[\w./-]*", name):
        return (ROOT / name).exists()
    parts = name.removesuffix("()").split(".")
    is_name = DOTTED.fullmatch(name) and (len(parts) > 1 or "_" in name or name.endswith("()"))
    if not is_name:
        return True
    is_class = len(parts) > 1 and parts[0].istitle()
    return all(part in words() for part in parts) and (not is_class or parts[0] in classes())


def test_the_names_in_pages_exist() -> None:
    current = [page for page in PAGES if "uperseded" not in text(page).split("\n## ")[0]]
    coded = [
        (page.stem, name) for page in current for name in CODED.findall(BLOCK.sub("", text(page)))
    ]
    assert [each for each in coded if not is_there(each[1])] == []
