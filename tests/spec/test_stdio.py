"""`rung stdio`: the surface of `/mcp` over a pipe, whom it serves, and how it ends."""

import io
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.limits import BUDGETS
from service.__main__ import rung
from service.cli.deferred import loaded
from service.mcp.stdio import lines
from tests.golden.transcripts import CALLS, PAPER_CALLS
from tests.helpers.caller import Caller, Local
from tests.helpers.papers import ATTENTION, Library
from tests.helpers.posting import ABSENT, LEGACY, MODERN, legacy_body, modern_body
from tests.helpers.stdio import ERAS, Pipe, command, environment, stdio
from tests.helpers.snapshots import DATA
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import SECRET, House
from tests.spec.scenarios import scenario

BOTH = pytest.mark.parametrize("era", ERAS)
HELLO = {
    "protocolVersion": LEGACY[0],
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
PING = legacy_body("ping")
URIS = (
    "pdpp://record/mail-work/messages:m_002",
    "pdpp://stream/messages",
    "pdpp://record/mail-work/messages:m_999",
    "pdpp://nowhere/at-all",
)
WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("no/such/method", {}),
    ("tools/call", {"name": "events", "arguments": {}}),
    ("tools/call", {"name": "search", "arguments": [1]}),
    ("tools/call", {}),
    ("tools/list", {"cursor": "x"}),
    ("resources/read", {}),
)


@pytest.fixture(scope="module")
def token(small: Local) -> str:
    """The token of the client `small`."""
    found: str = small.headers["Authorization"].removeprefix("Bearer ")
    return found


@pytest.fixture(scope="module")
def pipe(small_house: House, token: str) -> Iterator[Pipe]:
    """One process for many tests: no message affects a later one."""
    with stdio("--store", small_house.path, RUNG_TOKEN=token, RUNG_SECRET_KEY=SECRET) as found:
        yield found


def over_http(era: str, small: Local, token: str) -> Caller:
    return ERAS[era](small._post, token)


def both(era: str, pipe: Pipe, small: Local, token: str) -> tuple[Caller, Caller]:
    """The same client, over the pipe and over HTTP."""
    return pipe.caller(ERAS[era]), over_http(era, small, token)


def without_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what is specific to one request."""
    if "error" in answer:
        answer["error"].get("data", {}).pop("request_id", None)
    return {name: value for name, value in answer.items() if name != "id"}


# -- the surface is the same ----------------------------------------------------------------------


@BOTH
@scenario("004/setup/stdio-same-surface")
def test_the_tools_resources_and_instructions_are_those_of_http(
    era: str, pipe: Pipe, small: Local, token: str
) -> None:
    here, there = both(era, pipe, small, token)
    about = {"legacy": ("initialize", HELLO), "modern": ("server/discover", {})}[era]
    for method, params in (about, ("tools/list", {}), ("resources/templates/list", {})):
        assert here.result(method, params) == there.result(method, params)


@scenario("004/setup/stdio-same-surface")
def test_the_command_has_no_profiles_and_takes_no_token_on_its_command_line() -> None:
    options = {name for param in loaded(rung.commands["stdio"]).params for name in param.opts}
    assert options == {"--store", "--provider-url", "--papers", "--cache-root", "--token-file"}


@BOTH
@pytest.mark.parametrize("name", CALLS)
def test_every_call_answers_as_it_does_over_http(
    era: str, name: str, pipe: Pipe, small: Local, token: str
) -> None:
    tool, arguments = CALLS[name]
    here, there = both(era, pipe, small, token)
    params = {"name": tool, "arguments": arguments}
    assert here.result("tools/call", params) == there.result("tools/call", params)


@BOTH
@pytest.mark.parametrize("uri", URIS)
def test_every_resource_reads_as_it_does_over_http(
    era: str, uri: str, pipe: Pipe, small: Local, token: str
) -> None:
    here, there = both(era, pipe, small, token)
    params = {"uri": uri}
    assert here.rpc("resources/read", params) == there.rpc("resources/read", params)


@BOTH
@pytest.mark.parametrize(("method", "params"), WRONG)
def test_what_the_protocol_refuses_is_refused_as_over_http(
    era: str, method: str, params: dict[str, Any], pipe: Pipe, small: Local, token: str
) -> None:
    here, there = both(era, pipe, small, token)
    refused = without_ids(here.rpc(method, params))
    assert "error" in refused and refused == without_ids(there.rpc(method, params))


# -- one message a line ---------------------------------------------------------------------------


@pytest.mark.parametrize("id", [7, "seven", 0, "", -1])
def test_an_answer_has_the_id_of_its_request(pipe: Pipe, id: int | str) -> None:
    assert pipe.ask(legacy_body("ping", id=id)) == {"jsonrpc": "2.0", "id": id, "result": {}}


def test_answers_come_in_the_order_of_their_requests(pipe: Pipe) -> None:
    calls = [
        legacy_body("tools/call", {"name": tool, "arguments": arguments}, id=number)
        for number, (tool, arguments) in enumerate(CALLS.values())
    ]
    pipe.send(*map(orjson.dumps, calls))
    assert [orjson.loads(pipe.receive())["id"] for _ in calls] == list(range(len(calls)))


def test_what_asks_nothing_is_not_answered(pipe: Pipe) -> None:
    silent = [
        legacy_body("notifications/initialized", id=ABSENT),
        legacy_body("notifications/cancelled", {"requestId": 1}, id=ABSENT),
        modern_body("notifications/cancelled", {"requestId": 1}, id=ABSENT),
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    ]
    pipe.send(*map(orjson.dumps, silent), b"", b" \t ", b"\r")
    assert pipe.ask(PING)["result"] == {}


def test_both_eras_are_spoken_by_turns_in_one_pipe(pipe: Pipe) -> None:
    for _ in range(3):
        assert pipe.ask(modern_body("ping"))["error"]["code"] == -32601
        assert pipe.ask(legacy_body("ping"))["result"] == {}
        modern = pipe.ask(modern_body("tools/list"))["result"]
        assert modern["resultType"] == "complete"
        assert "resultType" not in pipe.ask(legacy_body("tools/list"))["result"]


def test_a_client_of_an_unknown_revision_is_told_the_known_ones(pipe: Pipe) -> None:
    error = pipe.ask(modern_body("tools/list", version="2031-01-01"))["error"]
    assert error["code"] == -32022 and error["data"]["supported"] == [MODERN, *LEGACY]


def test_the_revision_of_the_pipe_decides_whether_batches_are_read(
    small_house: House, token: str
) -> None:
    batch = [legacy_body("ping", id=1), legacy_body("ping", id=2)]
    with stdio("--store", small_house.path, RUNG_TOKEN=token) as pipe:
        for version, settled, read in (
            (None, None, True),
            ("2025-03-26", "2025-03-26", True),
            ("2024-11-05", "2024-11-05", False),
            ("2025-06-18", "2025-06-18", False),
            ("1999-01-01", LEGACY[0], False),
        ):
            if version is not None:
                hello = legacy_body("initialize", {**HELLO, "protocolVersion": version})
                assert pipe.ask(hello)["result"]["protocolVersion"] == settled
            answer = pipe.ask(batch)
            if read:
                assert [one["id"] for one in answer] == [1, 2]
            else:
                assert answer["error"]["code"] == -32600


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (b'"\\ud800"', -32700),
        (b"[" * 100_000, -32700),
        (b"\x00" * 100, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ],
)
def test_a_broken_line_costs_one_error_and_the_next_is_answered(
    pipe: Pipe, line: bytes, code: int
) -> None:
    pipe.send(line)
    assert orjson.loads(pipe.receive())["error"]["code"] == code
    assert pipe.ask(PING)["result"] == {}


def test_a_line_of_just_the_limit_is_read(pipe: Pipe) -> None:
    body = orjson.dumps(PING)
    pipe.send(body + b" " * (BUDGETS.body_bytes - len(body)))
    assert orjson.loads(pipe.receive())["result"] == {}


def test_a_line_over_the_limit_is_refused_without_being_kept(pipe: Pipe) -> None:
    before = resident_bytes(pipe)
    for excess in (1, 64 * BUDGETS.body_bytes):
        left = BUDGETS.body_bytes + excess
        while left:
            pipe._in.write(b"7" * min(left, BUDGETS.body_bytes))
            left -= min(left, BUDGETS.body_bytes)
        pipe.send(b"")
        error = orjson.loads(pipe.receive())["error"]
        assert error["code"] == -32600
        assert error["data"]["code"] == "request_too_large"
        assert error["data"]["limit"] == BUDGETS.body_bytes
        assert pipe.ask(PING)["result"] == {}
    assert resident_bytes(pipe) - before < 8 * BUDGETS.body_bytes


def resident_bytes(pipe: Pipe) -> int:
    """The peak memory of the process, in bytes."""
    status = Path(f"/proc/{pipe.process.pid}/status")
    if not status.exists():
        pytest.skip("the system does not say what a process holds")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@given(
    st.lists(st.binary(max_size=12).map(lambda text: text.replace(b"\n", b""))),
    st.booleans(),
    st.integers(1, 6),
)
def test_lines_are_whole_or_refused_and_never_out_of_step(
    written: list[bytes], ended: bool, most: int
) -> None:
    data = b"\n".join(written) + (b"\n" if ended else b"")
    expected = [
        line.strip() if len(line) <= most else None
        for line in written
        if len(line) > most or line.strip()
    ]
    found = [line and line.strip() for line in lines(io.BytesIO(data), most)]
    assert found == expected


# -- nothing else on stdout -----------------------------------------------------------------------

STRAY = """
import atexit, os, sys

def stray(event, arguments):
    if event in ("sqlite3.connect", "sqlite3.connect/handle"):
        print("PRINTED")
        sys.__stdout__.write("STRAY\\n")
        os.write(1, b"STRAY\\n")
        os.system("echo STRAY")

print("STRAY")
sys.addaudithook(stray)
atexit.register(print, "STRAY")
atexit.register(os.write, 1, b"STRAY\\n")
"""


def test_whatever_prints_does_so_on_stderr(small_house: House, token: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(STRAY, encoding="utf-8")
    more = {"PYTHONPATH": str(tmp_path), "RUNG_TOKEN": token}
    with stdio("--store", small_house.path, **more) as pipe:
        answer = pipe.caller().ok("search", query="invoice")
        assert answer.structured
        assert "PRINTED" in pipe.log()  # at once, not when a buffer is full
        assert pipe.close() == (0, b"")
        assert pipe.log().count("STRAY") >= 6


def test_a_closed_stderr_changes_nothing(small_house: House, token: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(STRAY, encoding="utf-8")
    environ = environment(PYTHONPATH=str(tmp_path), RUNG_TOKEN=token)
    shell = shlex.join(command("--store", small_house.path)) + " 2>&-"
    asked = orjson.dumps(PING) + b"\n"
    done = subprocess.run(shell, input=asked, stdout=subprocess.PIPE, shell=True, env=environ)
    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n' and done.returncode == 0


def test_stderr_says_what_is_served_in_one_line_without_the_token(
    small_house: House, token: str
) -> None:
    with stdio("--store", small_house.path, RUNG_TOKEN=token) as pipe:
        pipe.caller().ok("search", query="invoice")
        assert pipe.close() == (0, b"")
        (line,) = pipe.log().splitlines()
        assert str(small_house.path) in line and token not in line


# -- how it ends ----------------------------------------------------------------------------------


def test_the_last_line_is_answered_even_without_a_newline(small_house: House, token: str) -> None:
    with stdio("--store", small_house.path, RUNG_TOKEN=token) as pipe:
        pipe._in.write(orjson.dumps(PING))
        assert pipe.close() == (0, b'{"jsonrpc":"2.0","id":1,"result":{}}\n')


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_complaint(
    small_house: House, token: str, number: signal.Signals
) -> None:
    with stdio("--store", small_house.path, RUNG_TOKEN=token) as pipe:
        assert pipe.ask(PING)["result"] == {}
        pipe.process.send_signal(number)
        assert pipe.process.wait(WAIT_SECONDS) == 0
        assert len(pipe.log().splitlines()) == 1


def test_it_ends_when_nobody_reads_its_answers(small_house: House, token: str) -> None:
    with stdio("--store", small_house.path, RUNG_TOKEN=token) as pipe:
        assert pipe.ask(PING)["result"] == {}
        pipe._out.close()
        pipe.send(orjson.dumps(PING))
        assert pipe.process.wait(WAIT_SECONDS) == 0
        assert len(pipe.log().splitlines()) == 1


# -- papers ---------------------------------------------------------------------------------------


@BOTH
def test_papers_answer_as_they_do_over_http_and_need_no_token(era: str, papers: Library) -> None:
    with stdio("--papers", DATA / "papers" / "snapshot.db") as pipe:
        here = pipe.caller(ERAS[era])
        asked: list[tuple[str, dict[str, Any]]] = [
            ("tools/list", {}),
            ("resources/read", {"uri": f"paper://{ATTENTION}/metadata"}),
        ]
        asked += [("tools/call", {"name": t, "arguments": a}) for t, a in PAPER_CALLS.values()]
        for method, params in asked:
            assert without_ids(here.rpc(method, params)) == without_ids(
                ERAS[era](papers._post, "").rpc(method, params)
            )
