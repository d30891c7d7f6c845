"""Documents of office programs, books and web pages: their text, in parts with offsets."""

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from service.extras import install_command
from service.importing.finding import find
from service.importing.process.parsing import by_kind
from tests.formats.owner import Owner, counts, write, zipped

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWN = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
CORE = (
    f'<p:coreProperties xmlns:p="{PACKAGE}/metadata/core-properties"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="http://purl.org/dc/terms/">'
    "<dc:title>Harbour plan</dc:title><dc:creator>Ada Byron</dc:creator>"
    "<t:modified>2026-03-04T05:06:07Z</t:modified></p:coreProperties>"
)
TYPES = {"[Content_Types].xml": "<Types/>"}


def pdf(*texts: str) -> bytes:
    """A page for each text."""
    count = len(texts)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(texts):
        drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    content, offsets = "%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, start=1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    return f"{content}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def described_pdf(*texts: str, password: str = "") -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(*texts))))
    writer.add_metadata(
        {"/Title": "Harbour plan", "/Author": "Ada Byron", "/ModDate": "D:20260304050607Z"}
    )
    if password:
        writer.encrypt(password)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def packed(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def docx(body: str, **more: str) -> bytes:
    document = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    core = {"docProps/core.xml": CORE}
    return packed({**TYPES, "word/document.xml": document, **core, **more})


def said(text: str) -> str:
    return f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(*texts: str) -> bytes:
    """Slides; the first one is the last file. The second has notes."""
    names = [f"slide{len(texts) - number}" for number in range(len(texts))]
    files = {
        **TYPES,
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{LINKS}">'
        + "".join(f'<p:sldId r:id="r{number}"/>' for number in range(len(texts)))
        + "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"r{number}", "slide", f"slides/{name}.xml") for number, name in enumerate(names))
        ),
        "docProps/core.xml": CORE,
    }
    for name, text in zip(names, texts):
        files[f"ppt/slides/{name}.xml"] = drawn(text)
    files[f"ppt/slides/_rels/{names[1]}.xml.rels"] = relations(
        ("r1", "notesSlide", "../notesSlides/notes.xml")
    )
    files["ppt/notesSlides/notes.xml"] = drawn("Speak slowly")
    return packed(files)


def drawn(text: str) -> str:
    number = "<a:fld><a:t>7</a:t></a:fld>"
    paragraph = f"<a:p><a:r><a:t>{text}</a:t></a:r>{number}</a:p>"
    return f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWN}">{paragraph}</p:sld>'


def relations(*rows: tuple[str, str, str]) -> str:
    listed = "".join(
        f'<Relationship Id="{key}" Type="{LINKS}/{kind}" Target="{target}"/>'
        for key, kind, target in rows
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'


def opendocument(kind: str, body: str) -> bytes:
    names = " ".join(
        f'xmlns:{name}="{OPEN}:{name}:1.0"'
        for name in ("office", "text", "table", "draw", "presentation", "meta")
    )
    dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    about = (
        f"<office:document-meta {names} {dc}><office:meta><dc:title>Harbour plan</dc:title>"
        "<meta:initial-creator>Ada Byron</meta:initial-creator><dc:creator>Bob</dc:creator>"
        "<dc:date>2026-03-04T05:06:07.123456789</dc:date></office:meta></office:document-meta>"
    )
    content = f"<office:{kind}>{body}</office:{kind}>"
    document = f"<office:document-content {names}><office:body>{content}</office:body>"
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"{document}</office:document-content>",
            "meta.xml": about,
        }
    )


def epub(*chapters: str, **more: str) -> bytes:
    items = "".join(f'<item id="c{n}" href="c%20{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Harbour plan</dc:title>'
        '<dc:creator>Ada Byron</dc:creator><meta property="dcterms:modified">'
        f"2026-03-04T05:06:07Z</meta></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>"
    )
    root = '<container><rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles></container>'
    pages = {f"OPS/c {number}.xhtml": page for number, page in enumerate(chapters)}
    kind = {"mimetype": "application/epub+zip"}
    return packed({**kind, "META-INF/container.xml": root, "OPS/p.opf": package, **pages, **more})


RTF = (
    r"{\rtf1\ansi\ansicpg1252{\info{\title Harbour plan}{\author Ada Byron}"
    r"{\revtim\yr2026\mo3\dy4\hr5\min6\sec7}}{\fonttbl{\f0 Arial;}}"
    r"{\pict " + "0badc0de" * 500 + r"}\uc1 Die M\'f6we \u8212?\par\page Kelp\pagebb0\par}"
)
HTML = (
    '<!DOCTYPE html><html><head><meta charset="iso-8859-1"><title>Harbour plan</title>'
    '<meta name="author" content="Ada Byron">'
    '<meta property="article:modified_time" content="2026-03-04T05:06:07Z"></head><body>'
    '<p>Die M\xf6we</p><img src="http://x.invalid/p.png"><script>let x = "script"</script>'
    "<h1>Kelp</h1><p>A Kelp forest</p><h2>Quay</h2><p>Granite</p></body></html>"
).encode("latin-1")
#: A file -> the parts of its text.
FILES: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "a.pdf": (described_pdf("Gulls", "", "Kelp"), [("page 1", "Gulls"), ("page 3", "Kelp")]),
    "a.docx": (
        docx(
            said("M\U0001f30awe")
            + '<w:p><w:r><w:br w:type="page"/></w:r></w:p><w:p><w:r><w:lastRenderedPageBreak/>'
            "<w:t>Kelp</w:t><w:tab/><w:t>forest</w:t><w:instrText>INCLUDETEXT x</w:instrText>"
            f"</w:r></w:p><w:tbl><w:tr><w:tc>{said('a')}</w:tc><w:tc>{said('b')}</w:tc></w:tr>"
            f"</w:tbl><w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>",
            **{"word/comments.xml": f'<w:c xmlns:w="{WORD}">{said("Really?")}</w:c>'},
        ),
        [("page 1", "M\U0001f30awe"), ("page 2", "Kelp\tforest\na\tb"), ("comments", "Really?")],
    ),
    "a.odt": (
        opendocument(
            "text",
            "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>\n"
            "<text:h>Gulls</text:h>\n<text:p>one<text:s text:c='2'/>two "
            "<text:span>three</text:span> four</text:p><text:p><text:soft-page-break/>Kelp"
            "</text:p>",
        ),
        [("page 1", "Gulls\none  two three four"), ("page 2", "Kelp")],
    ),
    "a.odp": (
        opendocument(
            "presentation",
            "<draw:page><text:p>Gulls</text:p></draw:page><draw:page><text:p>Kelp</text:p>"
            "<presentation:notes><text:p>Speak slowly</text:p></presentation:notes></draw:page>",
        ),
        [("slide 1", "Gulls"), ("slide 2", "Kelp"), ("notes on slide 2", "Speak slowly")],
    ),
    "a.pptx": (
        pptx("Gulls", "Kelp"),
        [("slide 1", "Gulls"), ("slide 2", "Kelp"), ("notes on slide 2", "Speak slowly")],
    ),
    "a.epub": (
        epub("<html><h1>One</h1><p>Gulls &amp; M\xf6wen</p></html>", "<html><p>Kelp</p></html>"),
        [("One", "One\n\nGulls & M\xf6wen"), ("chapter 2", "Kelp")],
    ),
    "a.rtf": (RTF.encode(), [("page 1", "Die M\xf6we \u2014"), ("page 2", "Kelp")]),
    "a.html": (
        HTML,
        [("text", "Die M\xf6we"), ("Kelp", "Kelp\n\nA Kelp forest"), ("Quay", "Quay\n\nGranite")],
    ),
}


def parts(data: dict[str, Any]) -> list[tuple[str, str]]:
    return [(part["label"], data["text"][part["start"] : part["end"]]) for part in data["parts"]]


def test_every_kind_is_a_record_with_parts_and_what_it_says_about_itself(owner: Owner) -> None:
    folder = write(owner.home / "d", {f"sub/{name}": file for name, (file, _) in FILES.items()})
    report = owner.bring(folder)
    assert counts(report)["new"] == len(FILES) and "--list-left-out" not in report
    rows = {row["data"]["filename"]: row["data"] for row in owner.rows("documents")}
    for name, (_, expected) in FILES.items():
        data = rows[name]
        assert parts(data) == expected, name
        assert (data["title"], data["author"]) == ("Harbour plan", "Ada Byron"), name
        assert data["modified_at"].startswith("2026-03-04T05:06:07"), name
        assert data["id"] == f"sub/{name}" and data["kind"] == name[2:] and data["folder"] == "sub"
    owner.again(folder)
    for name, file in {"a.pdf": pdf("Gulls and terns"), "a.html": b"<p>Gulls, terns"}.items():
        write(folder / "sub", {name: file})
    assert counts(owner.bring(folder))["changed"] == 2
    assert {row["data"]["title"] for row in owner.rows("documents")} == {"Harbour plan", "a"}
    owner.finds('"gulls and terns"', "documents:sub%2Fa.pdf")


@pytest.mark.parametrize("name", FILES)
def test_a_document_alone_is_recognized_by_its_content(owner: Owner, name: str) -> None:
    form = {"odt": "opendocument", "odp": "opendocument"}.get(name[2:], name[2:])
    path = write(owner.home, {name: FILES[name][0]}) / name
    assert f"{name} is read as {form}." in owner.bring(path)


ENTITY = '<!DOCTYPE x [<!ENTITY a "harbour"><!ENTITY b "&a;&a;&a;">]>'
BOMB = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
SECRET = '<!DOCTYPE x [<!ENTITY s SYSTEM "file:///etc/hostname">]>'


def body(declared: str, text: str) -> dict[str, str]:
    document = f'{declared}<w:document xmlns:w="{WORD}">{said(text)}</w:document>'
    return {**TYPES, "word/document.xml": document}


HOSTILE: dict[str, tuple[bytes, str]] = {
    "locked.pdf": (described_pdf("Gulls", password="x"), "The file is encrypted."),
    "broken.pdf": (b"%PDF-1.7 broken", "The file cannot be read as a PDF"),
    "entity.docx": (packed(body(ENTITY, "&b;")), "The file declares XML entities"),
    "bomb.docx": (packed(body(f'<!DOCTYPE x [<!ENTITY e0 "x">{BOMB}]>', "&e12;")), "not valid XML"),
    "outside.docx": (packed(body(SECRET, "&s;")), "The file declares XML entities"),
    "attribute.docx": (
        packed(body(f'<!DOCTYPE x [<!ENTITY e0 "x">{BOMB}]>', '<w:b w:x="&e12;"/>')),
        "not valid XML",
    ),
    "broken.docx": (b"PK\x03\x04 broken", "The file is damaged"),
    "locked.odt": (
        packed(
            {
                "mimetype": "application/vnd.oasis.opendocument.text",
                "META-INF/manifest.xml": "<m><f><encryption-data/></f></m>",
                "content.xml": "?",
            }
        ),
        "The file is encrypted.",
    ),
    "locked.epub": (
        epub(
            "<p>x",
            **{
                "META-INF/encryption.xml": '<e><CipherReference URI="OPS/c%200.xhtml"/></e>',
            },
        ),
        "The chapters are encrypted.",
    ),
}


def test_hostile_documents_are_refused_with_the_reason(owner: Owner) -> None:
    files = {name: file for name, (file, _) in HOSTILE.items()}
    huge = packed({**TYPES, "word/document.xml": "x" * (300 << 20)})
    folder = write(owner.home / "d", {**files, "huge.docx": huge, "good.html": b"<p>Kelp</p>"})
    report = owner.bring(folder, code=3)
    assert counts(report)["new"] == 1 and counts(report)["refused"] == len(HOSTILE) + 1
    for name, (_, reason) in HOSTILE.items():
        (line,) = [line for line in report.splitlines() if f"{name} line 1" in line]
        assert reason in line, line
    assert "huge.docx unpacks to more than" in report
    assert {row["id"] for row in owner.rows("documents")} == {"good.html"}


def test_a_remote_template_is_not_loaded_and_a_macro_not_read(owner: Owner) -> None:
    link = f'<Relationship Id="r1" Type="{LINKS}/attachedTemplate" TargetMode="External"'
    remote = f'<R xmlns="{PACKAGE}/relationships">{link} Target="http://127.0.0.1:9/t"/></R>'
    more = {"word/_rels/settings.xml.rels": remote, "word/vbaProject.bin": "macro"}
    write(owner.home / "d", {"a.docm": docx(said("Kelp"), **more)})
    assert counts(owner.bring(owner.home / "d"))["new"] == 1
    (row,) = owner.rows("documents")
    assert row["data"]["text"] == "Kelp" and parts(row["data"]) == [("text", "Kelp")]


def test_a_document_that_a_note_embeds_is_its_attachment_only(owner: Owner) -> None:
    note = "# Plan\nSee ![[plan.pdf]]"
    path = zipped(owner.home / "n.zip", {"plan.pdf": pdf("Gulls"), "z.md": note})
    owner.bring(path)
    assert [row["data"]["text"] for row in owner.rows("attachments")] == ["Gulls"]
    assert "documents" not in owner.reader().ok("schema").stdout


def test_what_is_left_out_is_counted_by_kind_and_listed(owner: Owner) -> None:
    pictures = {f"p{number}.png": b"\x89PNG" for number in range(3)}
    others = {"a.dwg": b"\x01", "b.dwg": b"\x01", "scan.pdf": pdf(""), "t.html": b"<p>Kelp"}
    folder = write(owner.home / "d", {**pictures, **others})
    report = owner.bring(folder)
    assert "Left out: 3 files that look like an image. " in report
    assert "Left out: 2 files whose format is not known. " in report
    assert "scan.pdf has no text" in report and "p2.png" not in report
    assert "add --list-left-out" in report
    report = owner.bring(folder, "--list-left-out")
    for name in (*pictures, "a.dwg", "b.dwg", "scan.pdf"):
        assert any(line.startswith("  ") and name in line for line in report.splitlines()), name
    report = owner.bring(write(owner.home / "e", pictures), "--list-left-out", code=1)
    assert "None of the files can be imported. 3 files that look like an image." in report
    assert "p2.png cannot be imported." in report


def test_without_the_extra_the_report_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "d", {f"{name}.pdf": pdf("x") for name in "abc"} | {"t.html": "<p>x"})
    monkeypatch.setitem(sys.modules, "pypdf", None)
    files, listing = find([str(folder)], None, lambda: None)
    assert len(files) == 1
    (line,) = by_kind(listing.left_out)
    assert line.startswith("3 PDF files. ") and install_command("documents") in line
