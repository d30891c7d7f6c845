"""Builds manifests, records, and attachments with their texts for known formats."""

import hashlib
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import Any, Final, TypeVar

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.operators import OPERATORS
from service.extras import install_command
from service.importing.charsets import decode
from service.importing.json_values import JsonReader
from service.importing.readers.pdf import Pdf
from service.importing.source import Source, as_text
from evidence.manifest.forms import FORMS
from service.records.intake import Row
from evidence.times import moment

PDF_PAGES: Final = 500
_Kind = TypeVar("_Kind")
_LONG_PDF: Final = (
    "PDF attachments of which only the text of the first pages is stored: {}. "
    "Reading the rest takes too long."
)
_BROKEN_PDF: Final = "PDF attachments whose text cannot be read: {}."
_MISNAMED: Final = "Texts that are not in their declared encoding: {}. Characters may be wrong."
_NO_PDF: Final = (
    "PDF attachments stored without their text: {}. To read the text: "
    + install_command("documents")
)
_FOLD = re.compile(r"\r?\n[ \t]")
_ENTRY = re.compile(r"([\w-]++)((?:;[^:]*+)?):(.*)")
_ESCAPED = re.compile(r"\\([nN,;\\])")
_CALENDAR: Final = "summary dtstart dtend location organizer attendee description".split()


def _calendar(text: str) -> str:
    """The entries of an iCalendar file that people read, one per line."""
    lines = []
    for line in _FOLD.sub("", text).splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry and entry[1].lower() in _CALENDAR:
            value = _ESCAPED.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], entry[3])
            name = re.search(r';CN="?([^;":]+)', entry[2])
            who = f"{name[1]} <{value}>" if name else value
            lines.append(f"{entry[1].capitalize()}: {who}")
    return "\n".join(lines)


# These take linear time: an attempt begins once in a run of characters, and none is repeated.
_SPACES = re.compile(r"(?<![ \u00a0])[ \u00a0]*+\t[ \u00a0]*+|(?<![ \u00a0])[ \u00a0]++(?=\n|$)")
_TAG = re.compile(r"<[^<>]*+>")
_BLANK_LINES = re.compile(r"\n\s*\n")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
#: The widest indentation that a style sheet can ask for, in characters.
_EM_CHARS: Final = 100


def text_of(page: str) -> str:
    """The text of an HTML page, with the targets of its links and the names of its pictures."""
    from inscriptis import Inscriptis  # imported for HTML mail only
    from inscriptis.model import css
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, fromstring

    css.MAX_EM_LEN = _EM_CHARS
    page = _DECLARATION.sub("", page.replace("\0", "\ufffd"))
    if not page.strip():
        return ""
    parser = HTMLParser(huge_tree=True)
    try:
        tree = fromstring(page, parser=parser)
        text = Inscriptis(tree, _config()).get_text()
    except ParserError:
        return ""  # only comments
    except MemoryError:
        raise
    except Exception:  # of a library that reads anything
        text = None
    if text is None or any("depth" in error.message for error in parser.error_log):
        text = unescape(_TAG.sub(" ", page))  # nested too deeply for the parsers, or broken
    tidy = _SPACES.sub(lambda spaces: "\t" if "\t" in spaces[0] else "", text)
    return _BLANK_LINES.sub("\n\n", tidy).strip()


def html_tree(page: str) -> Any:
    """The root element of an HTML page; None if it has none that can be read."""
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, fromstring

    try:
        return fromstring(_DECLARATION.sub("", page), parser=HTMLParser(huge_tree=True))
    except (ParserError, ValueError):
        return None


@cache
def _config() -> Any:
    from inscriptis.css_profiles import CSS_PROFILES
    from inscriptis.model.config import ParserConfig

    options = {"display_links": True, "display_images": True, "table_cell_separator": "\t"}
    return ParserConfig(css=CSS_PROFILES["strict"], **options)


_STRING: Final = {"type": "string"}
_TIME: Final = {"type": "string", "format": "date-time"}
_NUMBER: Final = {"type": "integer"}
#: Kind of a field -> (its schema, its role, the queries it supports).
_KINDS: Final[dict[str, tuple[dict[str, str], str, str]]] = {
    "title": (_STRING, "primary-title", "search"),
    "text": (_STRING, "primary-text", "search"),
    "actor": (_STRING, "actor", "search filter group"),
    "thread": (_STRING, "thread", "filter distinct"),
    "time": (_TIME, "event-time", "range"),
    "position": (_NUMBER, "position", "range"),
    "id": (_STRING, "", "filter"),
    "group": (_STRING, "", "filter group"),
    "label": (_STRING, "", "search filter group"),
    "words": (_STRING, "", "search"),
    "list": ({"type": "array"}, "", "search"),
    "when": (_TIME, "", "range"),
    "number": (_NUMBER, "", "range"),
    "amount": ({"type": "string", "format": "decimal"}, "", "range sum"),
    "flag": ({"type": "boolean"}, "", "filter group"),
    "object": ({"type": "object"}, "", ""),
    "objects": ({"type": "array"}, "", ""),
    "blob": ({"type": "object"}, "blob-reference", ""),
}
ATTACHMENTS: Final = "attachments"
_ATTACHMENT: Final = (
    "id:id message_id:id filename:title mime_type:group sent_at:time text:text blob_ref:blob"
)


def stream(name: str, declared: str, *, attached: bool = False) -> dict[str, Any]:
    """The document of a stream with the key `id`, from `field:kind` pairs separated by spaces.

    If `attached`, records of `attachments` refer to its records.
    """
    kinds = dict(pair.split(":") for pair in declared.split())
    fields_by_query: dict[str, list[str]] = {
        word: [field for field, kind in kinds.items() if word in _KINDS[kind][2].split()]
        for word in ("search", "filter", "group", "distinct", "range", "sum")
    }
    properties = {
        field: {**_KINDS[kind][0], **({"x_pdpp_role": role} if (role := _KINDS[kind][1]) else {})}
        for field, kind in kinds.items()
    }
    times = [field for field, kind in kinds.items() if _KINDS[kind][0] is _TIME]
    document: dict[str, Any] = {
        "name": name,
        "primary_key": ["id"],
        "schema": {"type": "object", "properties": properties},
        "query": {
            "exact_filters": fields_by_query["filter"] + times,
            "range_filters": {field: list(OPERATORS) for field in fields_by_query["range"]},
            "aggregations": {
                "min": fields_by_query["range"],
                "max": fields_by_query["range"],
                "group_by": fields_by_query["group"],
                "group_by_time": times,
                "count_distinct": fields_by_query["group"] + fields_by_query["distinct"],
            },
            "search": {"lexical_fields": fields_by_query["search"]},
        },
    }
    if amounts := fields_by_query["sum"]:
        document["query"]["aggregations"] |= {"sum": amounts}
    if cursor := next((field for field, kind in kinds.items() if kind == "time"), None):
        document["cursor_field"] = cursor
    if attached:
        relation = {"name": ATTACHMENTS, "stream": ATTACHMENTS, "foreign_key": "message_id"}
        document["query"]["expand"] = [{"name": ATTACHMENTS}]
        document["relationships"] = [relation | {"cardinality": "has_many"}]
    return document


#: People, in any program.
CONTACTS: Final = stream(
    "contacts",
    "id:id name:title nicknames:list organization:label role:words emails:list phones:list"
    " addresses:list urls:list birthday:words groups:list note:text other:list"
    " updated_at:time",
    attached=True,
)


def manifest(*streams: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a format whose records have attachments."""
    return {"streams": [*streams, stream(ATTACHMENTS, _ATTACHMENT)]}


class Attached:
    """The attachments of the records of a source, and the reports on them.

    `names` are the names of files that an export has renamed, by their new names.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.names: dict[str, str] = {}
        self._missing: list[str] = []
        self.problems = source.problems

    def row(
        self,
        owner: str,
        number: int,
        name: str,
        content: bytes,
        *,
        at: Any = None,
        kind: str = "",
        text: str | None = None,
    ) -> Row:
        """The attachment of a record; `owner` is its id, `at` its time, `kind` the media type."""
        kind = kind or mimetypes.guess_type(name)[0] or "application/octet-stream"
        text = self.text(content, kind) if text is None else text
        data = {
            "id": f"{owner}#{number}",
            "message_id": owner,
            "filename": name,
            "mime_type": kind,
            "sent_at": at,
            **({"text": text} if text else {}),
            "blob_ref": {"mime_type": kind, "data_base64": content},
        }
        return Row(self._source.repair.value(data), stream=ATTACHMENTS)

    def text(self, content: bytes, kind: str, charset: str = "utf-8") -> str:
        """The text of a file of a media type; empty if it has no readable text."""
        if kind == "application/pdf":
            return self._pdf(content)
        if not kind.startswith("text/"):
            return ""
        text, decoded = decode(content, charset)
        if not decoded:
            self.problems[_MISNAMED] += 1
        text = text.replace("\r\n", "\n")
        if kind == "text/calendar":
            return _calendar(text)
        return text_of(text) if kind == "text/html" else text

    def _pdf(self, content: bytes) -> str:
        texts = list[str]()
        try:
            pdf = Pdf(content)
            texts += pdf.pages(PDF_PAGES)
            self.problems[_LONG_PDF] += pdf.incomplete
            self.problems[_BROKEN_PDF] += bool(pdf.unreadable)
        except MemoryError:
            raise
        except ImportError:
            self.problems[_NO_PDF] += 1
        except Exception:  # of a library that reads anything
            self.problems[_BROKEN_PDF] += 1
        return "\n\n".join(texts).strip()

    def files(self, owner: str, references: list[str], *, at: Any = None) -> Iterator[Row]:
        """The attachments that are files next to the source; missing ones are counted."""
        for number, reference in enumerate(references, start=1):
            file = self._source.tree.find(reference, self._source.name)
            if file is None:
                self._missing.append(reference)
                continue
            name = file.name.rpartition("/")[2]
            name = self.names.get(name, name)
            try:
                yield self.row(owner, number, name, file.read(), at=at)
            except InvalidRequest as error:
                self._source.notes.append(f"Left out: {error.message}")

    def report(self) -> None:
        """Adds reports for the owner to the notes of the source."""
        self._source.notes += [note.format(count) for note, count in (+self.problems).items()]
        if self._missing:
            missing = f"Missing files that records refer to: {len(self._missing)}"
            first = f"first: {', '.join(self._missing[:3])}"
            advice = "Import the whole folder or archive to attach them."
            self._source.notes.append(f"{missing} ({first}). {advice}")


def row(source: Source, stream: str, data: dict[str, Any]) -> Row:
    """A record of a stream, with the members that have a value."""
    described = {name: value for name, value in data.items() if value not in (None, "", [], {})}
    return Row(source.repair.value(described), stream=stream)


def record_id(external: str, otherwise: bytes = b"") -> str:
    """An external id, or a hash of it or of other bytes if it is too long or empty.

    Leaves space for the numbers of attachments.
    """
    if external and len(external.encode()) <= CONTRACT.record_id_bytes - len("#000"):
        return external
    return hashlib.sha256(otherwise or external.encode()).hexdigest()


CHAT_MESSAGES: Final = "chat_messages"
CONVERSATIONS: Final = "conversations"
CHAT_MANIFEST: Final = manifest(
    stream(
        CHAT_MESSAGES,
        "id:id thread_id:thread conversation:title author:actor text:text sent_at:time"
        " position:position app:group conversation_id:id reply_to:id kind:group model:group"
        " reactions:list links:list edited_at:when",
        attached=True,
    ),
    stream(
        CONVERSATIONS,
        "id:id title:title app:group description:text members:list started_at:time"
        " updated_at:when",
    ),
    CONTACTS,
)


class Members:
    """Reads members of JSON objects. One that has not the expected type counts as missing.

    `skipped` counts these, by name.
    """

    def __init__(self) -> None:
        self.skipped = Counter[str]()

    def get(self, data: dict[str, Any], name: str, kind: type[_Kind]) -> _Kind:
        """The member; if it is missing, the empty value of its type."""
        value = data.get(name)
        if isinstance(value, kind):
            return value
        if value is not None:
            self.skipped[name] += 1
        return kind()

    def all(self, data: dict[str, Any], name: str, kind: type[_Kind]) -> list[_Kind]:
        """The elements of a member that is an array."""
        values = self.get(data, name, list)
        fit = [value for value in values if isinstance(value, kind)]
        if len(fit) < len(values):
            self.skipped[name] += len(values) - len(fit)
        return fit


class Chats:
    """The conversations and messages of an app, and their files."""

    def __init__(self, source: Source, app: str) -> None:
        self.attached, self.members = Attached(source), Members()
        self._source, self._app = source, app

    def report(self) -> None:
        """Adds reports for the owner to the notes of the source."""
        self.attached.report()
        if skipped := +self.members.skipped:
            counts = ", ".join(f"{count} × {name}" for name, count in skipped.items())
            self._source.notes.append(f"Values left out because of their types: {counts}.")

    def conversation(self, key: str, title: str, **about: Any) -> Row:
        """A conversation, by its id."""
        data = {"id": key, "title": title, "app": self._app, **about}
        return row(self._source, CONVERSATIONS, data)

    def message(self, conversation: str, title: str, **data: Any) -> Row:
        """A message of a conversation, which is its thread unless `thread_id` names another."""
        common = {"thread_id": conversation, "conversation_id": conversation}
        common |= {"conversation": title, "app": self._app}
        return row(self._source, CHAT_MESSAGES, common | data)


def time_of(seconds: Any) -> str | None:
    """The time for seconds since 1970."""
    microseconds = FORMS["unix-seconds"](seconds)
    return None if microseconds is None else moment(microseconds)


def conversations(source: Source) -> Iterator[str]:
    """The JSON of each conversation of a file that is one array of them."""
    with as_text(source) as text:
        yield from JsonReader(source, text).elements()
