"""The items of a page, rendered where the page is, or by a pool if the page is heavy.

A page is heavy if its items together are larger than `PAGE_CHARS`. Each of its items then has
`render_seconds`: one that takes longer is shown without its text, and the page goes on.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from evidence.limits import BUDGETS
from evidence.work import Deadline, Done, Each

T = TypeVar("T")
R = TypeVar("R")

#: The code of the warning that some items are shown without their text.
TIMED_OUT = "rendering_timed_out"
#: A page of more code points than this is heavy.
PAGE_CHARS = BUDGETS.heavy_page_chars


def rendered(
    fn: Callable[[T], R], items: Sequence[T], each: Each, *, late: Callable[[T], R]
) -> tuple[list[R], list[int]]:
    """(`fn` of every item, the places of those that took too long or failed).

    Those have `late` of the item instead.
    """
    results: list[R] = []
    missed: list[int] = []
    outcomes = each(fn, items, Deadline.after(BUDGETS.render_seconds))
    for place, (item, outcome) in enumerate(zip(items, outcomes)):
        if isinstance(outcome, Done):
            results.append(outcome.value)
        else:
            results.append(late(item))
            missed.append(place)
    return results, missed


def warning(count: int) -> dict[str, Any]:
    """The warning of a page on which this many items are shown without their text."""
    shown = "One item takes" if count == 1 else f"{count} items take"
    return {
        "code": TIMED_OUT,
        "message": f"{shown} too long to render here and shows no text. Its own call reads it.",
    }


def timed_out(reading: Any) -> bool:
    """True if a page shows items without their text because they took too long."""
    listed = getattr(reading, "warnings", None) or ()
    return any(one.get("code") == TIMED_OUT for one in listed)
