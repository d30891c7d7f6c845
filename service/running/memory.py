"""Memory settings of a worker: one heap, and pages shared with the parent process."""

import ctypes
import gc

# Options of mallopt, in glibc's malloc.h.
_ARENAS_MAX = -8
_MMAP_THRESHOLD = -3
#: Blocks of this size use mmap, so that free() returns them to the system.
_APART_BYTES = 65_536


def spare() -> None:
    """Makes all threads of this process and its children share one heap; large blocks use mmap.

    Otherwise each thread has its own heap, which stays as large as its largest answer;
    threads of a worker take turns in Python anyway. Large blocks would leave holes that fit only
    smaller ones. Does nothing without glibc.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(_ARENAS_MAX, 1)
        libc.mallopt(_MMAP_THRESHOLD, _APART_BYTES)
    except (AttributeError, OSError):
        return


def settle() -> None:
    """Excludes all current objects from garbage collection, so that forked workers share them."""
    gc.collect()
    gc.freeze()
