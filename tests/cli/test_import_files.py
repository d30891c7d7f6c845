"""Paths that `rung import` takes: folders, archives, near names, and files it cannot read."""

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung

LINE = '{"id": "a", "t": "harbour"}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNG_STORE", "store/rung.db")
    return tmp_path


def bring(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(rung, ("import", *words), input=stdin)


def test_a_folder_is_read_file_by_file_and_what_cannot_be_read_is_named(home: Path) -> None:
    (home / "My export/inner").mkdir(parents=True)
    (home / "My export/a.ndjson").write_text(LINE)
    (home / "My export/inner/b.csv.gz").write_bytes(gzip.compress(b"id,t\n1,pier\n"))
    (home / "My export/photo.png").write_bytes(b"\x89PNG\r\n")
    (home / "My export/.hidden.csv").write_text("id\n1\n")
    shown = bring("My export").stderr
    assert "the connection 'my-export'" in shown and "2 new" in shown
    assert "photo.png cannot be imported. It looks like an image." in shown
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("name", "connection"),
    [
        ("mail.ndjson", "mail"),
        ("Über uns.ndjson.gz", "über-uns"),
        ("v1.2 data.ndjson", "v1.2-data"),
    ],
)
def test_the_connection_has_the_name_of_the_file(home: Path, name: str, connection: str) -> None:
    packed = gzip.compress(LINE.encode()) if name.endswith(".gz") else LINE.encode()
    (home / name).write_bytes(packed)
    assert f"the connection {connection!r}" in bring(name).stderr


def test_standard_input_has_no_name(home: Path) -> None:
    result = bring("-", stdin=LINE)
    assert result.exit_code == 1 and "--connection NAME" in result.stderr


@pytest.mark.parametrize("name", ["x.nd", "x.jsonln", "x.ndjsonl", "x"])
def test_near_names_and_no_names_are_understood(home: Path, name: str) -> None:
    (home / name).write_text(LINE)
    assert "1 new" in bring(name).stderr


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("mail.pst", b"!BDN", "an Outlook archive"),
        (
            "ads.js",
            b"window.YTD.ad_engagements.part0 = [ {",
            "a Twitter archive file that has no posts or messages",
        ),
        ("page.json", b"<!DOCTYPE html><p>", "a web page"),
        ("a.enw", b"%0 Journal Article\n%T Tides\n", "an EndNote file"),
        ("a.nbib", b"PMID- 123\nOWN - NLM\n", "a PubMed file"),
        ("a.txt", b"FN Clarivate Analytics Web of Science\nVR 1.0\n", "a Web of Science file"),
        ("a.ofx", b"OFXHEADER:100\nDATA:OFXSGML\n", "an OFX or QFX file"),
        ("a.qfx", b'<?xml version="1.0"?>\n<?OFX VERSION="2"?>\n<OFX></OFX>', "an OFX or QFX file"),
        ("a.iif", b"!TRNS\tTRNSID\tDATE\nTRNS\t1\t3/3/2026\n", "a QuickBooks IIF file"),
        ("a.gpx", b'<?xml version="1.0"?>\n<gpx version="1.1">', "a GPX track"),
        ("a.doc", b"\xd0\xcf\x11\xe0", "an old Office document"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_for_what_it_is(
    home: Path, name: str, content: bytes, what: str
) -> None:
    (home / name).write_bytes(content)
    result = bring(name)
    assert result.exit_code == 1
    assert f"{name} cannot be imported. It looks like {what}." in result.stderr
    assert not (home / "store").exists()


@pytest.mark.parametrize("name", ["broken.gz", "broken.csv.gz"])
def test_a_damaged_archive_is_an_error_with_its_name(home: Path, name: str) -> None:
    (home / name).write_bytes(b"\x1f\x8b not packed")
    result = bring(name)
    assert result.exit_code == 1 and f"{name} cannot be unpacked" in result.stderr


@pytest.mark.parametrize(
    ("options", "advice"),
    [(("--encoding", "klingon"), "utf-16"), (("--delimiter", "ab"), "one character")],
)
def test_an_option_that_cannot_be_is_refused(
    home: Path, options: tuple[str, ...], advice: str
) -> None:
    (home / "x.csv").write_text("id,t\n1,a\n")
    result = bring("x.csv", *options)
    assert result.exit_code == 1 and advice in result.stderr


def test_exports_that_overlap_add_nothing_twice(home: Path) -> None:
    (home / "may.csv").write_text("t,n\nrent,1.5\nrent,1.5\nfood,2\n")
    (home / "june.csv").write_text("t,n\nrent,1.5\nfood,2\nfood,2\n")
    assert "3 new" in bring("may.csv", "--connection", "c", "--stream", "s").stderr
    assert (
        "1 new, 0 changed, 2 unchanged"
        in bring("june.csv", "--connection", "c", "--stream", "s").stderr
    )


def test_tables_that_are_strict_or_all_bad_leave_nothing(home: Path) -> None:
    (home / "x.csv").write_text("id,t\n1,a\n2\n")
    assert bring("x.csv", "--strict").exit_code == 1
    assert bring("x.csv").exit_code == 3
    assert "1 unchanged" in bring("x.csv").stderr
