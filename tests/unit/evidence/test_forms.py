from typing import Any

import pytest

from evidence.errors import InvalidRequest
from evidence.manifest.forms import FORMS
from evidence.manifest import parse
from evidence.times import moment


@pytest.mark.parametrize(
    ("form", "value", "at"),
    [
        ("unix-seconds", 1767225600, "2026-01-01T00:00:00Z"),
        ("unix-seconds", "1767225600.000200", "2026-01-01T00:00:00.000200Z"),
        ("unix-milliseconds", 1767225600123, "2026-01-01T00:00:00.123000Z"),
        ("unix-microseconds", 1767225600000001, "2026-01-01T00:00:00.000001Z"),
        ("rfc-2822", "Thu, 01 Jan 2026 10:00:00 +0200", "2026-01-01T08:00:00Z"),
        ("rfc-2822", "Thu Jan  1 00:00:00 2026", "2026-01-01T00:00:00Z"),
        ("month-name", "Mar 3, 2026, 3:02:23 PM", "2026-03-03T15:02:23Z"),
        ("month-name", "03-Sept-26", "2026-09-03T00:00:00Z"),
        ("month-name", "Tuesday, March 3, 2026 at 10:00:00 AM UTC", "2026-03-03T10:00:00Z"),
        ("day-first", "03.04.2026", "2026-04-03T00:00:00Z"),
        ("day-first", "3/4/26 17:05", "2026-04-03T17:05:00Z"),
        ("month-first", "3/4/69, 12:05 AM", "1969-03-04T00:05:00Z"),
        ("year-first", "2026/3/4", "2026-03-04T00:00:00Z"),
    ],
)
def test_a_form_reads_its_times(form: str, value: Any, at: str) -> None:
    assert moment(FORMS[form](value) or 0) == at


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", ["", "soon", None, True, 1e300, "31.02.2026", "2026-13-01", {}])
def test_what_is_no_time_is_none(form: str, value: Any) -> None:
    assert FORMS[form](value) is None


def _manifest(**field: Any) -> Any:
    user = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    }
    return {
        "streams": [
            {
                "name": "s",
                "cursor_field": "ts",
                "schema": {"properties": {"ts": {"type": "integer", **field}, "user": user}},
                "query": {
                    "exact_filters": ["/user/name"],
                    "range_filters": {"/user/age": ["gte"]},
                    "search": {"lexical_fields": ["/user/name"]},
                },
            }
        ]
    }


def test_a_form_makes_a_field_a_time() -> None:
    (found,) = parse(_manifest(x_rung_form="unix-seconds"))
    assert found.time_field == "ts"
    with pytest.raises(InvalidRequest, match="unix-seconds"):
        parse(_manifest(x_rung_form="unix"))


def test_fields_inside_others_are_declared_by_json_pointer() -> None:
    (found,) = parse(_manifest())
    assert found.cell_fields == ("/user/name", "/user/age")
    assert found.lexical_fields == ("/user/name",)
    document = _manifest()
    document["streams"][0]["query"]["exact_filters"] = ["/user/nam"]
    with pytest.raises(InvalidRequest, match="; try '/user/name'.$"):
        parse(document)
