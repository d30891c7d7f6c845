"""The search extensions a server declares beyond PDPP, fetched when a request needs them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from evidence.errors import EvidenceError, RateLimited, TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.pdpp.decode import object_of
from service.ports import SEARCH_EXTENSIONS

#: The places of the declaration: the metadata that PDPP requires, then the discovery index.
PATHS: Final = ("/.well-known/oauth-protected-resource", "/")
Read = Callable[[str], dict[str, Any]]


@dataclass(slots=True)
class Declared:
    """The search extensions of an origin. Shared by threads."""

    _known: tuple[frozenset[str], Deadline] | None = None

    def arguments(self, read: Read) -> frozenset[str]:
        """The supported `SEARCH_EXTENSIONS`; raises the error of the server.

        `read` returns the JSON object at a path.
        """
        known = self._known
        if known is None or known[1].expired():
            listed = next((found for path in PATHS if (found := _listed(read, path))), [])
            names = frozenset(name for name in SEARCH_EXTENSIONS if name in listed)
            self._known = known = names, Deadline.after(BUDGETS.token_seconds)
        return known[0]


def _listed(read: Read, path: str) -> list[Any]:
    """The arguments a document names; empty without a document."""
    try:
        body = read(path)
    except (TimedOut, RateLimited):
        raise
    except EvidenceError as error:
        if isinstance(error, Unavailable) and error.code != "upstream_invalid_response":
            raise
        return []
    search = object_of(object_of(body, "capabilities"), "lexical_retrieval")
    listed = search.get("parameters")
    return listed if isinstance(listed, list) else []
