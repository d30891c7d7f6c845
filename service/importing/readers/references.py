"""Papers and books from reference managers, in BibTeX and RIS."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from unicodedata import normalize

from evidence.limits import BUDGETS
from service.importing.rows import record_id, row, stream
from service.importing.source import Format, Item, Source, as_text, text_lines
from service.records.intake import Row, content_key

PAPERS: Final = "papers"
MANIFEST: Final = {
    "streams": [
        stream(
            PAPERS,
            "id:id title:title kind:group authors:list abstract:text published_at:time year:group"
            " date:words publication:words keywords:list notes:list url:words doi:id other:list",
        )
    ]
}
_BIBTEX: Final = re.compile(
    rb"(?:\s|%[^\n]*\n)*+@(?:comment|string|preamble|[a-z]{4,20})\s*[{(]\s*[^\s,{}=]+\s*[,={]"
    rb"|(?:[^@\n]{0,200}\n){1,10}?@(?:article|book|comment|in\w+|misc|online|string)\s*"
    rb"\{[^\n{}]*[,=]",
    re.IGNORECASE,
)
_RIS: Final = re.compile(rb"(?:\s*\d+\.?\r?\n)?\s*TY  - \w+")
_DAY: Final = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)(?:/|$)")
_YEAR: Final = re.compile(r"\d{4}")
_BLANKS: Final = re.compile(r"\s+")
_KEYWORDS: Final = re.compile(r"[,;\n]")


def _paper(source: Source, key: str, kind: str, fields: Mapping[str, Any]) -> Row | str:
    """A record from fields with our names; `other` has those without one."""
    if not any(fields.get(name) for name in ("title", "authors", "abstract", "doi", "url")):
        return "This entry has no title, authors, abstract, DOI or URL."
    date = fields.get("date") or ""
    day, year = _DAY.match(date), _YEAR.search(fields.get("year") or date)
    data = {
        **fields,
        "id": record_id(key or fields.get("doi") or content_key(dict(fields))[:32]),
        "kind": kind.lower(),
        "published_at": f"{day[1]}-{day[2]}-{day[3]}" if day else None,
        "year": year[0] if year else None,
    }
    return row(source, PAPERS, data)


_ENTRY: Final = re.compile(r"@\s*+([A-Za-z]++)\s*+[{(]\s*+")
_KEY: Final = re.compile(r"[^\s,={}\"]*+")
_NAME: Final = re.compile(r"[\s,]*+([^\s=,{}\"#()]++)\s*=")
_WORD: Final = re.compile(r"[^\s,#{}\"()]++")
_MARK: Final = re.compile(r"[{}\"]")
_AND: Final = re.compile(r"((?<!\s)\s++and\s++|[{}])", re.IGNORECASE)
_END: Final = re.compile(r"[\s,]*+[})]")
#: The longest value that is put together from macros.
_VALUE_CHARS: Final = 1 << 20
#: The fields of ours, with their names in BibTeX in order of preference.
_OWN: Final = {
    "title": ("title",),
    "abstract": ("abstract",),
    "date": ("date", "year"),
    "publication": ("journal", "journaltitle", "booktitle", "publisher", "school", "institution"),
    "url": ("url",),
    "doi": ("doi",),
}
_NOTES: Final = ("note", "annote", "annotation")
_VERBATIM: Final = frozenset({"url", "doi", "file", "eprint"})


#: What LaTeX writes for accents and letters.
_ACCENTS: Final = dict(
    zip("\"'`^~=.uvHckrdb", "\u0308\u0301\u0300\u0302\u0303\u0304\u0307\u0306\u030c\u030b\u0327"
        "\u0328\u030a\u0323\u0331")
)  # fmt: skip
_ACCENT: Final = re.compile(r"\\(?:([\"'`^~=.])|([uvHckrdb])(?=[\s{\\]))\s*+\{?\\?([A-Za-z])")
_LETTERS: Final = {
    **{"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å"},
    **{"AA": "Å", "l": "ł", "L": "Ł", "i": "ı", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ"},
    **{"textendash": "–", "textemdash": "—", "textquoteright": "’", "ldots": "…", "copyright": "©"},
    **dict.fromkeys(("emph", "textit", "textbf", "textrm", "texttt", "textsc", "it", "bf"), ""),
}
_COMMAND: Final = re.compile(r"\\([A-Za-z]+)(?:\{\}|\s(?=\S)|(?=\W|$))")
_BRACE: Final = re.compile(r"(?<!\\)[{}]")
_ESCAPED: Final = re.compile(r"\\([&%$#_{}])")


def read_bibtex(source: Source) -> Iterator[Item]:
    """The entries of a file; an entry ends at the next line that begins one."""
    strings, first, lines, size = dict[str, str](), 1, list[str](), 0
    with as_text(source) as text:
        for number, line in enumerate(text_lines(text), start=1):
            if _ENTRY.match(line.lstrip()):
                yield from _entry(source, first, "".join(lines), strings)
                first, lines, size = number, [], 0
            size += len(line)
            if size <= BUDGETS.import_row_bytes:
                lines.append(line)
        yield from _entry(source, first, "".join(lines), strings)


def _entry(source: Source, line: int, text: str, strings: dict[str, str]) -> Iterator[Item]:
    """The entries of a text, which is usually one. A macro is added to `strings`."""
    head = _ENTRY.search(text)
    kind = head[1].lower() if head else ""
    if head and kind == "string":
        strings |= _fields(text, head.end(), strings)[0]
    elif head and kind not in ("comment", "preamble"):
        yield line, partial(_references, source, text, strings)


def _references(source: Source, text: str, strings: Mapping[str, str]) -> Iterator[Row | str]:
    start = 0
    while start >= 0 and (head := _ENTRY.search(text, start)):
        key = _KEY.match(text, head.end())
        fields, start = _fields(text, key.end() if key else head.end(), strings)
        if start < 0:
            name = key[0] if key else ""
            yield f"The entry {name!r} is not closed. Check its braces and quotation marks."
        else:
            yield _reference(source, head[1], key[0] if key else "", fields)


def _reference(source: Source, kind: str, key: str, fields: Mapping[str, str]) -> Row | str:
    written = {n: v if n in _VERBATIM else _plain(v) for n, v in fields.items()}
    chosen = {own: next(filter(written.get, names), "") for own, names in _OWN.items()}
    data: dict[str, Any] = {own: written.get(name) for own, name in chosen.items()}
    data["url"] = _ESCAPED.sub(r"\1", data["url"] or "")
    data["authors"] = _people(fields.get("author", ""))
    data["keywords"] = _words(written.get("keywords", ""))
    data["notes"] = [written[name] for name in _NOTES if written.get(name)]
    used = {*chosen.values(), *_NOTES, "author", "keywords", "year"}
    data["other"] = [f"{name}: {value}" for name, value in written.items() if name not in used]
    return _paper(source, key, kind, data | {"year": written.get("year")})


def _fields(text: str, start: int, strings: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """The fields of an entry, and where it ends; -1 if it is cut."""
    fields = dict[str, str]()
    while name := _NAME.match(text, start):
        parts, start, joined = list[str](), name.end(), True
        while joined:
            start = _blank(text, start)
            if text[start : start + 1] in ("{", '"'):
                if (closing := _closing(text, start)) < 0:
                    return fields, -1
                parts.append(text[start + 1 : closing])
                start = closing + 1
            elif word := _WORD.match(text, start):
                parts.append(strings.get(word[0].lower(), word[0]))
                start = word.end()
            start = _blank(text, start)
            joined = text[start : start + 1] == "#"
            start += joined
        if len(parts) > 1 and sum(map(len, parts)) > _VALUE_CHARS:
            return fields, -1
        fields.setdefault(name[1].lower(), "".join(parts))
    end = _END.match(text, start)
    return fields, end.end() if end else -1


def _blank(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return blanks.end() if blanks else start


def _closing(text: str, start: int) -> int:
    """Where the value ends that begins with a brace or a quotation mark; -1 if it does not."""
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        closes = mark[0] == "}" if text[start] == "{" else mark[0] == '"' and mark.start() > start
        if closes and not depth:
            return mark.start()
    return -1


def _people(text: str) -> list[str]:
    """The names that `and` separates outside braces."""
    depth, names = 0, [""]
    for part in _AND.split(text):
        depth += {"{": 1, "}": -1}.get(part, 0)
        if not depth and part.strip().lower() == "and":
            names.append("")
        else:
            names[-1] += part
    return [name for name in map(_plain, names) if name]


def _words(text: str) -> list[str]:
    return [word for word in map(str.strip, _KEYWORDS.split(text)) if word]


def _plain(text: str) -> str:
    """The text of LaTeX. Formulas between dollar signs stay as they are."""
    parts = re.split(r"((?<!\\)\$)", text)
    formula = False
    for number, part in enumerate(parts):
        if part == "$":
            formula = not formula
        elif not formula:
            part = _ACCENT.sub(lambda m: normalize("NFC", m[3] + _ACCENTS[m[1] or m[2]]), part)
            part = _COMMAND.sub(lambda match: _LETTERS.get(match[1], match[0]), part)
            parts[number] = _ESCAPED.sub(
                r"\1", _BRACE.sub("", part.replace(r"\-", "")).replace("~", " ")
            )
    return _BLANKS.sub(" ", "".join(parts)).strip()


BIBTEX = Format("bibtex", (".bib", ".bibtex"), _BIBTEX, read_bibtex, MANIFEST)


_TAG: Final = re.compile(r"([A-Z][A-Z0-9]) {1,2}-(?: |$)(.*)")
#: Our fields, with their tags in order of preference; those of lists have all values.
_TAGS: Final = {
    "title": ("TI", "T1", "CT", "BT"),
    "abstract": ("AB", "N2"),
    "date": ("DA", "PY", "Y1"),
    "publication": ("T2", "JF", "JO", "JA", "J2", "PB"),
    "url": ("UR", "L2"),
    "doi": ("DO",),
    "id": ("ID",),
}
_LISTS: Final = {"authors": ("AU", "A1"), "notes": ("N1",), "keywords": ("KW",)}


def read_ris(source: Source) -> Iterator[Item]:
    """The records of a file, each from its type to its end, or to the next type."""
    first, entries, size = 1, list[list[str]](), 0
    with as_text(source) as text:
        for number, line in enumerate(text_lines(text), start=1):
            tag = _TAG.match(line)
            if tag and tag[1] in ("TY", "ER"):
                if entries:
                    yield first, partial(_record, source, entries)
                first, entries, size = number, [], 0
            size += len(line)
            if size > BUDGETS.import_row_bytes:
                continue
            if tag and tag[1] != "ER":
                entries.append([tag[1], tag[2].strip()])
            elif entries and not tag and line.strip():
                entries[-1][1] += f"\n{line.strip()}"
        if entries:
            yield first, partial(_record, source, entries)


def _record(source: Source, entries: list[list[str]]) -> Row | str:
    values = dict[str, list[str]]()
    for tag, value in entries:
        values.setdefault(tag, []).extend([value] if value else [])
    data: dict[str, Any] = {own: _first(values, tags) for own, tags in _TAGS.items()}
    data |= {own: sum((values.pop(tag, []) for tag in tags), []) for own, tags in _LISTS.items()}
    data["keywords"] = [word for text in data["keywords"] for word in _words(text)]
    kind, year = _first(values, ("TY",)) or "", _first(values, ("PY", "Y1"))
    data["other"] = [f"{tag}: {value}" for tag, rest in values.items() for value in rest]
    return _paper(source, data["id"] or "", kind, data | {"year": year})


def _first(values: dict[str, list[str]], tags: tuple[str, ...]) -> str | None:
    """Takes the first value of the first of some tags that has one."""
    return next((values[tag].pop(0) for tag in tags if values.get(tag)), None)


RIS = Format("ris", (".ris",), _RIS, read_ris, MANIFEST)
