"""`paper://` resources: `{paper_id}/metadata`, `/summary`, `/summary/{template}`, `/source`,
`/translation/{lang}`, each but the first with `?offset_chars=`. Parts are percent-encoded."""

from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from evidence.errors import InvalidRequest, NotFound

SCHEME = "paper://"

#: Kinds of resources, and whether a name follows: no, yes, or either.
KINDS: dict[str, tuple[bool, ...]] = {
    "metadata": (False,),
    "summary": (False, True),
    "source": (False,),
    "translation": (True,),
}
_OFFSET = "offset_chars"


@dataclass(frozen=True, slots=True)
class PaperUri:
    """A resource of a paper. `name` is a template or a language; `offset` counts code points."""

    paper_id: str
    kind: str
    name: str | None = None
    offset: int = 0

    def __str__(self) -> str:
        parts = [self.paper_id, self.kind, *([] if self.name is None else [self.name])]
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{SCHEME}{path}" + (f"?{_OFFSET}={self.offset}" if self.offset else "")

    def at(self, offset: int) -> "PaperUri":
        """The same resource from another place on."""
        return replace(self, offset=offset)


def parse(uri: str) -> PaperUri:
    """The resource a URI names; `NotFound` where none, `InvalidRequest` for a bad query."""
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    parts = [unquote(part) for part in path.split("/")]
    names = KINDS.get(parts[1], ()) if len(parts) in (2, 3) else ()
    if not uri.startswith(SCHEME) or not all(parts) or (len(parts) == 3) not in names:
        raise NotFound(
            "No such resource. Resources are paper://{paper_id}/metadata, /summary, "
            "/summary/{template}, /source and /translation/{lang}; search_papers gives paper ids."
        )
    if query and parts[1] == "metadata":
        raise InvalidRequest("The metadata of a paper is whole: leave out what follows the ?.")
    return PaperUri(parts[0], parts[1], parts[2] if len(parts) == 3 else None, _offset(query))


def _offset(query: str) -> int:
    if not query:
        return 0
    name, _, value = query.partition("=")
    if name != _OFFSET or not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise InvalidRequest(
            "A paper resource takes ?offset_chars= with a whole number, and nothing else.",
            param=_OFFSET,
        )
    return int(value)
