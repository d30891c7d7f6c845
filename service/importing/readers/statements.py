"""Payments on bank statements in MT940 and CAMT. Amounts keep all their digits."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from typing import Any, Final

from evidence.errors import InvalidRequest
from service.importing.rows import row, stream
from service.importing.source import SAFE_XML, Format, Item, Source, as_text, text_lines
from service.records.intake import Row

TRANSACTIONS: Final = "transactions"
#: Banks give no ids that last: equal payments are numbered by the importer.
MANIFEST: Final = {
    "streams": [
        stream(
            TRANSACTIONS,
            "payee:title memo:text date:time value_date:when amount:amount currency:group"
            " account:group kind:group booking_text:label status:group reference:id"
            " bank_reference:id mandate:id payee_account:id payee_bank:id other:list",
        )
        | {"primary_key": []}
    ]
}
_MT940: Final = re.compile(
    rb"\s*+(?:\{1:.{0,200}?)?:20:[^\n]*\n(?:[^\n]*\n){0,2}:2[158]", re.DOTALL
)
_TAG: Final = re.compile(r":(\d\d[A-Z]?):(.*)", re.DOTALL)
#: Value date, booking date, mark, currency letter, amount, type, and the rest.
_LINE: Final = re.compile(
    r"(\d{6})(\d{4})?E?(R?[CD])[A-Z]?(\d+(?:,\d*)?)([A-Z][A-Z0-9]{3})?(.*)", re.DOTALL
)
_CODES: Final = re.compile(r"(\d{3})([^\w\s/])(?=\d\d)")
_NAMED: Final = {"payee_account": r"/IBAN/([^/]+)", "payee": r"/NAME/([^/]+)"}
#: What the codes of a German bank mean; those of the purpose are from 20 to 29 and 60 to 63.
_CODED: Final = dict(
    zip(
        ("00", "30", "31", "32", "33"),
        ("booking_text", "payee_bank", "payee_account", "payee", "payee"),
    )
)
_LINE_CHARS: Final = 65_536
#: The most lines of a field.
_MOST_LINES: Final = 1_000
#: Lines of a purpose are cut at this length, in the middle of words.
_CUT_CHARS: Final = 27


def read_mt940(source: Source) -> Iterator[Item]:
    """The payments, each with the account and the currency of its statement."""
    account = currency = ""
    payment: tuple[int, str] | None = None
    for number, tag, text in _fields(source):
        if payment and tag in ("61", "62F", "62M", "20"):
            yield payment[0], partial(_payment, source, account, currency, payment[1], "")
            payment = None
        if tag == "25":
            account = text.strip()
        elif tag in ("60F", "60M"):
            currency = text[7:10]
        elif tag == "61":
            payment = number, text
        elif tag == "86" and payment:
            yield payment[0], partial(_payment, source, account, currency, payment[1], text)
            payment = None
    if payment:
        yield payment[0], partial(_payment, source, account, currency, payment[1], "")


def _fields(source: Source) -> Iterator[tuple[int, str, str]]:
    """The line, the number and the text of each field."""
    first, tag, lines = 1, "", list[str]()
    with as_text(source) as text:
        for number, line in enumerate(text_lines(text, _LINE_CHARS), start=1):
            line = line.rstrip()
            if match := _TAG.match(line.rpartition("{4:")[2].lstrip()):
                yield first, tag, "\n".join(lines)
                first, tag, lines = number, match[1], [match[2]]
            elif len(lines) > _MOST_LINES:
                large = f"{source.name} has a field with over {_MOST_LINES} lines"
                raise InvalidRequest(f"{large}, so it is not a valid statement. Download it again.")
            elif line not in ("-", "-}", ""):
                lines.append(line)
    yield first, tag, "\n".join(lines)


def _payment(source: Source, account: str, currency: str, line: str, about: str) -> Row | str:
    match = _LINE.match(line)
    if match is None:
        return f"The payment :61:{line[:40]} is not valid MT940. Download the statement as CAMT."
    value, booked, mark, amount, kind, rest = match.groups()
    own, _, supplement = rest.partition("\n")
    reference, _, of_bank = own.partition("//")
    debit = mark in ("D", "RC")
    data = {
        "account": account,
        "date": _booked(value, booked),
        "value_date": _day(value),
        "amount": f"{'-' * debit}{amount.replace(',', '.').rstrip('.')}",
        "currency": currency,
        "kind": kind,
        "reference": "" if reference in ("NONREF", "NOREF") else reference,
        "bank_reference": of_bank,
        "memo": supplement,
    }
    return _row(source, data, _about(about))


def _row(source: Source, *parts: dict[str, Any]) -> Row:
    """A payment; a field in several parts has the lines of all."""
    data: dict[str, Any] = {}
    for name, value in (pair for part in parts for pair in part.items() if pair[1]):
        data[name] = f"{data[name]}\n{value}" if name in data else value
    return row(source, TRANSACTIONS, data)


def _day(text: str) -> str:
    """`260313` as an ISO 8601 date; the text itself if there is no such day."""
    century = "19" if text >= "8" else "20"
    with suppress(ValueError):
        return date.fromisoformat(century + text).isoformat()
    return text


def _booked(value: str, booked: str | None) -> str:
    """The day of the booking, which has no year: it is within half a year of the value date."""
    months = int((booked or value[2:])[:2]) - int(value[2:4])
    year = (int(value[:2]) + (months < -6) - (months > 6)) % 100
    return _day(f"{year:02}{booked}") if booked else _day(value)


def _about(text: str) -> dict[str, Any]:
    """Who was paid and why, from the free text of a payment, as banks structure it."""
    plain = text.replace("\n", "")
    if not (codes := _CODES.match(plain)):
        if not text.startswith("/"):
            return {"memo": text}
        matches = {name: re.search(pattern, plain) for name, pattern in _NAMED.items()}
        return {"memo": plain} | {name: match[1] for name, match in matches.items() if match}
    fields = dict[str, str]()
    parts = re.split(rf"{re.escape(codes[2])}(\d\d)", plain[3:])
    for code, part in zip(parts[1::2], parts[2::2]):
        name = "memo" if "20" <= code <= "29" or "60" <= code <= "63" else _CODED.get(code, code)
        before = fields.get(name, "")
        joined = len(before) % _CUT_CHARS == 0 or " " in before[-1:] + part[:1]
        space = "" if joined else " "
        fields[name] = f"{before}{space}{part}"
    unknown = {name: fields.pop(name) for name in list(fields) if name.isdigit()}
    return {**fields, "other": [f"{name}: {part}" for name, part in unknown.items() if part]}


MT940 = Format(
    "mt940", (".sta", ".mt940", ".940"), _MT940, read_mt940, MANIFEST, any_extension=True
)


_CAMT: Final = re.compile(
    rb"[^\x00]{0,600}?(?:urn:iso:std:iso:20022:tech:xsd:camt\.05[234]\.|<BkToCstmr)"
)
_DOCUMENTS: Final = ("Stmt", "Rpt", "Ntfctn")


def read_camt(source: Source) -> Iterator[Item]:
    """The entries of all statements, each with its account."""
    from lxml.etree import XMLSyntaxError, iterparse, tostring

    number, account = 0, ""
    events = iterparse(
        source.file,
        tag=("{*}Ntry", "{*}Acct"),
        **SAFE_XML,
    )
    try:
        for _, element in events:
            if element.tag.endswith("}Ntry") or element.tag == "Ntry":
                number += 1
                yield number, partial(_entry, source, account, tostring(element, with_tail=False))
                element.clear()
            elif (parent := element.getparent()) is not None and _name(parent) in _DOCUMENTS:
                account = _at(element, "Id/IBAN") or _at(element, "Id/Othr/Id")
    except XMLSyntaxError as error:
        raise InvalidRequest(f"{source.name} is not valid XML: {error}.") from None


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _at(element: Any, *paths: str) -> str:
    """The text at the first of some paths that has one."""
    for path in paths:
        text = element.findtext("/".join(f"{{*}}{part}" for part in path.split("/")))
        if text and text.strip():
            return str(text).strip()
    return ""


def _entry(source: Source, account: str, content: bytes) -> Iterator[Row | str]:
    """The payments of an entry: several if it has details with an amount for each."""
    from lxml.etree import XMLParser, fromstring

    entry = fromstring(content, XMLParser(**SAFE_XML))
    if not _at(entry, "Amt"):
        yield "This entry has no amount."
        return
    common = {
        "account": account,
        "date": _at(entry, "BookgDt/Dt", "BookgDt/DtTm", "ValDt/Dt"),
        "value_date": _at(entry, "ValDt/Dt", "ValDt/DtTm"),
        "status": _at(entry, "Sts/Cd", "Sts"),
        "kind": _at(entry, "BkTxCd/Prtry/Cd", "BkTxCd/Domn/Fmly/SubFmlyCd", "BkTxCd/Domn/Cd"),
        "bank_reference": _at(entry, "AcctSvcrRef", "NtryRef"),
    }
    details = entry.findall("{*}NtryDtls/{*}TxDtls")
    amounts = [_amount(detail, entry) for detail in details]
    if len(details) > 1 and all(amounts):
        for detail, amount in zip(details, amounts):
            yield _row(source, common, amount, _detail(detail, entry))
    else:
        memo = {"memo": _at(entry, "AddtlNtryInf")}
        parts = (_detail(detail, entry) for detail in details)
        yield _row(source, common, _amount(entry, entry), memo, *parts)


def _amount(element: Any, entry: Any) -> dict[str, str]:
    """The amount of an entry or a detail, and its currency; empty if it has none."""
    path = next((p for p in ("Amt", "AmtDtls/TxAmt/Amt") if _at(element, p)), "")
    if not path:
        return {}
    amount = element.find("/".join(f"{{*}}{part}" for part in path.split("/")))
    debit = (_at(element, "CdtDbtInd") or _at(entry, "CdtDbtInd")) == "DBIT"
    return {"amount": "-" * debit + amount.text.strip(), "currency": amount.get("Ccy") or ""}


def _detail(detail: Any, entry: Any) -> dict[str, str]:
    """Who was paid or has paid, and why."""
    party = "Cdtr" if _at(entry, "CdtDbtInd") == "DBIT" else "Dbtr"
    related, texts = f"RltdPties/{party}", detail.findall("{*}RmtInf/{*}Ustrd")
    lines = [text.text.strip() for text in texts if text.text]
    lines += [_at(detail, "RmtInf/Strd/CdtrRefInf/Ref"), _at(detail, "AddtlTxInf")]
    reference = _at(detail, "Refs/EndToEndId")
    return {
        "payee": _at(detail, f"{related}/Nm", f"{related}/Pty/Nm"),
        "payee_account": _at(detail, f"{related}Acct/Id/IBAN", f"{related}Acct/Id/Othr/Id"),
        "memo": "\n".join(filter(None, lines)),
        "reference": "" if reference == "NOTPROVIDED" else reference,
        "mandate": _at(detail, "Refs/MndtId"),
    }


CAMT = Format("camt", (), _CAMT, read_camt, MANIFEST, any_extension=True)
