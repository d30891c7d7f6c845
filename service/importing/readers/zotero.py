"""Zotero libraries: each item with its creators, tags, notes, annotations and file names.

A library is a database, or JSON of a source with answers of the web API.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import orjson

from service.importing.databases import open_database
from service.importing.rows import row, stream, text_of
from service.importing.source import Format, Item, Source
from service.records.intake import Row

ITEMS: Final = "items"
MANIFEST: Final = {
    "streams": [
        stream(
            ITEMS,
            "id:id title:title kind:group creators:list abstract:text date:words publication:words"
            " tags:list collections:list notes:list annotations:list files:list url:words doi:id"
            " other:list added_at:time changed_at:when",
        )
    ]
}
#: All but the items of feeds and the trash; `parent` is the item of a note, a file or a highlight.
_ITEMS: Final = """
    SELECT i.itemID, l.type = 'user' AS is_own, i.libraryID, i.key, typeName AS kind, n.title,
        dateAdded AS added, dateModified AS changed, note, path, text, comment,
        coalesce(n.parentItemID, f.parentItemID, a.parentItemID) AS parent
    FROM items i JOIN libraries l USING (libraryID) JOIN itemTypes USING (itemTypeID)
    LEFT JOIN itemNotes n USING (itemID) LEFT JOIN itemAttachments f USING (itemID)
    LEFT JOIN itemAnnotations a USING (itemID)
    WHERE l.type != 'feed' AND i.itemID NOT IN (SELECT itemID FROM deletedItems)
    ORDER BY a.sortIndex, i.itemID
"""
#: (item, value) in order, by the field that has them.
_LISTS: Final = {
    "creators": """
        SELECT itemID, trim(coalesce(firstName, '') || ' ' || lastName)
            || iif(creatorType = 'author', '', ' (' || creatorType || ')')
        FROM itemCreators JOIN creators USING (creatorID) JOIN creatorTypes USING (creatorTypeID)
        ORDER BY itemID, orderIndex
    """,
    "tags": "SELECT itemID, name FROM itemTags JOIN tags USING (tagID) ORDER BY name",
    "collections": """
        SELECT itemID, collectionName FROM collectionItems JOIN collections USING (collectionID)
        ORDER BY collectionName
    """,
}
_FIELDS: Final = """
    SELECT itemID, fieldName, value FROM itemData JOIN fields USING (fieldID)
    JOIN itemDataValues USING (valueID) ORDER BY itemID, fieldID
"""
#: Fields of Zotero that are a field of ours. Some types of items name their title differently.
_OWN: Final = {
    **dict.fromkeys(("title", "caseName", "nameOfAct", "subject"), "title"),
    **{"abstractNote": "abstract", "publicationTitle": "publication", "date": "date"},
    **{"url": "url", "DOI": "doi"},
}


#: Members of an item in the web API that are no fields of it.
_TECHNICAL: Final = re.compile(
    "key|itemType|parentItem|date(Added|Modified)|note|annotation.*|linkMode|contentType|charset"
    "|filename|path|md5|mtime"
)

#: The items of a library by their keys, and the fields of each.
_Library = tuple[dict[Any, Mapping[str, Any]], dict[Any, dict[str, Any]]]


def read(source: Source) -> Iterator[Item]:
    """The items that belong to no other, with what belongs to them."""
    is_json = source.file.read(1) == b"{"
    source.file.seek(0)
    items, fields = (_in_json if is_json else _in_database)(source)
    for key, item in items.items():
        owner = item["parent"] or key
        if owner in items and items[owner]["parent"]:  # an annotation in a file of an item
            owner = items[owner]["parent"]
        for name, text in _parts(item, fields[key].get("title", "")):
            fields[owner].setdefault(name, []).append(text)
    for number, (key, item) in enumerate(items.items(), start=1):
        if not item["parent"]:
            yield number, partial(_item, source, item, fields[key])


def _in_database(source: Source) -> _Library:
    fields: dict[int, dict[str, Any]] = defaultdict(dict)
    with open_database(source) as database:
        database.row_factory = sqlite3.Row
        items = dict[Any, Mapping[str, Any]]()
        items |= {item["itemID"]: dict(item) for item in database.execute(_ITEMS)}
        for name, statement in _LISTS.items():
            for key, value in database.execute(statement):
                fields[key].setdefault(name, []).append(value)
        for key, name, value in database.execute(_FIELDS):
            _add(fields[key], name, str(value))
    return items, fields


def _add(fields: dict[str, Any], name: str, value: str) -> None:
    if name in _OWN:
        fields[_OWN[name]] = value
    else:
        fields.setdefault("other", []).append(f"{name}: {value}")


def _in_json(source: Source) -> _Library:
    document = orjson.loads(source.file.read())
    items, fields = dict[str, Mapping[str, Any]](), dict[str, dict[str, Any]]()
    for item in document["items"]:
        data, own = item["data"], defaultdict[str, Any](list)
        for name, value in data.items():
            if value and isinstance(value, str) and not _TECHNICAL.fullmatch(name):
                _add(own, name, value)
        parsed = item.get("meta", {}).get("parsedDate")
        own["date"] = parsed or f"0000 {data.get('date', '')}"
        own["creators"] = [_creator(creator) for creator in data.get("creators", ())]
        own["tags"] = sorted(tag["tag"] for tag in data.get("tags", ()))
        names = (document["collections"].get(key) for key in data.get("collections", ()))
        own["collections"] = sorted(filter(None, names))
        items[data["key"]] = {
            **{"key": data["key"], "is_own": not document["group"], "kind": data["itemType"]},
            **{"libraryID": document["group"], "parent": data.get("parentItem")},
            **{"added": data["dateAdded"][:19], "changed": data["dateModified"][:19]},
            **{"note": data.get("note"), "path": data.get("filename") or data.get("path")},
            **{"text": data.get("annotationText"), "comment": data.get("annotationComment")},
            "title": text_of(data["note"]).partition("\n")[0] if data.get("note") else None,
        }
        fields[data["key"]] = {name: value for name, value in own.items() if value}
    return items, fields


def _creator(creator: dict[str, str]) -> str:
    parts = (creator.get(part) for part in ("name", "firstName", "lastName"))
    name, role = " ".join(filter(None, parts)), creator["creatorType"]
    return name if role == "author" else f"{name} ({role})"


def _parts(item: Mapping[str, Any], title: str) -> Iterator[tuple[str, str]]:
    """What an item adds to the one that it belongs to: (field, text)."""
    if item["note"]:
        yield "notes", text_of(item["note"])
    if item["kind"] == "attachment":
        yield "files", re.split(r"[:/\\]", item["path"])[-1] if item["path"] else title
    if item["text"] or item["comment"]:
        yield "annotations", "\n".join(filter(None, (item["text"], item["comment"])))


def _item(source: Source, item: Mapping[str, Any], fields: dict[str, Any]) -> Row:
    key = item["key"] if item["is_own"] else f"{item['libraryID']}/{item['key']}"
    data = {"id": key, "kind": item["kind"], "title": item["title"], **fields}
    data |= {f"{name}_at": f"{item[name].replace(' ', 'T')}Z" for name in ("added", "changed")}
    data["date"] = _date(fields.get("date", ""))
    return row(source, ITEMS, data)


def _date(text: str) -> str:
    """A date in numbers, without unknown parts; as it was written if even the year is unknown."""
    numbers, _, written = text.partition(" ")
    numbers = numbers.removesuffix("-00").removesuffix("-00")
    return written if numbers == "0000" else numbers


FORMAT: Final = Format("zotero", (), re.compile(rb"(?!)"), read, MANIFEST)
