"""Reads Word, PowerPoint and OpenDocument files: the parts of an archive that contain text.

Links, templates, macros and embedded objects are not read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import Any, Final
from zipfile import ZipFile

from evidence.errors import InvalidRequest
from service.importing.source import SAFE_XML

#: A label, and the text below it.
Part = tuple[str, str]
#: Elements with text that is not of the document, or not text.
_SKIPPED: Final = frozenset(
    "Fallback pPr rPr tabs tabLst moveFrom fld tracked-changes notes forms".split()
)
_ENDS: Final = {
    **dict.fromkeys(("p", "h", "br", "cr", "line-break"), "\n"),
    **{"tab": "\t", "noBreakHyphen": "-"},
}
_PARAGRAPHS: Final = ("p", "h")
_SPACES: Final = re.compile(r"[ \t\r\n]+")
_MOST_SPACES: Final = 100
_DOCUMENT: Final = re.compile(r"word/document\d*\.xml")


@dataclass(slots=True)
class Document:
    """What a file says about itself (`title`, `author`, `modified_at`), and its parts in order."""

    about: dict[str, Any]
    parts: Iterator[Part]


def xml(archive: ZipFile, name: str) -> Any:
    """The root element of a member. Entities and remote parts are not read, but refused."""
    from lxml.etree import XMLParser, XMLSyntaxError, parse

    parser = XMLParser(**SAFE_XML, remove_comments=True)
    try:
        with archive.open(name) as member:
            tree = parse(member, parser)
    except KeyError:
        raise InvalidRequest(f"The file has no part {name}.") from None
    except XMLSyntaxError as error:
        raise InvalidRequest(
            f"The file's part {name} is encrypted or is not valid XML: {error}."
        ) from error
    declared = tree.docinfo.internalDTD
    if declared is not None and any(declared.iterentities()):
        raise InvalidRequest("The file declares XML entities, which office programs never write.")
    return tree.getroot()


def local(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def first(root: Any, *names: str) -> str | None:
    """The text of the first of some elements that has any; names are local."""
    texts = {local(element): element.text for element in reversed(list(root.iter("{*}*")))}
    return next((text.strip() for name in names if (text := texts.get(name))), None)


def pages(root: Any, *, mixed: bool = False) -> list[str]:
    """The text below an element, cut at page breaks. In `mixed` text, any element may hold it."""
    from lxml.etree import iterwalk

    texts, pieces, depth = list[str](), list[str](), 0

    def turn() -> None:
        texts.append("".join(pieces))
        pieces.clear()

    walk = iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = local(element)
        if event == "start":
            if name in _SKIPPED and element is not root:
                walk.skip_subtree()
                continue
            depth += name in _PARAGRAPHS
            if element.text and (depth if mixed else name == "t"):
                pieces.append(_SPACES.sub(" ", element.text) if mixed else element.text)
            if _breaks(element, name, pieces):
                turn()
            continue
        depth -= name in _PARAGRAPHS
        _end(element, name, pieces)
        if mixed and depth and element.tail:
            pieces.append(_SPACES.sub(" ", element.tail))
    turn()
    return texts


def _breaks(element: Any, name: str, pieces: list[str]) -> bool:
    """True if a page ends here. Where Word last broke one, the break may be an explicit one."""
    if name == "br":
        return any(value == "page" for value in element.attrib.values())
    if name == "lastRenderedPageBreak":
        return any(not text.isspace() for text in pieces)
    return name == "soft-page-break"


def _end(element: Any, name: str, pieces: list[str]) -> None:
    """Adds what the end of an element means: the end of a line or a cell."""
    if name == "s":  # spaces of OpenDocument
        count = next(iter(element.attrib.values()), "1")
        pieces.append(" " * min(int(count) if count.isdecimal() else 1, _MOST_SPACES))
    elif name in ("tc", "table-cell"):
        while pieces and pieces[-1] == "\n":
            pieces.pop()
        pieces.append("\t")
    elif name in ("tr", "table-row"):
        while pieces and pieces[-1] == "\t":
            pieces.pop()
        pieces.append("\n")
    elif name in _ENDS:
        pieces.append(_ENDS[name])


def numbered(texts: list[str], label: str = "page") -> Iterator[Part]:
    """Parts with numbers; a document without page breaks is one part."""
    if len(texts) == 1:
        yield "text", texts[0]
    else:
        yield from ((f"{label} {number}", text) for number, text in enumerate(texts, start=1))


def _core(archive: ZipFile) -> dict[str, Any]:
    if "docProps/core.xml" not in archive.namelist():
        return {}
    root = xml(archive, "docProps/core.xml")
    about = {"title": first(root, "title"), "author": first(root, "creator")}
    return about | {"modified_at": first(root, "modified")}


def word(archive: ZipFile) -> Document:
    """A Word document: its pages where Word has saved their breaks, then notes and comments."""
    names = archive.namelist()
    main = next(filter(_DOCUMENT.fullmatch, names), "word/document.xml")

    def parts() -> Iterator[Part]:
        yield from numbered(pages(xml(archive, main)))
        for name in ("footnotes", "endnotes", "comments"):
            if f"word/{name}.xml" in names:
                yield name, "".join(pages(xml(archive, f"word/{name}.xml")))

    return Document(_core(archive), parts())


def _related(archive: ZipFile, name: str) -> dict[str, tuple[str, str]]:
    """(kind, member) of the parts of the archive that a part refers to, by their ids."""
    relations = f"{dirname(name)}/_rels/{name.rpartition('/')[2]}.rels"
    if relations not in archive.namelist():
        return {}
    return {
        str(relation.get("Id")): (
            str(relation.get("Type")).rpartition("/")[2],
            normpath(join("/", dirname(name), str(relation.get("Target")))).lstrip("/"),
        )
        for relation in xml(archive, relations).iter("{*}Relationship")
        if relation.get("TargetMode") != "External"
    }


def slides(archive: ZipFile) -> Document:
    """A PowerPoint presentation: its slides in their order, each followed by its notes."""
    main = "ppt/presentation.xml"
    members = _related(archive, main)
    entries = xml(archive, main).iter("{*}sldId")
    keys = (key for entry in entries for name, key in entry.attrib.items() if name.endswith("}id"))
    order = list(dict.fromkeys(keys))

    def parts() -> Iterator[Part]:
        for number, key in enumerate(order, start=1):
            if key not in members:
                continue
            name = members[key][1]
            yield f"slide {number}", "".join(pages(xml(archive, name)))
            for kind, notes in _related(archive, name).values():
                if kind == "notesSlide":
                    yield f"notes on slide {number}", "".join(pages(xml(archive, notes)))

    return Document(_core(archive), parts())


def opendocument(archive: ZipFile) -> Document:
    """A text or a presentation in an OpenDocument file."""
    if "META-INF/manifest.xml" in archive.namelist():
        if next(xml(archive, "META-INF/manifest.xml").iter("{*}encryption-data"), None) is not None:
            raise InvalidRequest("The file is encrypted. Save it without a password.")
    body = next(xml(archive, "content.xml").iter("{*}body"), None)
    content = next(iter(body), None) if body is not None else None
    if content is None or local(content) not in ("text", "presentation"):
        raise InvalidRequest(
            "The file is neither a text document nor a presentation. If it is a spreadsheet, save "
            "it as CSV."
        )
    about = {}
    if "meta.xml" in archive.namelist():
        root = xml(archive, "meta.xml")
        about = {"title": first(root, "title"), "modified_at": first(root, "date")}
        about["author"] = first(root, "initial-creator", "creator")

    def parts() -> Iterator[Part]:
        if local(content) == "text":
            yield from numbered(pages(content, mixed=True))
            return
        for number, slide in enumerate(content.iterchildren("{*}page"), start=1):
            yield f"slide {number}", "".join(pages(slide, mixed=True))
            for notes in slide.iterchildren("{*}notes"):
                yield f"notes on slide {number}", "".join(pages(notes, mixed=True))

    return Document(about, parts())
