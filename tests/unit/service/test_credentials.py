"""The PDPP credential cache: which file, whose token, and what is refused."""

import string
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.errors import EvidenceError, Forbidden, InvalidRequest, Unauthenticated
from service import credentials

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
URL = "https://pdpp.example.com"
TOKEN = "pdpp_at_secret-word"


def write(folder: Path, credential: Any, provider: str = URL, **members: Any) -> Path:
    """A cache file as `pdpp connect` writes it."""
    path = credentials.cache_file(folder, provider)
    path.parent.mkdir(exist_ok=True)
    document = {"provider_url": provider, "credential": credential, **members}
    path.write_bytes(orjson.dumps(document))
    return path


def read(path: Path, provider: str = URL) -> str:
    return credentials.from_cache(path, provider, NOW)


def refused(path: Path, provider: str = URL) -> EvidenceError:
    """What reading raises. It never holds the token."""
    with pytest.raises(EvidenceError) as caught:
        read(path, provider)
    error = caught.value
    assert TOKEN not in f"{error.message} {error.hint} {error.details} {error!r}"
    return error


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:18771", "127.0.0.1_18771.json"),
        ("https://pdpp.example.com/a/b", "pdpp.example.com.json"),
        ("http://[::1]:8000", "___1__8000.json"),
        ("https://my_host:8443", "my_host_8443.json"),
    ],
)
def test_the_cache_has_one_file_for_a_host_and_port(url: str, name: str) -> None:
    found = credentials.cache_file(Path("root"), credentials.provider_url(url))
    assert found == Path("root/clients") / name


@pytest.mark.parametrize(
    ("given_url", "expected"),
    [
        ("pdpp.example.com", URL),
        ("localhost:8000/x/", "https://localhost:8000/x"),
        ("HTTPS://PDPP.Example.com:443///", URL),
        ("https://user:word@pdpp.example.com/?q=1#top", URL),
        ("http://pdpp.example.com:80/a", "http://pdpp.example.com/a"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_an_address_has_one_spelling(given_url: str, expected: str) -> None:
    assert credentials.provider_url(given_url) == expected
    assert credentials.provider_url(expected) == expected


@pytest.mark.parametrize(
    "text", ["", "https://", "ftp://x", "http://[::1", "http://x:notaport", "http://a b", "://x"]
)
def test_an_unusable_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidRequest, match="URL is invalid") as caught:
        credentials.provider_url(text)
    assert "https://" in str(caught.value.hint)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        found = credentials.provider_url(text)
    except InvalidRequest:
        return
    assert credentials.provider_url(found) == found
    name = credentials.cache_file(Path("root"), found).name
    assert set(name) <= set(string.ascii_letters + string.digits + "._-")


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"token_type": "bearer", "expires_at": "2026-05-01T12:00:01Z"},
        {"expires_at": "2026-05-01T14:00:01+02:00", "pdpp_token_kind": "client"},
        {"expires_at": None, "scope": "grant", "grant_id": "grt_1"},
    ],
)
def test_a_good_credential_is_its_token(tmp_path: Path, members: dict[str, Any]) -> None:
    assert read(write(tmp_path, {"access_token": TOKEN, **members})) == TOKEN


@pytest.mark.parametrize("name", credentials.KIND_MEMBERS)
@pytest.mark.parametrize(
    "kind", ["owner", "Owner", "OWNER", " owner ", "owner_session", "pdpp-owner", ["owner"]]
)
@pytest.mark.parametrize("outside", [False, True])
def test_an_owner_credential_is_refused_however_it_says_so(
    tmp_path: Path, name: str, kind: Any, outside: bool
) -> None:
    told = {name: kind}
    credential = {"access_token": TOKEN, "expires_at": "1999-01-01T00:00:00Z"}
    path = write(tmp_path, credential | ({} if outside else told), **(told if outside else {}))
    error = refused(path)
    assert isinstance(error, Forbidden) and "owner credential" in error.message
    assert f"pdpp connect {URL}" in str(error.hint)


@pytest.mark.parametrize(
    ("credential", "code"),
    [
        ({"access_token": TOKEN, "expires_at": "2026-05-01T12:00:00Z"}, "credential_expired"),
        ({"access_token": TOKEN, "expires_at": "2026-05-01T11:59:59"}, "credential_expired"),
        ({"access_token": TOKEN, "expires_at": "2026-05-01T13:59:59+02:00"}, "credential_expired"),
        ({"access_token": TOKEN, "expires_at": "tomorrow"}, "credential_invalid"),
        ({"access_token": TOKEN, "expires_at": 1_800_000_000}, "credential_invalid"),
        ({"access_token": TOKEN, "token_type": "DPoP"}, "credential_invalid"),
        ({"access_token": f"{TOKEN}\r\nX: y"}, "credential_invalid"),
        ({"access_token": ""}, "credential_invalid"),
        ({"access_token": 7}, "credential_invalid"),
        ({}, "credential_invalid"),
        (TOKEN, "credential_invalid"),
        (None, "credential_invalid"),
    ],
)
def test_a_useless_credential_says_which_command_makes_a_new_one(
    tmp_path: Path, credential: Any, code: str
) -> None:
    error = refused(write(tmp_path, credential))
    assert isinstance(error, Unauthenticated) and error.code == code
    assert f"`pdpp connect {URL}`" in str(error.hint)


@given(seconds=st.integers(-10_000, 10_000))
def test_a_credential_works_until_it_expires(
    tmp_path_factory: pytest.TempPathFactory, seconds: int
) -> None:
    end = (NOW + timedelta(seconds=seconds)).isoformat()
    path = write(tmp_path_factory.getbasetemp(), {"access_token": TOKEN, "expires_at": end})
    if seconds > 0:
        assert read(path) == TOKEN
    else:
        assert refused(path).code == "credential_expired"


@pytest.mark.parametrize("content", [b"", b"[]", b"nonsense", b"\xff", b'"text"', b"[" * 5_000])
def test_a_broken_file_is_an_invalid_credential(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert refused(path).code == "credential_invalid"


def test_without_a_file_there_is_no_credential(tmp_path: Path) -> None:
    error = refused(credentials.cache_file(tmp_path, URL))
    assert isinstance(error, Unauthenticated) and error.code == "not_connected"
    assert f"pdpp connect {URL}" in str(error.hint) and "RUNG_TOKEN" in str(error.hint)


@pytest.mark.parametrize(
    ("cached", "asked"),
    [
        (f"{URL}/one", f"{URL}/two"),
        (f"{URL}/one", URL),
        (URL, f"{URL}/one"),
        ("https://pdpp.example.com", "http://pdpp.example.com"),
    ],
)
def test_two_providers_on_one_host_never_get_each_others_token(
    tmp_path: Path, cached: str, asked: str
) -> None:
    path = write(tmp_path, {"access_token": TOKEN}, cached)
    assert path == credentials.cache_file(tmp_path, asked)
    assert read(path, cached) == TOKEN
    error = refused(path, asked)
    assert isinstance(error, Unauthenticated) and error.code == "not_connected"
    assert "--cache-root" in str(error.hint)


def test_a_provider_that_is_not_named_is_the_root_of_its_host(tmp_path: Path) -> None:
    path = write(tmp_path, {"access_token": TOKEN}, provider_url=None)
    assert read(path) == TOKEN
    assert refused(path, f"{URL}/one").code == "not_connected"


@pytest.mark.parametrize("told", ["ftp://x", 7, {"url": URL}])
def test_an_address_that_is_none_belongs_to_nobody(tmp_path: Path, told: Any) -> None:
    assert refused(write(tmp_path, {"access_token": TOKEN}, provider_url=told)).code == (
        "not_connected"
    )


def test_a_token_file_holds_one_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert credentials.from_file(path) == TOKEN


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff\xfe", "schlüssel".encode()])
def test_a_file_without_a_token_is_an_invalid_credential(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(Unauthenticated) as caught:
        credentials.from_file(path)
    assert caught.value.code == "credential_invalid"


def test_a_file_that_is_not_there_is_an_invalid_credential(tmp_path: Path) -> None:
    with pytest.raises(Unauthenticated, match="cannot be read"):
        credentials.from_file(tmp_path / "nowhere")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o601])
def test_a_file_that_others_can_read_is_warned_of_with_the_command(
    tmp_path: Path, mode: int
) -> None:
    path = write(tmp_path, {"access_token": TOKEN})
    path.chmod(0o600)
    assert credentials.exposure(path) is None
    path.chmod(mode)
    assert f"chmod 600 {path}" in str(credentials.exposure(path))
