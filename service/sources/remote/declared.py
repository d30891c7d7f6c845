"""What a server declares of its search beyond PDPP, asked where a request depends on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from evidence.errors import EvidenceError, RateLimited, TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.pdpp.decode import object_of
from service.ports import SEARCH_EXTENSIONS

#: Where servers declare it: the metadata that PDPP asks of all, then the index of the front page.
PATHS: Final = ("/.well-known/oauth-protected-resource", "/")
Read = Callable[[str], dict[str, Any]]


@dataclass(slots=True)
class Declared:
    """The further arguments that the search of an origin takes. Shared by threads."""

    _known: tuple[frozenset[str], Deadline] | None = None

    def arguments(self, read: Read) -> frozenset[str]:
        """Those of `SEARCH_EXTENSIONS` that it takes; raises what keeps the server from telling.

        `read` returns the JSON object at a path.
        """
        known = self._known
        if known is None or known[1].expired():
            listed = next((found for path in PATHS if (found := _listed(read, path))), [])
            names = frozenset(name for name in SEARCH_EXTENSIONS if name in listed)
            self._known = known = names, Deadline.after(BUDGETS.token_seconds)
        return known[0]


def _listed(read: Read, path: str) -> list[Any]:
    """The arguments a document names; none if there is no such document."""
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
