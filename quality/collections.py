"""Collections: records, questions about them, and the records that answer each question.

A collection is a folder with `about.json`, `documents.ndjson` and `queries.ndjson`. A document has
`id` and `group`, and any of `title`, `text`, `caption`, `author`, `at`, `session` and `order`. A
query has `id`, `group`, `text`, `category` and `relevant`, which maps document ids to grades.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

Document = dict[str, Any]

OWN = Path(__file__).parent / "own"
#: The fields whose words are searched.
SEARCHED = ("title", "text", "caption", "author")


@dataclass(frozen=True, slots=True)
class Query:
    """One question. `relevant` maps the ids of the right documents to their grades."""

    id: str
    group: str
    text: str
    category: str
    relevant: dict[str, int]


@dataclass(frozen=True)
class Collection:
    """Documents and queries in groups. A query is asked of the documents of its group only."""

    name: str
    kind: str
    documents: list[Document]
    queries: list[Query]
    source: str = ""
    languages: dict[str, str] = field(default_factory=dict)

    @cached_property
    def groups(self) -> dict[str, list[Document]]:
        """The documents of each group, in the order of the file."""
        groups: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents:
            groups[document["group"]].append(document)
        return dict(groups)

    @cached_property
    def sessions(self) -> dict[str, str]:
        """Document id to the id of its session; empty if no document has one."""
        return {
            each["id"]: f"{each['group']}:{each['session']}"
            for each in self.documents
            if "session" in each
        }

    def language(self, group: str) -> str:
        """The ISO 639-1 code of a group: declared, or the group's own name, else English."""
        return self.languages.get(group) or (group if len(group) == 2 else "en")


def read(folder: Path) -> Collection:
    """The collection in a folder."""
    about = orjson.loads((folder / "about.json").read_bytes())
    queries = [
        Query(**{name: row[name] for name in Query.__slots__})
        for row in _rows(folder / "queries.ndjson")
    ]
    return Collection(
        name=folder.name,
        kind=about["kind"],
        documents=list(_rows(folder / "documents.ndjson")),
        queries=queries,
        source=about.get("source", ""),
        languages=about.get("languages", {}),
    )


def across(collection: Collection) -> Collection:
    """Every third question of each group, asked of all other groups; only if ids differ by these.

    Its categories are pairs of groups: the one of the question, the one of the documents.
    """
    asked: dict[str, list[Query]] = defaultdict(list)
    for query in collection.queries:
        asked[query.group].append(query)
    queries = [
        Query(
            f"{query.id}>{other}",
            other,
            query.text,
            f"{group}>{other}",
            {f"{other}:{id.split(':', 1)[1]}": grade for id, grade in query.relevant.items()},
        )
        for group, each in asked.items()
        for query in each[::3]
        for other in collection.groups
        if other != group
    ]
    kind = "questions in a different language from the documents"
    return replace(collection, name="across", kind=kind, queries=queries)


def find(folder: Path) -> list[Path]:
    """The folders of all collections in a folder, sorted by name."""
    return sorted(path.parent for path in folder.glob("*/about.json"))


def words_of(document: Document) -> str:
    """The searched fields of a document as one text."""
    return "\n".join(document[name] for name in SEARCHED if document.get(name))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from (orjson.loads(line) for line in file)
