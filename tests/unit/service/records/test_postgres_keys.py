"""Keys of values sort as SQLite sorts the values, and give them back."""

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from service.records.engine.selections import Value
from service.records.postgres.keys import kept_value, key_of, number_of, value_of

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1])
VALUES = WHOLE | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)


@given(VALUES, VALUES)
def test_keys_are_ordered_as_sqlite_orders_values(one: Value, other: Value) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        pair = "SELECT a < b, a = b FROM (SELECT ? AS a, ? AS b)"
        less, equal = db.execute(pair, (one, other)).fetchone()
    assert (key_of(one) < key_of(other), key_of(one) == key_of(other)) == (less, equal)


@given(VALUES)
def test_a_value_comes_back_from_its_key(value: Value) -> None:
    assert value_of(key_of(value)) == value
    kept = kept_value(key_of(value), number_of(value))
    assert kept == value and type(kept) is type(value)
