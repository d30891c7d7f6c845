"""How a worker holds its memory: in one heap, and sharing what was there before it."""

import ctypes
import gc

_ARENAS_MAX = -8  # in glibc's malloc.h


def spare() -> None:
    """Makes all threads of this process and of its children share one heap.

    Each thread would get a heap of its own, and keep for itself what its largest answer took;
    threads of a worker take turns in Python anyway. Systems without glibc know none of this.
    """
    try:
        ctypes.CDLL(None).mallopt(_ARENAS_MAX, 1)
    except (AttributeError, OSError):
        return


def settle() -> None:
    """Leaves all there is now out of later collections: workers go on sharing it after a fork."""
    gc.collect()
    gc.freeze()
