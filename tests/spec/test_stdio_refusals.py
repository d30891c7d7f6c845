"""Whom `rung stdio` does not serve: each refusal says why and what to do."""

import io
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from service import settings
from service.bootstrap import Services
from service.mcp.surface import RecordsSurface
from service.mcp.stdio import serve
from service.operations.base import Session
from tests.helpers.posting import legacy_body
from tests.helpers.stdio import ERAS, started, stdio
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House
from tests.spec.scenarios import scenario

RECORD = "mail-work/messages:m_002"
BOTH = pytest.mark.parametrize("era", ERAS)
TOKEN = "rung_a-token-nobody-knows"

REFUSED: dict[str, tuple[tuple[str, ...], dict[str, str], int, str]] = {
    "unknown option": (("--profile", "x"), {}, 64, "--profile"),
    "a token on the command line": (("--token", TOKEN), {}, 64, "--token-file"),
    "two sources": (("--store", "{store}", "--papers", "x"), {}, 64, "only one"),
    "no store": (("--store", "{folder}/nowhere.db"), {}, 64, "rung import"),
    "no snapshot": (("--papers", "{folder}/nowhere.db"), {}, 64, "--papers"),
    "no snapshot either": (("--papers", "{store}"), {}, 1, "cannot be served"),
    "no store either": (("--store", "{folder}/clients/x"), {"RUNG_TOKEN": TOKEN}, 1, "The store"),
    "a bad address": (("--provider-url", "ftp://x"), {}, 64, "https://"),
    "a bad setting": (("--store", "{store}"), {"RUNG_TOKEN": TOKEN, "PORT": "x"}, 64, "PORT"),
    "no token": (("--store", "{store}"), {}, 78, "rung grant create"),
    "a token that is none": (("--store", "{store}"), {"RUNG_TOKEN": "a b"}, 78, "RUNG_TOKEN"),
    "an unknown token": (("--store", "{store}"), {"RUNG_TOKEN": TOKEN}, 78, "rung grant create"),
    "a token of others": (("--store", "{store}"), {"RUNG_TOKEN": "x"}, 78, "client token"),
    "a token file that is not there": (
        ("--store", "{store}", "--token-file", "{folder}/none"),
        {},
        78,
        "none cannot be read",
    ),
    "an owner token of the store": (
        ("--store", "{store}"),
        {"RUNG_TOKEN": "rung_owner_x"},
        77,
        "client token",
    ),
    "no credential": (
        ("--provider-url", "http://127.0.0.1:9/a", "--cache-root", "{folder}"),
        {},
        78,
        "pdpp connect http://127.0.0.1:9/a",
    ),
    "an expired credential": (
        ("--provider-url", "http://expired.example"),
        {"PDPP_CACHE_ROOT": "{folder}"},
        78,
        "pdpp connect http://expired.example",
    ),
    "a credential of another provider": (
        ("--provider-url", "http://expired.example/b", "--cache-root", "{folder}"),
        {},
        78,
        "another provider",
    ),
    "an owner credential": (
        ("--cache-root", "{folder}"),
        {"RUNG_UPSTREAM_URL": "http://owner.example"},
        77,
        "owner credential",
    ),
    **{
        name: (("--store", "{store}"), {"RUNG_TOKEN": TOKEN, name: "x"}, 77, name)
        for name in settings.OWNER_VARIABLES
    },
}

CACHE = {
    "expired.example": {"expires_at": "1999-01-01T00:00:00Z"},
    "owner.example": {"Role": "client", "token_kind": "Owner"},
}


@pytest.fixture(scope="module")
def refusals(
    small_house: House, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process for each refusal. They start together, because starting takes most of the time."""
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "clients").mkdir()
    for host, members in CACHE.items():
        document = {
            "provider_url": f"http://{host}",
            "credential": {"access_token": TOKEN, **members},
        }
        (folder / "clients" / f"{host}.json").write_bytes(orjson.dumps(document))
    (folder / "clients" / "x").write_text("no store", encoding="utf-8")
    places = {"store": str(small_house.path), "folder": str(folder)}
    running = {
        name: started(
            *(word.format(**places) for word in arguments),
            **{variable: value.format(**places) for variable, value in environ.items()},
        )
        for name, (arguments, environ, _, _) in REFUSED.items()
    }
    yield running
    for process in running.values():
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
@scenario("004/owner/owner-tokens-refused")
def test_who_is_refused_learns_why_and_what_to_do(
    refusals: dict[str, subprocess.Popen[bytes]], name: str
) -> None:
    _, _, code, words = REFUSED[name]
    out, log = refusals[name].communicate(timeout=WAIT_SECONDS)
    said = log.decode()
    assert refusals[name].returncode == code, said
    assert out == b"" and words in said and TOKEN not in said
    assert "Traceback" not in said


def test_help_says_what_the_exit_codes_mean(tmp_path: Path) -> None:
    process = started("--help")
    out, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert all(code in out.decode() for code in ("64", "77", "78", "RUNG_TOKEN"))


def test_a_token_file_others_can_read_is_warned_of_and_used(
    small_house: House, tmp_path: Path
) -> None:
    _, token = small_house.grant()
    path = tmp_path / "token"
    path.write_text(token, encoding="utf-8")
    path.chmod(0o644)
    with stdio("--store", small_house.path, "--token-file", path, RUNG_TOKEN="not-this") as pipe:
        pipe.caller().ok("fetch", id=RECORD)
        warning, _ = pipe.log().splitlines()
        assert f"chmod 600 {path}" in warning and token not in warning
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@BOTH
def test_a_revoked_grant_reads_nothing_more_and_says_so(era: str, small_house: House) -> None:
    grant_id, token = small_house.grant()
    with stdio("--store", small_house.path, RUNG_TOKEN=token) as pipe:
        caller = pipe.caller(ERAS[era])
        caller.ok("fetch", id=RECORD)
        small_house.revoke(grant_id)
        for tool, arguments in (
            ("fetch", {"id": RECORD}),
            ("schema", {}),
            ("search", {"query": "x"}),
        ):
            assert caller.fails(tool, **arguments).error["code"] == "grant_revoked"
        error = caller.rpc("resources/read", {"uri": f"pdpp://record/{RECORD}"})["error"]
        assert error["data"]["code"] == "grant_revoked"
        assert caller.result("tools/list")["tools"]
        assert pipe.close() == (0, b"")
        assert token not in pipe.log()


def test_a_session_is_opened_for_each_message_that_reads_and_for_no_other(
    small_house: House,
) -> None:
    services: Services = small_house.app.extensions["rung"]
    _, token = small_house.grant()
    opened: list[Session] = []

    def open_session() -> Session:
        opened.append(services.open_session(token))
        return opened[-1]

    fetch = legacy_body("tools/call", {"name": "fetch", "arguments": {"id": RECORD}})
    read = legacy_body("resources/read", {"uri": f"pdpp://record/{RECORD}"})
    wrong = legacy_body("tools/call", {"name": "fetch", "arguments": {}})
    silent = [legacy_body("tools/list"), legacy_body("ping"), wrong]
    source = io.BytesIO(b"\n".join(map(orjson.dumps, [fetch, *silent, read, fetch])))
    out = io.BytesIO()
    serve(RecordsSurface(), open_session, source, out)
    assert len(out.getvalue().splitlines()) == 6
    assert len({id(session) for session in opened}) == len(opened) == 3
