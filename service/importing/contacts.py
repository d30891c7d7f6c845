"""People and organizations of vCard files, versions 2.1 to 4.0."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from service.importing.texts import components
from service.importing.rows import CONTACTS, Attached, manifest, record_id, row
from service.importing.source import Format, Item, Source
from service.records.intake import Row

MANIFEST = manifest(CONTACTS)
BEGINS = re.compile(rb"\s*BEGIN:VCARD", re.IGNORECASE)
#: Property -> the list of the record that has its values.
_LISTS = {
    "EMAIL": "emails",
    "TEL": "phones",
    "ADR": "addresses",
    "URL": "urls",
    "IMPP": "urls",
    "NICKNAME": "nicknames",
    "CATEGORIES": "groups",
}
_ONES = {"BDAY": "birthday", "TITLE": "role", "NOTE": "note", "ORG": "organization"}
_PICTURES = ("PHOTO", "LOGO")
_SILENT = frozenset({"VERSION", "PRODID", "X-ABLABEL", "UID", "FN", "N", "REV", *_PICTURES})
_PLAIN_TYPES = frozenset({"INTERNET", "PREF", "VOICE"})
#: vobject cuts data URIs off.
_DATA_URI = re.compile(r"^(PHOTO|LOGO)[^:\n]*:data:image/([\w.+-]+);base64,", re.M | re.I)
_APPLE_LABEL = re.compile(r"^_\$!<(.*)>!\$_$")


def read(source: Source) -> Iterator[Item]:
    """The cards of an address book, one at a time."""
    from vobject import readOne  # imported for address books only
    from vobject.base import VObjectError

    attached = Attached(source)
    for line, kind, text in components(source.file):
        if kind == "cut":
            yield line, text
        elif kind == "VCARD":
            try:
                card = readOne(_DATA_URI.sub(r"\1;ENCODING=b;TYPE=\2:", text), allowQP=True)
                yield from ((line, one) for one in _rows(card, source, attached))
            except (VObjectError, ValueError, AttributeError, TypeError, IndexError) as error:
                yield line, f"This card cannot be read: {error}."
    attached.report()


def _rows(card: Any, source: Source, attached: Attached) -> Iterator[Row]:
    found: dict[str, list[str]] = defaultdict(list)
    pictures = []
    labels = {one.group: one.value for one in card.getChildren() if one.name == "X-ABLABEL"}
    for one in card.getChildren():
        if one.name in _PICTURES and isinstance(one.value, bytes):
            pictures.append(one)
        elif field := _LISTS.get(one.name) or _ONES.get(one.name):
            found[field].append(_labelled(one, labels))
        elif one.name not in _SILENT or one.name in _PICTURES:
            found["other"].append(f"{one.name}: {_text(one.value)}")
    names = [_text(one.value) for one in card.contents.get("fn", [])]
    parts = [one.value for one in card.contents.get("n", [])]
    name = next(filter(None, [*names, *map(_name, parts), *found["organization"]]), "")
    name = name or next(iter(found["emails"] + found["phones"]), "")
    uid = _text(card.uid.value) if "uid" in card.contents else ""
    uid = record_id(uid, "\n".join([name, *found["emails"]]).encode())
    data: dict[str, Any] = {
        "id": uid,
        "name": name,
        **{field: found[field] for field in [*_LISTS.values()]},
    }
    data |= {field: "; ".join(found[field]) for field in _ONES.values()}
    data |= {"other": found["other"]}
    data["updated_at"] = _text(card.rev.value) if "rev" in card.contents else None
    yield row(source, CONTACTS["name"], data)
    for number, one in enumerate(pictures, start=1):
        kind = (_types(one) or ["jpeg"])[0].lower().removeprefix("image/")
        picture = f"{one.name.lower()}.{kind}"
        yield attached.row(uid, number, picture, one.value, kind=f"image/{kind}")


def _labelled(one: Any, labels: dict[str, str]) -> str:
    """A value with its label, such as `ada@example.org (work)`."""
    own = [word.lower() for word in _types(one) if word.upper() not in _PLAIN_TYPES]
    if one.group in labels:
        own.append(_APPLE_LABEL.sub(r"\1", labels[one.group]).lower())
    text = re.sub("^(tel|mailto):", "", _text(one.value))
    return f"{text} ({', '.join(own)})" if own and text and one.name in _LISTS else text


def _types(one: Any) -> list[str]:
    words = one.params.get("TYPE", []) + one.singletonparams
    return [word for text in words for word in text.split(",")]


def _name(value: Any) -> str:
    parts = (value.prefix, value.given, value.additional, value.family, value.suffix)
    return " ".join(" ".join(part) if isinstance(part, list) else part for part in parts if part)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    if isinstance(value, str):
        return value.replace("\r\n", "\n").strip()
    lines = [" ".join(line.split()) for line in str(value).splitlines()]
    return ", ".join(filter(None, lines))


FORMAT = Format("vcard", (".vcf",), BEGINS, read, MANIFEST, any_extension=True)
