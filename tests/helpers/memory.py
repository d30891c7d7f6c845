"""What a piece of work costs in memory."""

import tracemalloc
from collections.abc import Callable


def peak_growth(work: Callable[[], object]) -> int:
    """Bytes that `work` allocates at its peak beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
