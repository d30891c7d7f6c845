"""Payments from Quicken and from banks that export QIF. Values are kept as written."""

import re
from collections.abc import Iterator
from typing import Any, Final

from service.importing.source import Format, Item, Source, as_text
from service.records.intake import Row

BEGINS = re.compile(rb"\s*!(?:Type|Account|Option|Clear):?[^\n]*\n")
STREAM: Final = "payments"
#: The fields of a payment by the letter with which their line begins.
_FIELDS: Final = {
    "D": "date",
    "T": "amount",
    "P": "payee",
    "M": "memo",
    "N": "number",
    "L": "category",
    "A": "address",
    "C": "cleared",
}
#: The parts of a payment that is split over several categories.
_SPLITS: Final = {"S": "category", "E": "memo", "$": "amount"}
_PAYMENTS: Final = ("bank", "cash", "ccard", "oth a", "oth l")


def read(source: Source) -> Iterator[Item]:
    """The payments, each with its account."""
    account, kind, began, entry = "", "", 1, dict[str, Any]()
    with as_text(source) as text:
        for number, line in enumerate(text, start=1):
            mark, value = line[:1], line[1:].strip()
            if mark == "!":
                kind, entry = value.lower(), {}
            elif mark == "^":
                if kind == "account":
                    account = entry.get("number", account)
                elif kind.removeprefix("type:").strip() in _PAYMENTS and entry:
                    yield began, Row({"account": account, **entry}, stream=STREAM)
                entry = {}
            elif value and (mark in _FIELDS or mark in _SPLITS):
                began = began if entry else number
                _add(entry, mark, value)


def _add(entry: dict[str, Any], mark: str, value: str) -> None:
    """Adds the value of a line to a payment."""
    if mark in _FIELDS:
        name = _FIELDS[mark]
        entry[name] = f"{entry[name]}\n{value}" if name in entry else value
        return
    splits = entry.setdefault("splits", [])
    name = _SPLITS[mark]
    if not splits or name == "category":
        splits.append({})
    splits[-1][name] = value


FORMAT = Format("qif", (".qif",), BEGINS, read, None, untyped=True)
