"""Typed arguments reach a server as it spells them, and come back the same from a query string."""

from urllib.parse import urlencode

from hypothesis import given
from hypothesis import strategies as st

from service.operations import OPERATIONS
from service.rest import arguments
from service.pdpp.brackets import pairs_of, parameters

QUERY_RECORDS = next(found for found in OPERATIONS if found.name == "query_records")

NAMES = st.text(st.characters(exclude_characters="[]\0", exclude_categories=["Cs"]), min_size=1)
SCALARS = st.text(st.characters(exclude_categories=["Cs"])) | st.integers() | st.booleans()
RANGES = st.dictionaries(st.sampled_from(["gte", "gt", "lte", "lt"]), SCALARS, min_size=1)
FILTERS = st.dictionaries(NAMES, SCALARS | RANGES, max_size=4)


def test_lists_repeat_their_name_and_what_is_not_given_is_left_out() -> None:
    given_arguments = parameters(fields=("a", "b,c"), limit=5, cursor=None, streams=())
    assert given_arguments == [("fields", "a"), ("fields", "b,c"), ("limit", "5")]


def test_filters_and_limits_are_brackets() -> None:
    assert pairs_of({"filter": {"unread": True, "size": {"gte": 9, "lt": 1.5}}}) == [
        ("filter[unread]", "true"),
        ("filter[size][gte]", "9"),
        ("filter[size][lt]", "1.5"),
    ]
    assert pairs_of({"expand": ("replies",), "expand_limit": {"replies": 5}}) == [
        ("expand", "replies"),
        ("expand_limit[replies]", "5"),
    ]


@given(FILTERS)
def test_our_own_routes_read_a_filter_as_it_was_meant(found: dict[str, object]) -> None:
    sent = urlencode(pairs_of({"filter": found}))
    read, _ = arguments.read(QUERY_RECORDS, sent)
    assert read.get("filter", {}) == {
        name: (
            {key: spelled(one) for key, one in value.items()}
            if isinstance(value, dict)
            else spelled(value)
        )
        for name, value in found.items()
    }


def spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
