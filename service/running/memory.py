"""Memory settings of a worker: one heap, and pages shared with the parent process."""

import ctypes
import gc

# Options of mallopt, in glibc's malloc.h.
_ARENAS_MAX = -8
_MMAP_THRESHOLD = -3
#: From this size on memory is given back when it is free, whatever lies behind it.
_APART_BYTES = 65_536


def spare() -> None:
    """Makes all threads of this process and of its children share one heap, without the large.

    Each thread would get a heap of its own, and keep for itself what its largest answer took;
    threads of a worker take turns in Python anyway. What is large would leave holes in it that only
    something smaller fits into. Systems without glibc know none of this.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(_ARENAS_MAX, 1)
        libc.mallopt(_MMAP_THRESHOLD, _APART_BYTES)
    except (AttributeError, OSError):
        return


def settle() -> None:
    """Leaves all there is now out of later collections: workers go on sharing it after a fork."""
    gc.collect()
    gc.freeze()
