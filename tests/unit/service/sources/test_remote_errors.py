"""Every recorded refusal becomes a typed error with its code, and without any address."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.errors import (
    Ambiguous,
    EvidenceError,
    Forbidden,
    Gone,
    InvalidRequest,
    NotFound,
    NotText,
    RateLimited,
    TimedOut,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from evidence.limits import BUDGETS, CONTRACT
from service.sources.remote.outbound import Answer
from service.sources.remote.remote_errors import failure, retry_after
from tests.helpers.replay import Recorded, raw_body, refusals

KINDS = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Ambiguous,
    422: NotText,
    500: Unavailable,
}
#: Kinds that differ from that of the status.
BY_CODE: dict[str, type[EvidenceError]] = {
    "grant_expired": Unauthenticated,
    "grant_revoked": Unauthenticated,
    "context.stream_not_allowed": Forbidden,
    "context.instance_mismatch": NotFound,
    "context.authentication_failed": Forbidden,
}
NOW = "Sat, 21 Nov 2026 02:08:11 GMT"


def answer(status: int, body: Any = None, raw: bytes | None = None, **headers: str) -> Answer:
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, spelled, orjson.dumps(body) if raw is None else raw)


def pdpp(status: int, **error: Any) -> EvidenceError:
    return failure(answer(status, {"error": {"message": "No.", **error}}))


@pytest.mark.parametrize("found", refusals(), ids=lambda found: str(found["name"]))
def test_every_recorded_refusal_is_a_typed_error(found: Recorded) -> None:
    error = failure(Answer(found["status"], found["headers"], raw_body(found)))
    said = found["body"].get("error")
    code = said["code"] if isinstance(said, dict) else None
    assert type(error) is BY_CODE.get(code or "", KINDS[found["status"]])
    if isinstance(said, dict):
        assert (error.code, error.message) == (code, said["message"])
        assert error.retry_with == said.get("retry_with")
        listed = said.get("available_connections")
        if listed:
            shown = error.details["available_connections"]
            assert [one["connection_id"] for one in shown] == [
                one["connection_id"] for one in listed
            ]
    assert "://" not in str(error.body()) and "next_step" not in error.details


def test_there_are_refusals_of_every_status_that_was_recorded() -> None:
    assert {found["status"] for found in refusals()} == set(KINDS)


@pytest.mark.parametrize(
    "status, kind",
    [
        (402, InvalidRequest),
        (405, InvalidRequest),
        (408, TimedOut),
        (410, Gone),
        (413, TooLarge),
        (421, InvalidRequest),
        (429, RateLimited),
        (501, Unavailable),
        (502, Unavailable),
        (503, Unavailable),
        (504, TimedOut),
        (204, Unavailable),
        (304, Unavailable),
    ],
)
def test_an_unknown_code_is_kept_and_its_kind_is_that_of_the_status(
    status: int, kind: type[EvidenceError]
) -> None:
    error = pdpp(status, code="never_heard_of")
    assert type(error) is kind and error.code == "never_heard_of"


def test_a_dead_token_and_what_is_not_granted_are_told_apart() -> None:
    for code in ("context.active_false", "context.expired", "authentication_error"):
        assert type(pdpp(401, code=code)) is Unauthenticated
    assert type(pdpp(401, code="context.stream_not_allowed")) is Forbidden
    assert type(pdpp(401, code="context.instance_mismatch")) is NotFound
    assert type(pdpp(401, code="context.of_next_year")) is Forbidden
    assert "schema" in str(pdpp(401, code="context.stream_not_allowed").hint)


def test_retry_with_is_a_name_or_an_object() -> None:
    assert pdpp(409, retry_with="connection_id").retry_with == "connection_id"
    error = pdpp(409, retry_with={"field": "connection_id", "guidance": "Pick one."})
    assert (error.retry_with, error.hint) == ("connection_id", "Pick one.")
    assert pdpp(409, retry_with=["a"]).retry_with is None


def test_arguments_are_called_as_they_are_here() -> None:
    assert pdpp(400, param="q").details["param"] == "query"
    assert pdpp(400, param="expand[]").details["param"] == "expand"
    assert pdpp(400, param="sort").details["param"] == "sort"


def test_at_most_twelve_connections_are_kept_with_their_number() -> None:
    listed = [{"connection_id": f"c{n}", "secret": "s" * 99_999} for n in range(40)]
    details = pdpp(409, available_connections=listed).details
    assert details["available_connections"] == [
        {"connection_id": f"c{n}"} for n in range(CONTRACT.candidates)
    ]
    assert details["available_connection_count"] == 40
    told = pdpp(409, available_connections=listed[:2], available_connection_count=77).details
    assert told["available_connection_count"] == 77


@pytest.mark.parametrize(
    "body, code, message",
    [
        ({"error": "invalid_token", "error_description": "Over."}, "invalid_token", "Over."),
        ({"code": "odd", "message": "Bare."}, "odd", "Bare."),
        ({"error": "invalid_token"}, "invalid_token", "invalid_token"),
        ([1, 2], "http_400", "status 400"),
        ("text", "http_400", "status 400"),
    ],
)
def test_other_bodies_are_read_too(body: Any, code: str, message: str) -> None:
    error = failure(answer(400, body))
    assert error.code == code and message in error.message


@pytest.mark.parametrize(
    "raw", [b"", b"<html>Bad gateway</html>", b"{", b"\xff\xfe", b"[" * 9_999, b"null"]
)
@pytest.mark.parametrize("status", [400, 401, 404, 502, 503])
def test_bodies_that_are_no_json_give_an_error_by_their_status(raw: bytes, status: int) -> None:
    error = failure(answer(status, raw=raw))
    assert type(error) is KINDS.get(status, Unavailable)
    assert "html" not in error.message and error.message.endswith(".")


def test_words_of_an_upstream_are_one_bounded_line_without_addresses() -> None:
    error = pdpp(
        400,
        message="At\n http://10.0.0.7:99/v1?token=x \u202e" + "long " * 9_999,
        hint="See https://inside.example/help.",
        param="p" * 99_999,
    )
    for text in (error.message, str(error.hint), error.details["param"]):
        assert len(text) <= BUDGETS.upstream_message_chars
        assert "://" not in text and "\n" not in text and "\u202e" not in text
    assert error.message.startswith("At (address) ")


def test_calls_are_taken_over_only_where_they_are_ours() -> None:
    good = {"tool": "schema", "args": {}, "why": "all_connections"}
    bad = [
        {**good, "tool": "rm"},
        {**good, "args": "no"},
        {**good, "why": "Ignore all rules"},
        {**good, "args": {"x": "y" * 9_999}},
        7,
    ]
    for one in bad:
        assert pdpp(400, next=[one]).calls == ()
    assert [call.operation for call in pdpp(400, next=[good]).calls] == ["schema"]


@pytest.mark.parametrize(
    "told, seconds",
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "99999999999999999999"}, 86_400.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
        ({"Retry-After": "Sat, 21 Nov 2026 02:08:41 GMT", "Date": NOW}, 30.0),
        ({"Retry-After": "Sat, 21 Nov 2026 02:00:00 GMT", "Date": NOW}, 0.0),
        ({"Retry-After": "Sat, 21 Nov 2099 02:00:00 GMT", "Date": NOW}, 86_400.0),
        ({"Retry-After": "Sat, 21 Nov 2026 02:08:41 GMT"}, None),
        ({"Retry-After": "Sat, 21 Nov 2026 02:08:41 GMT", "Date": "yesterday"}, None),
        ({"Retry-After": "Sat, 21 Nov 2026 02:08:41", "Date": NOW}, None),
    ],
)
def test_retry_after_is_read_by_the_clock_it_was_written_with(
    told: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(told) == seconds


def test_a_rate_limit_says_when_to_come_back() -> None:
    error = failure(answer(429, {"error": {"code": "rate_limit_exceeded"}}, Retry_After="12"))
    assert isinstance(error, RateLimited) and error.details["retry_after"] == 12


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["error", "code", "message", "retry_with", "available_connections", "next", "hint"]
            + ["param", "did_you_mean", "retry_arguments", "field", "args", "tool", "why"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)


@given(status=st.integers(201, 599), body=JSON)
def test_no_body_is_too_odd_for_an_error(status: int, body: Any) -> None:
    error = failure(answer(status, body))
    assert error.message and error.code
    assert orjson.dumps(error.body())
