"""An exception is told by its type and its places, never by what it says or holds."""

from service.running import logs


def test_a_stack_has_types_and_places_but_no_message_and_no_value() -> None:
    secret = "the text of a record"
    try:
        try:
            raise KeyError(secret)
        except KeyError as cause:
            raise ValueError(f"cannot read {secret}") from cause
    except ValueError as error:
        told = logs.stack(error)
    assert secret not in told
    assert "ValueError" in told and "caused by KeyError" in told
    assert "test_a_stack_has_types_and_places" in told


def test_a_cause_that_was_left_out_stays_out() -> None:
    try:
        try:
            raise KeyError
        except KeyError:
            raise ValueError from None
    except ValueError as error:
        assert "KeyError" not in logs.stack(error).split("\n")
