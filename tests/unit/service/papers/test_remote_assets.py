"""Assets of another server arrive whole, in time and once, or not at all; the cache stays small."""

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from evidence.errors import Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.papers import assets, remote_assets
from service.papers.assets import Asset
from service.papers.remote_assets import RemoteAssets
from tests.helpers.asset_files import PAPER, digest, soon
from tests.helpers.asset_server import AssetServer, Mode, asset_server
from tests.helpers.memory import peak_growth

TEXT = "# Title\r\n\r\n中間 text\n".encode() * 500
JSON = b'{"summary": "short"}'
SOURCE = assets.source(PAPER, digest(TEXT))
ODD = "zh hant?#%"
FILES = {
    f"/static/md/{digest(TEXT)}.md": TEXT,
    f"/static/md_translate/{ODD}/{digest(TEXT)}.md": TEXT,
    f"/static/summary/{PAPER}.json": JSON,
}
SHORT = 0.3
PATIENCE = 5.0


@pytest.fixture
def server() -> Iterator[AssetServer]:
    with asset_server(dict(FILES)) as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def by_template(template: str | None = None) -> Asset:
    return assets.summary(
        PAPER, template, preferred="simple", resource_path=None, content_hash=None
    )


def store(server: AssetServer, cache: Path, generation: str = "g1") -> RemoteAssets:
    return RemoteAssets(f"{server.url}/static/", generation=generation, cache=cache)


def read(remote: RemoteAssets, asset: Asset) -> bytes:
    with remote.open(asset, soon()) as file:
        return file.read(0, file.total).encode()


def refusal(remote: RemoteAssets, asset: Asset = SOURCE, *, seconds: float = 60.0) -> Unavailable:
    """The error of an asset, which came soon and says nothing of the server or the cache."""
    patience = Deadline.after(PATIENCE)
    with pytest.raises(Unavailable) as raised:
        remote.open(asset, Deadline.after(seconds))
    assert not patience.expired()
    assert raised.value.body()["paper_id"] == PAPER
    for secret in ("127.0.0.1", "http", "static", "md/", ".md", "cache", tempfile.gettempdir()):
        assert secret not in str(raised.value.body())
    return raised.value


def test_an_asset_is_fetched_once(server: AssetServer, cache: Path) -> None:
    remote = store(server, cache)
    assert remote.size(SOURCE) is None
    assert read(remote, SOURCE) == read(remote, SOURCE) == TEXT
    assert remote.size(SOURCE) == len(TEXT)
    assert read(store(server, cache, "g2"), SOURCE) == TEXT
    assert len(server.paths) == 1


def test_the_cache_belongs_to_one_user(server: AssetServer, cache: Path) -> None:
    read(store(server, cache), SOURCE)
    (file,) = cache.iterdir()
    assert cache.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_cache_lies_under_the_temporary_folder(
    server: AssetServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for path in ("static", "static/", "other"):
        RemoteAssets(f"{server.url}/{path}", generation="g1").size(SOURCE)
    read(RemoteAssets(f"{server.url}/static", generation="g1"), SOURCE)
    read(RemoteAssets(f"{server.url}/static/", generation="g1"), SOURCE)
    (folder,) = tmp_path.iterdir()
    assert str(os.geteuid()) in folder.name and len(server.paths) == 1


def test_a_cache_that_others_may_write_to_is_not_used(server: AssetServer, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert remote_assets.DISK_FULL in refusal(store(server, cache)).message
    assert server.paths == []


def test_a_cache_that_is_a_link_is_not_used(server: AssetServer, cache: Path) -> None:
    (cache.parent / "elsewhere").mkdir(mode=0o700)
    cache.symlink_to(cache.parent / "elsewhere")
    assert remote_assets.DISK_FULL in refusal(store(server, cache)).message


def test_names_are_encoded(server: AssetServer, cache: Path) -> None:
    asset = assets.translation(PAPER, ODD, digest(TEXT))
    assert read(store(server, cache), asset) == TEXT
    assert server.paths == [f"/static/md_translate/zh%20hant%3F%23%25/{digest(TEXT)}.md"]


def test_summaries_are_cached_for_their_generation(server: AssetServer, cache: Path) -> None:
    assert read(store(server, cache), by_template()) == JSON
    server.files = {f"/static/summary/{PAPER}.json": b'"newer"'}
    assert read(store(server, cache), by_template()) == JSON
    assert read(store(server, cache, "g2"), by_template()) == b'"newer"'


def test_what_is_not_at_one_place_is_looked_for_at_the_next(
    server: AssetServer, cache: Path
) -> None:
    server.files = {f"/static/summary/{PAPER}/simple.json": JSON}
    assert read(store(server, cache), by_template()) == JSON
    server.files = {f"/static/md_translate/zh-tw/{digest(TEXT)}.md": TEXT}
    assert read(store(server, cache), assets.translation(PAPER, "zh-TW", digest(TEXT))) == TEXT


@pytest.mark.parametrize("name", ["..", "a/b", "a\\b", "", "a\0", "x" * 300])
def test_hostile_names_are_not_asked_for(server: AssetServer, cache: Path, name: str) -> None:
    assert (
        "has an invalid name"
        in refusal(store(server, cache), assets.source(PAPER, f"{name}/..")).message
    )
    assert store(server, cache).size(assets.source(PAPER, f"{name}/..")) is None
    assert server.paths == []


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("404", "is missing"),
        ("500", "cannot be downloaded"),
        ("reset", "cannot be downloaded"),
        ("wrong_length", "cannot be downloaded"),
        ("redirect_other", "cannot be downloaded"),
        ("redirect_loop", "cannot be downloaded"),
        ("html", "does not match its checksum"),
        ("huge", "is too large"),
    ],
)
def test_servers_that_misbehave_give_a_clear_error(
    server: AssetServer, cache: Path, mode: Mode, why: str
) -> None:
    server.mode = mode
    error = refusal(store(server, cache))
    assert error.code == "asset_fetch_failed" and why in error.message
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("mode", ["stall", "drip_head", "drip_body", "drip_open"])
def test_slow_servers_do_not_hold_a_reader(server: AssetServer, cache: Path, mode: Mode) -> None:
    server.mode = mode
    error = refusal(store(server, cache), seconds=SHORT)
    assert error.code == "asset_fetch_failed" and "took too long to load" in error.message
    assert list(cache.iterdir()) == []


def test_a_server_that_recovers_is_asked_again(server: AssetServer, cache: Path) -> None:
    server.mode = "500"
    refusal(store(server, cache))
    server.mode = "good"
    assert read(store(server, cache), SOURCE) == TEXT


def test_a_summary_that_is_a_web_page_cannot_be_parsed(server: AssetServer, cache: Path) -> None:
    server.mode = "html"
    error = refusal(store(server, cache), by_template("deep"))
    assert error.code == "asset_parse_failed" and error.body()["template"] == "deep"
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("mode", ["chunked_huge", "gzip_bomb"])
def test_a_huge_summary_fills_neither_memory_nor_disk(
    server: AssetServer, cache: Path, mode: Mode
) -> None:
    server.mode = mode
    remote = store(server, cache)
    assert "is too large" in refusal(remote, by_template()).message
    assert peak_growth(lambda: refusal(remote, by_template())) < 16 * 1_048_576
    assert list(cache.iterdir()) == []


def test_an_altered_file_of_the_cache_is_fetched_again(server: AssetServer, cache: Path) -> None:
    remote = store(server, cache)
    read(remote, SOURCE)
    (file,) = cache.iterdir()
    file.write_bytes(b"altered")
    assert read(remote, SOURCE) == TEXT
    assert file.read_bytes() == TEXT and len(server.paths) == 2


def test_what_lies_in_the_place_of_a_cached_file_does_not_harm(
    server: AssetServer, cache: Path
) -> None:
    remote = store(server, cache)
    read(remote, SOURCE)
    (file,) = cache.iterdir()
    file.unlink()
    os.mkfifo(file)
    assert read(remote, SOURCE) == TEXT
    file.unlink()
    file.mkdir()
    assert read(remote, SOURCE) == TEXT


def test_the_cache_keeps_what_was_used_last(server: AssetServer, cache: Path) -> None:
    contents = [bytes([65 + number]) * 1_000 for number in range(5)]
    server.files = {f"/static/md/{digest(content)}.md": content for content in contents}
    remote = RemoteAssets(f"{server.url}/static", generation="g1", cache=cache, cache_bytes=3_500)
    first, second, *others = [assets.source(PAPER, digest(content)) for content in contents]
    for asset in (first, second, *others[:1]):
        read(remote, asset)
        settle(cache)
    read(remote, first)
    settle(cache)
    for asset in others[1:]:
        read(remote, asset)
        settle(cache)
    assert sum(file.stat().st_size for file in cache.iterdir()) <= 3_500
    assert remote.size(first) == 1_000 and remote.size(second) is None


def settle(cache: Path) -> None:
    """Returns when a file changed from now on is told apart from those changed before."""
    last = max(file.stat().st_ctime_ns for file in cache.iterdir())
    probe = cache.parent / "probe"
    while True:
        probe.touch()
        if probe.stat().st_ctime_ns > last:
            return


def test_an_asset_larger_than_the_cache_is_given_but_not_kept(
    server: AssetServer, cache: Path
) -> None:
    remote = RemoteAssets(f"{server.url}/static", generation="g1", cache=cache, cache_bytes=10)
    assert read(remote, SOURCE) == TEXT
    assert list(cache.iterdir()) == []


def test_an_open_text_outlives_its_place_in_the_cache(server: AssetServer, cache: Path) -> None:
    with store(server, cache).open(SOURCE, soon()) as file:
        shutil.rmtree(cache)
        assert file.read(0, file.total).encode() == TEXT


def test_a_full_disk_is_a_clear_error(server: AssetServer, cache: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        error = refusal(store(server, cache))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert remote_assets.DISK_FULL in error.message and error.code == "asset_fetch_failed"
    assert list(cache.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_clear_error(server: AssetServer, cache: Path) -> None:
    cache.write_bytes(b"a file")
    assert remote_assets.DISK_FULL in refusal(store(server, cache / "inside")).message


def test_many_readers_may_fetch_the_same(server: AssetServer, cache: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: read(store(server, cache), SOURCE), range(24))
        assert set(found) == {TEXT}
    assert len(list(cache.iterdir())) == 1


def fetch_all(url: str, cache: Path, contents: list[bytes]) -> bool:
    """Reads all, several times, in a cache that holds few; true where all came whole."""
    remote = RemoteAssets(url, generation="g1", cache=cache, cache_bytes=30_000)
    wanted = [(assets.source(PAPER, digest(content)), content) for content in contents * 3]
    return all(read(remote, asset) == content for asset, content in wanted)


def test_processes_may_share_a_cache(server: AssetServer, cache: Path) -> None:
    contents = [bytes([65 + number]) * 10_000 for number in range(8)]
    server.files = {f"/md/{digest(content)}.md": content for content in contents}
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        started = [pool.submit(fetch_all, server.url, cache, contents) for _ in range(3)]
        assert all(each.result() for each in started)
    assert sum(file.stat().st_size for file in cache.iterdir()) <= 40_000


def test_nothing_is_left_open(server: AssetServer, cache: Path) -> None:
    remote = store(server, cache)
    server.mode = "html"
    refusal(remote)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        refusal(remote)
    # The server lives in this process too, and may still be closing a line or two of its own.
    assert len(os.listdir("/proc/self/fd")) < before + 10


@pytest.mark.parametrize(
    "url", ["", "static", "ftp://a/", "http://", "https://a/?b", "http://a/#b"]
)
def test_addresses_that_cannot_be_added_to_are_refused(url: str) -> None:
    with pytest.raises(ValueError):
        RemoteAssets(url, generation="g1")


def test_an_asset_has_less_time_than_a_request() -> None:
    assert BUDGETS.asset_seconds < BUDGETS.upstream_seconds
