"""Finds how much of a list fits a tool result; text and structured content both count, in bytes."""

from collections.abc import Callable

import orjson

from evidence.limits import Budgets
from renderers.rendering import Context, Rendering

#: Renders a reading cut to so many items.
Cut = Callable[[int, Context], Rendering]


def most(count: int, cut: Cut, budgets: Budgets, *, text_bytes: int | None = None) -> int | None:
    """The largest number of `count` items that fits when rendered, at least 1; None if all do."""
    room = budgets.text_bytes if text_bytes is None else text_bytes
    context = Context(budgets)

    def fits(kept: int) -> bool:
        made = cut(kept, context)
        shown = sum(len(block.encode()) for block in made.blocks)
        return shown <= room and len(orjson.dumps(made.structured)) <= budgets.structured_bytes

    if count == 0 or fits(count):
        return None
    low, high = 1, count - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
