"""Settings of an upstream: what goes with what, all faults at once, and no secret in them."""

import pytest

from service.settings import THREADS, WAITING_THREADS, SettingsError, load

URL = "https://pdpp.example.com"
INTROSPECTION = {
    "RUNG_INTROSPECTION_URL": "https://as.example.com/introspect",
    "RUNG_INTROSPECTION_CLIENT_ID": "rung",
    "RUNG_INTROSPECTION_CLIENT_SECRET": "very-secret",
}


def faults(**environ: str) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        load(environ)
    assert "very-secret" not in str(raised.value)
    return str(raised.value).splitlines()


def test_threads_that_wait_for_an_upstream_are_more() -> None:
    assert load({}).threads == THREADS
    assert load({"RUNG_UPSTREAM_URL": URL}).threads == WAITING_THREADS
    assert load({"RUNG_UPSTREAM_URL": URL, "RUNG_THREADS": "4"}).threads == 4


def test_an_upstream_with_introspection_is_read_whole() -> None:
    found = load({"RUNG_UPSTREAM_URL": f"{URL}/", **INTROSPECTION, "RUNG_AUDIENCE": URL})
    assert (found.upstream_url, found.audience) == (URL, URL)
    assert found.introspection_client_secret == "very-secret"


@pytest.mark.parametrize(
    "url",
    [
        "pdpp.example.com",
        "ftp://a",
        "https://me:very-secret@a",
        "https://a/?very-secret",
        "https://a#b",
    ],
)
def test_an_address_that_is_no_plain_one_is_refused_without_showing_it(url: str) -> None:
    (line,) = faults(RUNG_UPSTREAM_URL=url)
    assert line.startswith("RUNG_UPSTREAM_URL is ") and URL in line


@pytest.mark.parametrize("port", ["99999", "x", "0"])
def test_a_storage_of_counts_has_a_port_that_is_one(port: str) -> None:
    (line,) = faults(RUNG_RATE_LIMIT_STORAGE=f"redis://:very-secret@counts.internal:{port}/0")
    assert line.startswith("RUNG_RATE_LIMIT_STORAGE is ") and "redis://" in line
    assert "very-secret" not in line


@pytest.mark.parametrize("missing", INTROSPECTION)
def test_what_belongs_together_is_asked_for_by_name(missing: str) -> None:
    given = {name: value for name, value in INTROSPECTION.items() if name != missing}
    lines = faults(RUNG_UPSTREAM_URL=URL, **given)
    assert all(f"requires {missing}, for example " in line for line in lines)


def test_every_fault_is_told_at_once() -> None:
    lines = faults(RUNG_AUDIENCE=URL, RUNG_THREADS="many", RUNG_INTROSPECTION_CLIENT_ID="rung")
    assert len(lines) == 3


def test_no_secret_is_in_the_repr_of_settings() -> None:
    secrets = {"RUNG_SECRET_KEY": "very-secret-key", "RUNG_PAPERS_TOKENS": "very-secret-tokens"}
    found = load({"RUNG_UPSTREAM_URL": URL, **INTROSPECTION, **secrets})
    assert found.secret_key and found.papers_tokens
    assert "very-secret" not in repr(found)


@pytest.mark.parametrize(
    "origin",
    ["https://app.example/x", "https://*.example.com", "https://app.example:*", "app.example", "*"],
)
def test_an_origin_that_no_page_can_have_stops_the_start(origin: str) -> None:
    (line,) = faults(RUNG_ALLOWED_ORIGINS=f"null {origin}")
    assert line.startswith("RUNG_ALLOWED_ORIGINS is ") and "https://app.example.com" in line
