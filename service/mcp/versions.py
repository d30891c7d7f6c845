"""The supported protocol revisions, newest first, and how `initialize` negotiates one.

*Modern* revisions have no handshake: each request names its revision in `params._meta`. *Legacy*
revisions begin with `initialize`; later requests name the revision in a header or, in the oldest
one, nowhere.
"""

from typing import Final

MODERN: Final = ("2026-07-28",)
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
SUPPORTED: Final = (*MODERN, *LEGACY)

#: The revision assumed for an HTTP request without one, because its client predates the version
#: header.
ASSUMED_VERSION: Final = "2025-03-26"

#: The only revision with arrays of messages; the next one removed them.
WITH_BATCHES: Final = frozenset({"2025-03-26"})

#: Clients of these revisions drop any result that contains a `resource_link`.
WITHOUT_LINKS: Final = frozenset({"2024-11-05", "2025-03-26"})


def negotiate(requested: str) -> str:
    """The negotiated revision: the requested one if legacy, else our newest legacy one.

    A modern revision is never the answer, because modern revisions have no `initialize`.
    """
    return requested if requested in LEGACY else LEGACY[0]
