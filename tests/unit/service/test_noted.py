"""An exception is logged by its type and its places, never by its message or its data."""

import logging
import sys

import pytest

from service.running import noted


def test_a_stack_has_types_and_places_but_no_message_and_no_value() -> None:
    secret = "the text of a record"
    try:
        try:
            raise KeyError(secret)
        except KeyError as cause:
            raise ValueError(f"cannot read {secret}") from cause
    except ValueError as error:
        text = noted.stack(error)
    assert secret not in text
    assert "ValueError" in text and "caused by KeyError" in text
    assert "test_a_stack_has_types_and_places" in text


def test_a_cause_that_was_left_out_stays_out() -> None:
    try:
        try:
            raise KeyError
        except KeyError:
            raise ValueError from None
    except ValueError as error:
        assert "KeyError" not in noted.stack(error).split("\n")


def test_a_line_for_a_person_has_the_event_its_facts_and_the_stack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        noted.configure("text", "info")
        root.handlers[0].setStream(sys.stdout)  # type: ignore[attr-defined]
        request = {"method": "GET", "route": "/v1/search", "status": 200, "ms": 4.5}
        noted.log_request({**request, "operation": "search", "request_id": "req_1"})
        logging.getLogger("x").warning("something odd", exc_info=ValueError("a secret"))
    finally:
        root.handlers[:], root.level = handlers, level
        noted._written = None
    said = capsys.readouterr().out
    first, second, *stack = said.splitlines()
    assert "info    GET /v1/search 200 4.5 ms operation=search request_id=req_1" in first
    assert "warning something odd" in second and stack[0] == "ValueError"
    assert "a secret" not in said
