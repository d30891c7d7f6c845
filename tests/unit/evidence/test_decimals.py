from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.manifest.forms import decimal_in, decimal_key, decimal_of_key, decimal_total
from evidence.manifest.forms import exact_number, plain_decimal

numbers = st.decimals(allow_nan=False, allow_infinity=False, places=None).filter(
    lambda number: abs(number.adjusted()) < 10_000
)


@given(st.lists(numbers, min_size=2, max_size=20))
def test_keys_sort_as_their_numbers_do(found: list[Decimal]) -> None:
    assert [decimal_of_key(key) for key in sorted(map(decimal_key, found))] == sorted(found)
    for number in found:
        assert decimal_of_key(decimal_key(number)) == number


def test_keys_are_those_that_stores_have() -> None:
    keys = {
        "-0.00": "1",
        "12.50": "250002125",
        "-3.1": "04999868~",
        "0.0012": "24999812",
        "1E+40": "2500411",
        "-1E-40": "0500388~",
        "1200": "25000412",
        "90071992547409.93": "2500149007199254740993",
    }
    assert {text: decimal_key(Decimal(text)) for text in keys} == keys


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("1.10", ".", "1.1"),
        ("-12.50", ".", "-12.5"),
        ("-1.250,00", ",", "-1250"),
        ("1,250.00", ".", "1250"),
        ("1'250.50", ".", "1250.5"),
        ("1 250,5", ",", "1250.5"),
        ("\u22125", ".", "-5"),
        ("1.25e3", ".", "1250"),
        ("9223372036854775808", ".", "9223372036854775808"),
    ],
)
def test_a_number_is_read_with_its_mark(text: str, mark: str, number: str) -> None:
    found = decimal_in(text, mark)
    assert found == Decimal(number)


@pytest.mark.parametrize("text", ["", ".", "+", "1.2.3", "12,5,0", "1_0", "NaN", "٣", "1,25"])
def test_what_is_no_number_is_none(text: str) -> None:
    assert decimal_in(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.1", 1.1),
        ("5e-7", 5e-7),
        ("0.00001", 1e-5),
        ("-0.0", -0.0),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_json_numbers_that_keep_every_digit_stay_numbers(text: str, number: float) -> None:
    assert exact_number(text) == number


@pytest.mark.parametrize(
    "text", ["1.10", "9223372036854775808", "0.30000000000000001", "1e400", "123456789012345678.0"]
)
def test_json_numbers_that_would_lose_a_digit_are_none(text: str) -> None:
    assert exact_number(text) is None


def test_sums_are_exact() -> None:
    assert decimal_total([(Decimal("0.1"), 3), (Decimal("1e30"), 1)]) == Decimal(
        "1000000000000000000000000000000.3"
    )
    assert (
        plain_decimal(Decimal("1250.500")) == "1250.5" and plain_decimal(Decimal("1E+3")) == "1000"
    )
