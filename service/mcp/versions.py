"""The protocol revisions spoken here, newest first, and how `initialize` settles on one.

*Modern* revisions have no handshake: each request names its revision in `params._meta`.
*Legacy* revisions begin with `initialize` and name theirs in a header afterwards, or, in the
oldest one, nowhere at all.
"""

from typing import Final

MODERN: Final = ("2026-07-28",)
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
SUPPORTED: Final = (*MODERN, *LEGACY)

#: The revision of an HTTP request without one: its clients predate the version header.
ASSUMED_VERSION: Final = "2025-03-26"

#: Over HTTP this name means another transport, so only a pipe may settle on it.
STDIO_ONLY: Final = ("2024-11-05",)

#: Arrays of messages came with this revision and left with the next.
WITH_BATCHES: Final = frozenset({"2025-03-26"})

#: Clients of these revisions drop a whole result that holds a `resource_link`.
WITHOUT_LINKS: Final = frozenset({"2024-11-05", "2025-03-26"})


def negotiate(requested: str, *, also: tuple[str, ...] = ()) -> str:
    """The revision `initialize` settles on: the requested one where it is legacy, else our newest.

    A modern revision is never the answer, because it has no `initialize` to be asked with.
    """
    return requested if requested in LEGACY or requested in also else LEGACY[0]
