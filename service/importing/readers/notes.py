"""Notes: Markdown and plain text with front matter, links and attachments; Google Keep exports."""

import re
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from evidence.limits import BUDGETS
from service.importing.json_values import loads
from service.importing.rows import Attached, manifest, row, stream
from service.importing.source import Format, Item, Source, as_text, titled
from evidence.manifest.forms import FORMS
from service.records.intake import Row, content_key
from evidence.times import microseconds, moment

NOTES: Final = "notes"
MANIFEST = manifest(
    stream(
        NOTES,
        "id:id title:title folder:group text:text written_at:time tags:list aliases:list"
        " links:list properties:object",
        attached=True,
    )
)
BEGINS = re.compile(rb"---\r?\n[\w-]+ *:|# \S")
_MARKS: Final = ("---", "...")
SUFFIXES = (".md", ".markdown", ".mdown", ".txt", ".text")
#: The most characters of front matter.
FRONT_CHARS: Final = 65_536
# These take linear time: no attempt passes the point where another can begin.
_HEADING: Final = re.compile(r"^# +(#*+[^\s#]++(?:[^\S\n]*+#*+[^\s#]++)*+)", re.M)
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*+`", re.DOTALL)
_WIKI: Final = re.compile(r"(!?)\[\[([^][|#\n]++)(?:#[^][|\n]*+)?(?:\|[^][\n]*+)?\]\]")
_LINK: Final = re.compile(r'(!?)\[[^][\n]*+\]\(<?([^][)>\s]++)>?(?:\s++"[^"]*+")?\)')
_TAG: Final = re.compile(r"(?<![\w&/#])#([^\W\d_][\w/-]*+)")
_DAY: Final = re.compile(r"(\d{4})[-_]?(\d\d)[-_]?(\d\d)")
_TIMES: Final = ("date", "created", "created_at", "created at", "updated", "modified")


def read(source: Source) -> Iterator[Item]:
    """The note of a file and the files that it embeds."""
    yield 1, partial(_note, source)


def _note(source: Source) -> Iterator[Row]:
    with as_text(source, newline="") as opened:
        text = opened.read(BUDGETS.import_row_bytes)
    front, body = _front(source, text)
    path = PurePosixPath(source.name)
    key = source.tree.inside(source.name)
    plain = _CODE.sub("", body)
    heading = _HEADING.search(plain)
    title = front.get("title") or (heading[1] if heading else titled(path.stem))
    targets = [(bool(link[1]), link[2]) for link in _WIKI.finditer(plain)]
    targets += [(bool(link[1]), link[2]) for link in _LINK.finditer(plain) if "://" not in link[2]]
    notes, files = _resolved(source, targets)
    tags = _words(front.get("tags")) + _TAG.findall(plain)
    at = next((_time(value) for name in _TIMES if (value := front.get(name))), None)
    data: dict[str, Any] = {
        "id": key if len(key.encode()) < 500 else content_key({"id": key}),
        "title": str(title),
        "folder": str(PurePosixPath(key).parent).strip("."),
        "text": body,
        "written_at": at or _time(path.stem),
        "tags": list(dict.fromkeys(tag.lstrip("#") for tag in tags)),
        "aliases": _words(front.get("aliases")),
        "links": notes,
        "properties": {name: _plain(value) for name, value in front.items()},
    }
    attached = Attached(source)
    yield row(source, NOTES, data)
    yield from attached.files(data["id"], files, at=data["written_at"])
    attached.report()


def _front(source: Source, text: str) -> tuple[dict[str, Any], str]:
    """The front matter of a note, and the text after it."""
    head = text[:FRONT_CHARS].split("\n")
    ends = (number for number, line in enumerate(head) if number and line.rstrip() in _MARKS)
    if head[0].rstrip("\r") != "---" or (end := next(ends, None)) is None:
        return {}, text
    import yaml  # imported for front matter only

    matter = "\n".join(head[1:end]).replace("\t", "  ")
    try:
        if "*" in matter and any(isinstance(token, yaml.AliasToken) for token in yaml.scan(matter)):
            raise ValueError("aliases are not read")
        front = yaml.safe_load(matter)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"it is not valid YAML: {' '.join(str(error).split())[:120]}"
        source.notes.append(f"The front matter is kept as text, because {problem}.")
        return {}, text
    if not isinstance(front, dict):
        return {}, text
    body = text[sum(len(line) + 1 for line in head[: end + 1]) :]
    return {str(name).lower(): value for name, value in front.items()}, body


def _resolved(source: Source, targets: list[tuple[bool, str]]) -> tuple[list[str], list[str]]:
    """The ids of linked notes, or their names if they are missing; and the embedded files."""
    notes, files = [], []
    for embedded, target in targets:
        reference = target.strip().partition("#")[0]
        places = (source.tree.find(reference + end, source.name) for end in ("", *SUFFIXES))
        file = next(filter(None, places), None)
        if file is not None and PurePosixPath(file.name).suffix.lower() in SUFFIXES:
            notes.append(source.tree.inside(file.name))
        elif file is not None or embedded:
            files.append(reference)
        elif reference and not re.match("[a-z]+:", reference):
            notes.append(reference)
    return list(dict.fromkeys(notes)), list(dict.fromkeys(files))


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.replace(",", " ").split()
    return [str(word) for word in value if word] if isinstance(value, list) else []


def _time(value: Any) -> str | None:
    """A time in front matter, or the day at the beginning of a note's name."""
    if isinstance(value, date):
        return value.isoformat()
    match = _DAY.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        day = date(*map(int, match.groups())).isoformat()
    except ValueError:
        return None
    return value if microseconds(value) is not None else day


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(element) for name, element in value.items()}
    if isinstance(value, (list, set)):
        return [_plain(element) for element in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


FORMAT = Format("notes", SUFFIXES, BEGINS, read, MANIFEST)


_KEEP: Final = re.compile(
    rb'\s*\{(?=[^\x00]*?"(?:textContent|listContent)"\s*:)[^\x00]*?"userEditedTimestampUsec"\s*:'
)


def read_keep(source: Source) -> Iterator[Item]:
    """The note in a file of Google Keep; notes in the trash are left out and counted."""
    page = str(PurePosixPath(source.name).with_suffix(".html"))
    source.tree.used |= {page} & source.tree.files.keys()  # the same note
    yield 1, partial(_keep, source, source.file.read(BUDGETS.import_row_bytes))


def _keep(source: Source, content: bytes) -> Iterator[Row]:
    data = loads(content)
    if data.get("isTrashed") is True:
        source.notes.append("Left out, because it is in the trash.")
        return

    def texts(name: str, member: str) -> list[str]:
        items = data.get(name)
        items = items if isinstance(items, list) else []
        strings = (item.get(member) for item in items if isinstance(item, dict))
        return [text for text in strings if isinstance(text, str) and text]

    title, body = str(data.get("title") or ""), str(data.get("textContent") or "")
    text = "\n".join(filter(None, [body, *(f"- {item}" for item in texts("listContent", "text"))]))
    created = data.get("createdTimestampUsec") or data.get("userEditedTimestampUsec")
    identity = {"created": created, "title": title, **({} if title else {"text": text})}
    at = FORMS["unix-microseconds"](created)
    note: dict[str, Any] = {
        "id": content_key(identity)[:32],
        "title": title or text.partition("\n")[0][:80],
        "folder": "Keep",
        "text": text,
        "written_at": None if at is None else moment(at),
        "tags": texts("labels", "name"),
        "links": texts("annotations", "url"),
        "properties": {name: True for name in ("isPinned", "isArchived") if data.get(name) is True},
    }
    # Older versions read a note as any JSON document.
    yield row(source, NOTES, note)._replace(former=(source.stream, content_key(data), {}))
    attached = Attached(source)
    yield from attached.files(note["id"], texts("attachments", "filePath"), at=note["written_at"])
    attached.report()


KEEP = Format("keep", (), _KEEP, read_keep, MANIFEST, any_extension=True)
