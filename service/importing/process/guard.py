"""Reads each record of a file separately, so that an error affects only that record."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS
from service.importing.formats import FORMATS
from service.importing.source import Raw, Source
from service.importing.unchanged import Unchanged, with_digests
from service.records.intake import Row

#: The number of a record in its file, its line, and a row of it or the reason why it is refused.
Received = tuple[int, int, Row | str]
#: The same, or instead of the rows that they are unchanged.
Sent = tuple[int, int, Row | Unchanged | str]


@dataclass(slots=True)
class FileHeader:
    """What is known of a file before its rows.

    `stream` is that of rows that name none; if it is new, `group` is instead. `manifest` has the
    streams if the format declares them. If `unique`, a record is left out that an earlier file of
    the same `tree` has. `comma` is True if numbers are likely to have a decimal comma;
    `decisive` is that of the source.
    """

    stream: str | None
    tree: str
    untyped: bool
    unique: bool
    manifest: list[Any] | None
    comma: bool | None = None
    group: str | None = None
    decisive: dict[str, dict[str, list[str]]] = field(default_factory=dict)


class Watch:
    """Is called by `records` before each step; this one never stops it."""

    def begin(self, record: int) -> str | None:
        """The reader looks for the next record, unless this returns a reason to stop.

        The reason is a refused row, unless it is empty.
        """
        return None

    def parse(self, record: int, line: int) -> bool:
        """The record is parsed, unless this returns False."""
        return True

    def digest(self, source: Source, raw: Raw) -> bytes:
        """A digest of a record; empty if its rows get none."""
        return b""

    def unchanged(self, record: bytes) -> list[int]:
        """The digests of the rows of a record that need not be parsed."""
        return []


def header(source: Source) -> FileHeader:
    """The header of a file; raises InvalidRequest if it cannot be read."""
    format = FORMATS[source.format]
    try:
        declared = format.manifest(source) if callable(format.manifest) else format.manifest
    except (EvidenceError, MemoryError):
        raise
    except Exception as error:
        raise InvalidRequest(f"{source.name} cannot be read: {problem(error)}.") from error
    return FileHeader(
        stream=source.stream if source.name != "-" else None,
        tree=source.tree.path,
        untyped=format.untyped,
        unique=format.unique,
        manifest=None if declared is None else declared["streams"],
        group=source.group,
    )


def records(source: Source, watch: Watch = Watch()) -> Iterator[tuple[int, int, Any]]:
    """`Sent` for all records; `Received` if the watch has no digests.

    After an unexpected error between two records, the rest of the file is refused.
    """
    reader = FORMATS[source.format].read(source)
    line = 0
    for number in count(1):
        if (reason := watch.begin(number)) is not None:
            yield from [(number, line, reason)] if reason else []
            return
        try:
            line, content = next(reader)
        except StopIteration:
            return
        except (EvidenceError, MemoryError):
            raise
        except Exception as error:
            yield number, line, f"The rest of the file cannot be read: {problem(error)}."
            return
        if watch.parse(number, line):
            yield from ((number, line, parsed) for parsed in _rows(content, source, watch))


def _rows(content: Any, source: Source, watch: Watch) -> Iterator[Row | Unchanged | str]:
    """The rows of a record, or that they are unchanged."""
    if not isinstance(content, Raw) or not (record := watch.digest(source, content)):
        yield from _parsed(content)
    elif digests := watch.unchanged(record):
        yield Unchanged(digests, len(content.content))
    else:
        yield from with_digests(_parsed(content), record, source)


def _parsed(content: Any) -> Iterator[Row | str]:
    """The rows of a record; the only place that turns its exceptions into a refusal."""
    if isinstance(content, (Row, str)):
        yield content
        return
    try:
        result = content()
        for inner in [result] if isinstance(result, (Row, str)) else result:
            yield from _parsed(inner)
    except MemoryError:
        raise
    except Exception as error:
        yield f"This record cannot be read: {problem(error)}."


def problem(error: Exception) -> str:
    """Describes an exception in a few words."""
    if isinstance(error, EvidenceError):
        return error.message.rstrip(".")
    text = " ".join(str(error)[: BUDGETS.message_chars].split())
    return f"{type(error).__name__}: {text}".rstrip(": .")
