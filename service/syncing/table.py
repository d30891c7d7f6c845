"""The kinds of sources, ours and those of other packages."""

from importlib.metadata import entry_points
from typing import Final

from evidence.errors import InvalidRequest
from service.syncing.connector import Kind
from service.syncing.kinds import command, dav, folder, imap, url, zotero

#: The entry points with which other packages add kinds.
GROUP: Final = "rung.sources"
OURS: Final = {
    kind.name: kind
    for kind in (folder.KIND, imap.KIND, *dav.KINDS, zotero.KIND, url.KIND, command.KIND)
}


def kind_of(name: str) -> Kind:
    """The kind with a name; raises `InvalidRequest` if there is none, or it cannot be loaded."""
    if name in OURS:
        return OURS[name]
    for point in entry_points(group=GROUP, name=name):
        try:
            kind = point.load()
        except Exception as error:  # another package may be broken in any way
            raise InvalidRequest(f"The kind {name!r} of {point.module} fails: {error}.") from error
        if isinstance(kind, Kind):
            return kind
        raise InvalidRequest(f"{point.value} is not a Kind. Update or uninstall that package.")
    raise InvalidRequest(f"There is no kind {name!r}. Kinds: {', '.join(kinds())}.")


def kinds() -> list[str]:
    """The names of all kinds; ours come first."""
    plugged = {point.name for point in entry_points(group=GROUP)}
    return [*OURS, *sorted(plugged - OURS.keys())]
