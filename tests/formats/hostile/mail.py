"""Mail made to stop or swell an import."""

import zlib
from base64 import encodebytes
from collections.abc import Iterator
from typing import Any

from tests.formats.compound import compound
from tests.formats.hostile.files import Hostile, kind, several

PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj"
HEAD = "From: a@b\nDate: Tue, 3 Mar 2026 10:00:00 +0000\nMessage-ID: <1@x>\n"
BETWEEN = "\nFrom a@b Tue Mar  3 10:00:00 2026\n"


def mailbox(*mails: str) -> str:
    """Mails between two harmless ones."""
    first, last = (f"Message-ID: <{name}@x>\nSubject: tide\n\nebb\n" for name in ("first", "last"))
    return "".join(
        BETWEEN.lstrip("\n" * (not n)) + mail for n, mail in enumerate((first, *mails, last))
    )


def page(html: str) -> str:
    return mailbox(f"{HEAD}Content-Type: text/html\n\n{html}\n")


@kind
def pages_in_mail() -> Iterator[Hostile]:
    huge = "9" * 9
    styles = (
        *(
            f"{name}:{huge}{unit}"
            for name in ("padding-left", "margin-left")
            for unit in ("em", "px")
        ),
        *(f"{name}:{huge}em" for name in ("margin-top", "margin-bottom", "text-indent", "width")),
        *(
            "padding:1e99em",
            "margin-left:-999999999em",
            f"padding-left:{'9' * 50_000}em",
            ";" * 99_999,
        ),
    )
    yield from several(
        ".mbox",
        {
            f"style-{n}": page(f'<div style="{style}"><p>a<p>b</div>')
            for n, style in enumerate(styles)
        },
    )
    yield from several(
        ".mbox",
        {
            f"deep-{tag}": page(f"<{tag}>" * 50_000 + "x")
            for tag in ("div", "ul", "table", "blockquote", "span", "a", "b", "pre")
        },
    )
    yield from several(
        ".mbox",
        {
            "tables": page("<table><tr><td>" * 3_000 + "x"),
            "columns": page("<table><tr>" + "<td>x" * 100_000),
            "spans": page('<table><tr><td colspan="999999999" rowspan="999999999">x</table>'),
            "items": page("<ol start=999999999999999999999>" + "<li>x" * 50_000),
            "brackets": page("<" * 300_000),
            "attributes": page("<a " + "x=y " * 200_000 + ">x</a>"),
            "links": page('<a href="#">x</a>' * 50_000),
            "entities": page("&#999999999999999999999;" * 20_000 + "&amp" * 100_000),
            "comments": page("<!--" * 100_000),
            "declaration": page("<?xml " * 100_000),
            "spaces": page("<pre>" + " " * 500_000 + "x\t" + "\n" * 500_000),
            "images": page(f'<img src="{"a" * 1_000_000}" alt="x">'),
        },
    )


@kind
def headers_of_mail() -> Iterator[Hostile]:
    payloads = {
        "parentheses": "(" * 10_000,
        "quotes": '"' * 10_001,
        "angles": "<" * 10_000,
        "commas": "," * 50_000,
        "words": "tide " * 56_000,
        "encoded": "=?utf-8?q?a?= " * 20_000,
        "dots": ".a" * 50_000,
        "escapes": "\\" * 50_001,
    }
    names = ("From", "To", "Subject", "Date", "References", "Content-Type", "Content-Disposition")
    for name in names:
        begin = {"Content-Type": 'text/plain; name="', "Content-Disposition": 'attachment; x="'}
        yield from several(
            ".mbox",
            {
                f"{name}-{word}": mailbox(
                    f"{name}: {begin.get(name, '')}{text}\nMessage-ID: <1@x>\n\nx\n"
                )
                for word, text in payloads.items()
            },
        )
    yield from several(
        ".mbox",
        {
            "continued": mailbox(
                f"{HEAD}Content-Type: text/plain; name*999999999*=a; name*1*=b\n\nx\n"
            ),
            "folded": mailbox(HEAD + "Subject: a\n" + " a\n" * 100_000 + "\nx\n"),
            "many": mailbox(HEAD + "".join(f"X-{n}: a\n" for n in range(100_000)) + "\nx\n"),
            "empty": mailbox(":\n: \n\n", "\0\0\0\n\n", "Subject:\n\n"),
            "bytes": mailbox("Subject: \udcff\udcfe\n\nx\n").encode("utf-8", "surrogateescape"),
        },
    )


def nested(kind: str, levels: int) -> str:
    if kind == "rfc822":
        return "Content-Type: message/rfc822\n\n" * levels + "Subject: x\n\nx\n"
    heads = (f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(levels))
    return "".join(heads) + "\nx\n"


@kind
def parts_of_mail() -> Iterator[Hostile]:
    yield from several(
        ".mbox",
        {
            f"{sort}-{levels}": mailbox(f"Message-ID: <1@x>\n{nested(sort, levels)}")
            for sort in ("multipart", "rfc822")
            for levels in (90, 1_500, 20_000)
        },
    )
    parts = "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\n\nx\n" * 20_000 + "--b--\n"
    boundary = "b" * 100_000
    charsets = (
        "punycode",
        "idna",
        "zlib",
        "undefined",
        "utf-7",
        "unicode_escape",
        "a\0b",
        "x" * 9_999,
    )
    yield from several(
        ".mbox",
        {
            "many": mailbox(HEAD + parts),
            "boundary": mailbox(
                f"{HEAD}Content-Type: multipart/mixed; boundary={boundary}\n\n--{boundary}\n\nx\n"
            ),
            "boundaries": mailbox(
                f"{HEAD}Content-Type: multipart/mixed; boundary=-\n\n{'---' * 99_999}\n"
            ),
            "base64": mailbox(f"{HEAD}Content-Transfer-Encoding: base64\n\n{'=A' * 99_999}\n"),
            "quoted": mailbox(
                f"{HEAD}Content-Transfer-Encoding: quoted-printable\n\n{'=' * 99_999}\n"
            ),
            "uu": mailbox(
                f"{HEAD}Content-Transfer-Encoding: x-uuencode\n\nbegin 6 x\n{'M' * 99_999}\n"
            ),
            "line": mailbox(HEAD + "\n" + "x" * 5_000_000 + "\n"),
            **{
                f"charset-{n}": mailbox(
                    f'{HEAD}Content-Type: text/plain; charset="{name}"\n\n{"é-a" * 9_999}\n'
                )
                for n, name in enumerate(charsets)
            },
        },
    )
    pdfs = {
        "garbage": b"%PDF-1.7\n" + b"<<" * 50_000,
        "pages": PDF + b"<</Type/Pages/Kids[2 0 R]"
        b"/Count 9999999999>>endobj\ntrailer<</Root 1 0 R>>\n",
        "prev": b"%PDF-1.4\nxref\n0 1\n0000000000 65535 f \n"
        b"trailer<</Size 1/Prev 9>>\nstartxref\n9\n%%EOF",
        "flate": pdf_of(zlib.compress(b"(tide) Tj " * 9_999_999)),
    }
    for name, content in pdfs.items():
        coded = encodebytes(content).decode()
        head = f"{HEAD}Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n"
        yield from several(".mbox", {f"pdf-{name}": mailbox(head + coded)})


def pdf_of(packed: bytes) -> bytes:
    """A document whose page has this content, packed."""
    head = PDF + b"<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    page = b"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R>>endobj\n4 0 obj"
    start = b"<</Filter/FlateDecode/Length %d>>stream\n" % len(packed)
    end = b"\nendstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
    return head + page + start + packed + end


@kind
def messages_of_outlook() -> Iterator[Hostile]:
    inner: dict[str, Any] = {"__properties_version1.0": bytes(24)}
    for _ in range(100):
        storage = {"__substg1.0_3701000D": inner, "__properties_version1.0": bytes(8)}
        inner = {"__properties_version1.0": bytes(24), "__attach_version1.0_#0": storage}
    good: dict[str, Any] = {"__substg1.0_1000001F": "ebb".encode("utf-16-le")}
    whole = compound(good)
    rtf = b"\0" * 8 + b"LZFu" + bytes(4) + b"\xff" + b"\x0b\x0f" * 1_000_000
    attached = {"__substg1.0_37010102": b"x"}
    streams: dict[str, Any] = {
        "deep": good | inner,
        "rtf": {"__substg1.0_10090102": rtf},
        "headers": good | {"__substg1.0_007D001E": b"From: x\n" * 100_000},
        "lines": good | {"__substg1.0_0037001E": b"a\r\nBcc: b\r\n\r\n" * 9_000},
        "many": good | {f"__attach_version1.0_#{n:08X}": attached for n in range(300)},
        "page": {"__substg1.0_10130102": b"<div>" * 200_000},
        "time": good | {"__properties_version1.0": bytes(32) + b"\x40\0\x39\0" + b"\xff" * 12},
        "pages": good | {"__properties_version1.0": bytes(32) + b"\xff" * 99},
    }
    files = {f"outlook-{name}": compound(content) for name, content in streams.items()}
    yield from several(".msg", files)
    damaged = {f"{n}": whole[:n] + b"\xfe" * 4 + whole[n + 4 :] for n in range(44, 80, 4)}
    loops = {"sectors": whole.replace(b"\xfe\xff\xff\xff", bytes(4)), "cut": whole[:700]}
    yield from several(
        ".msg", {f"damaged-{name}": text for name, text in (damaged | loops).items()}
    )
