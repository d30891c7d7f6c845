"""Files of the static tree are what the snapshot says, or are not given."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evidence.errors import Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.papers import assets
from service.papers.assets import Asset, LocalAssets
from tests.helpers.asset_files import PAPER, digest, put, put_source, soon
from tests.helpers.memory import peak_growth

DATA = Path(__file__).parents[3] / "data"
TEXT = "Überschrift\r\n\r\n中間\n".encode()
JSON = b'{"summary": "short"}'
HOSTILE = [
    "..",
    ".",
    "",
    "../secret",
    "a/../../secret",
    "/etc/passwd",
    "a\\b",
    "a\0b",
    "x" * 256,
    "é" * 128,
    "\ud800",
]


def by_template(template: str | None = None, **row: str | None) -> Asset:
    known = {"preferred": "simple", "resource_path": None, "content_hash": None}
    return assets.summary(PAPER, template, **{**known, **row})  # type: ignore[arg-type]


def read(root: Path, asset: Asset) -> str:
    with LocalAssets(root).open(asset, soon()) as file:
        return file.read(0, file.total)


def refusal(root: Path, asset: Asset, *, code: str = "asset_fetch_failed") -> Unavailable:
    """The error of an asset, which tells what it is about and not where it was looked for."""
    with pytest.raises(Unavailable) as raised:
        LocalAssets(root).open(asset, soon())
    body = raised.value.body()
    assert body["code"] == code
    assert body["paper_id"] == asset.paper_id
    assert (body.get("template"), body.get("lang")) == (asset.template, asset.lang)
    for secret in (str(root), "secret", "md/", ".md", ".json", "/etc", asset.sha256 or "/"):
        assert secret not in raised.value.message
    return raised.value


@pytest.mark.parametrize("name", ["papers", "papers-legacy"])
def test_every_text_of_a_real_snapshot_is_found(name: str) -> None:
    root = DATA / name / "static"
    for path in root.glob("md/*.md"):
        assert read(root, assets.source(PAPER, path.stem)).encode() == path.read_bytes()
    for path in root.glob("md_translate/*/*.md"):
        asset = assets.translation(PAPER, path.parent.name, path.stem)
        assert read(root, asset).encode() == path.read_bytes()
    for path in root.glob("summary/*/*.json"):
        asset = replace(by_template(path.stem), candidates=(path.relative_to(root).parts,))
        assert read(root, asset).encode() == path.read_bytes()


def test_the_summaries_of_a_real_snapshot_are_those_of_their_templates() -> None:
    papers = json.loads((DATA / "papers" / "expected.json").read_text())
    for paper in papers:
        for template in [None, *paper["available"]]:
            asset = assets.summary(
                paper["paper_id"],
                template,
                preferred=paper["preferred"],
                resource_path=None,
                content_hash=None,
            )
            found = json.loads(read(DATA / "papers" / "static", asset))
            assert found["template_tag"] == (template or paper["preferred"])


def test_a_source_is_read_to_the_byte(tmp_path: Path) -> None:
    asset = put_source(tmp_path, TEXT)
    assert read(tmp_path, asset).encode() == TEXT
    assert LocalAssets(tmp_path).size(asset) == len(TEXT)


@pytest.mark.parametrize("folder", ["zh-CN", "zh-cn"])
def test_a_translation_lies_under_its_language_as_stored_or_in_lower_case(
    tmp_path: Path, folder: str
) -> None:
    put(tmp_path, f"md_translate/{folder}/{digest(TEXT)}.md", TEXT)
    asset = assets.translation(PAPER, "zh-CN", digest(TEXT))
    assert read(tmp_path, asset).encode() == TEXT
    assert LocalAssets(tmp_path).size(asset) == len(TEXT)


def test_the_preferred_summary_is_its_own_file_or_that_of_its_template(tmp_path: Path) -> None:
    put(tmp_path, f"summary/{PAPER}/simple.json", b'"of the template"')
    assert read(tmp_path, by_template()) == '"of the template"'
    put(tmp_path, f"summary/{PAPER}.json", b'"its own"')
    assert read(tmp_path, by_template()) == '"its own"'
    assert read(tmp_path, by_template("simple")) == '"of the template"'


def test_a_summary_lies_where_its_row_says(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/deep.json", JSON)
    put(tmp_path, f"summary/{PAPER}/deep.json", b'"the usual place"')
    row = by_template("deep", resource_path="elsewhere/deep.json", content_hash=digest(JSON))
    assert read(tmp_path, row).encode() == JSON
    error = refusal(tmp_path, replace(row, sha256=digest(TEXT)))
    assert "does not match its checksum" in error.message


def test_a_broken_file_does_not_hide_a_good_one(tmp_path: Path) -> None:
    put(tmp_path, f"summary/{PAPER}.json", b"{")
    put(tmp_path, f"summary/{PAPER}/simple.json", JSON)
    assert read(tmp_path, by_template()).encode() == JSON


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_are_not_plain_are_refused(tmp_path: Path, name: str) -> None:
    root = tmp_path / "static"
    put(tmp_path, "secret", JSON)
    put(tmp_path, "secret.json", JSON)
    put(tmp_path, "secret.md", TEXT)
    (root / "md").mkdir(parents=True)
    (root / "summary" / PAPER).mkdir(parents=True)
    for asset in (
        assets.translation(PAPER, name, digest(TEXT)),
        assets.source(PAPER, f"../{name}"),
        by_template("t", resource_path=f"summary/{name}"),
        by_template(f"../{name}"),
        Asset(PAPER, ((name,),), None, assets.MARKDOWN),
        Asset(PAPER, ((),), None, assets.MARKDOWN),
    ):
        refusal(root, asset)
        assert LocalAssets(root).size(asset) is None


def test_a_hostile_paper_id_leads_nowhere(tmp_path: Path) -> None:
    put(tmp_path, "secret.json", JSON)
    root = tmp_path / "static"
    (root / "summary").mkdir(parents=True)
    asset = assets.summary(
        "../../secret", None, preferred="simple", resource_path=None, content_hash=None
    )
    with pytest.raises(Unavailable):
        LocalAssets(root).open(asset, soon())


def test_links_are_followed_inside_the_folder_only(tmp_path: Path) -> None:
    root = tmp_path / "static"
    inside = put_source(root, TEXT)
    (root / "md" / "linked.md").symlink_to(root / "md" / f"{digest(TEXT)}.md")
    assert read(root, Asset(PAPER, (("md", "linked.md"),), None, assets.MARKDOWN))
    put(tmp_path, "secret.md", TEXT)
    (root / "md" / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "out").symlink_to(tmp_path)
    for parts in (("md", "out.md"), ("out", "secret.md")):
        asset = Asset(PAPER, (parts,), None, assets.MARKDOWN)
        assert "is outside its directory" in refusal(root, asset).message
        assert LocalAssets(root).size(asset) is None
    (tmp_path / "moved").symlink_to(root)
    assert read(tmp_path / "moved", inside).encode() == TEXT


def test_a_folder_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    put(tmp_path, "static-secret/a.md", TEXT)
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "link").symlink_to(tmp_path / "static-secret")
    refusal(tmp_path / "static", Asset(PAPER, (("link", "a.md"),), None, assets.MARKDOWN))


def test_what_is_missing_is_missing(tmp_path: Path) -> None:
    put(tmp_path, "md", b"a file where a folder should be")
    for root in (tmp_path, tmp_path / "nowhere"):
        asset = assets.source(PAPER, digest(TEXT))
        assert "is missing" in refusal(root, asset).message
        assert LocalAssets(root).size(asset) is None


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    asset = Asset(PAPER, (("a",),), None, assets.MARKDOWN)
    assert "cannot be read" in refusal(tmp_path, asset).message


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_only_plain_files_are_read(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "a")
    asset = Asset(PAPER, (("a",),), None, assets.MARKDOWN)
    assert "is not a regular file" in refusal(tmp_path, asset).message
    assert LocalAssets(tmp_path).size(asset) is None


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_file_of_another_user_is_refused(open_folder: Path) -> None:
    put(open_folder, "a", TEXT).chmod(0o000)
    asset = Asset(PAPER, (("a",),), None, assets.MARKDOWN)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        error = refusal(open_folder, asset)
    finally:
        os.seteuid(user)
    assert "cannot be read" in error.message


def test_bytes_that_are_not_those_of_the_row_are_refused(tmp_path: Path) -> None:
    asset = put_source(tmp_path, TEXT)
    put(tmp_path, f"md/{digest(TEXT)}.md", TEXT + b" ")
    assert "does not match its checksum" in refusal(tmp_path, asset).message
    capital = replace(asset, sha256=digest(TEXT + b" ").upper())
    assert read(tmp_path, capital).encode() == TEXT + b" "


@pytest.mark.parametrize("content", [b"caf\xe9", b"\xed\xa0\x80", b"cut \xe4\xb8", b"\xff\xfea\0"])
def test_what_is_not_utf8_cannot_be_parsed(tmp_path: Path, content: bytes) -> None:
    asset = put_source(tmp_path, content)
    assert "is not UTF-8 text" in refusal(tmp_path, asset, code="asset_parse_failed").message


@pytest.mark.parametrize("content", [b"", b"{", b"<!doctype html>", b"[" * 100_000, b"{'a': 1}"])
def test_a_summary_that_is_not_json_cannot_be_parsed(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, f"summary/{PAPER}/deep.json", content)
    error = refusal(tmp_path, by_template("deep"), code="asset_parse_failed")
    assert "is not JSON, or is too large to parse" in error.message


def test_what_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    for asset, bound in (
        (Asset(PAPER, (("a",),), None, assets.MARKDOWN), BUDGETS.asset_bytes),
        (Asset(PAPER, (("b",),), None, assets.JSON), BUDGETS.summary_bytes),
    ):
        with (tmp_path / asset.candidates[0][0]).open("wb") as file:
            file.truncate(bound + 1)
        assert "is too large" in refusal(tmp_path, asset).message


def test_a_text_is_not_read_past_the_deadline(tmp_path: Path) -> None:
    asset = put_source(tmp_path, b"read by nobody yet")
    with pytest.raises(Unavailable) as raised:
        LocalAssets(tmp_path).open(asset, Deadline.after(0))
    assert (
        raised.value.code == "asset_fetch_failed"
        and "took too long to load" in raised.value.message
    )
    assert read(tmp_path, asset) == "read by nobody yet"


def test_a_file_is_verified_once_and_again_when_it_changes(tmp_path: Path) -> None:
    asset = put_source(tmp_path, b"the very first bytes")
    path = tmp_path / "md" / f"{asset.sha256}.md"
    read(tmp_path, asset)
    before = path.stat()
    path.write_bytes(b"some different bytes")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read(tmp_path, asset) == "some different bytes"
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert "does not match its checksum" in refusal(tmp_path, asset).message


def test_refused_files_are_closed(tmp_path: Path) -> None:
    asset = put_source(tmp_path, b"caf\xe9")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        refusal(tmp_path, asset, code="asset_parse_failed")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_large_file_does_not_fill_memory(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(50_000_000)
    asset = Asset(PAPER, (("a",),), None, assets.MARKDOWN)

    def work() -> None:
        with LocalAssets(tmp_path).open(asset, soon()) as text:
            assert text.total == 50_000_000
            assert text.window(49_990_000, 10_000) == "\0" * 10_000

    assert peak_growth(work) < 4_000_000
