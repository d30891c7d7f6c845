"""Two owners on two servers, and the package that one of them makes from a grant of each.

with two(tmp_path) as pair:
    package = pair.package()              # over a grant here and a grant there
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.work import Deadline
from service import keys
from service.sources.remote.remote_authority import remote_member
from service.access import packages
from service.access.registry import Member
from service.access.registry import Registry
from service.place import Place
from service.records import overview
from service.records.opening import open_reader, open_writer
from service.records.writing import Writing
from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.worlds import SECRET, Connection, House, World, row, text

HERE, THERE = 7, 5


def letters(connection_id: str, count: int) -> World:
    """One connection of letters; each contains the word lantern once."""
    fields = {"subject": text("primary-title"), "body": text("primary-text")}
    manifest = worlds.stream("letters", fields, query={"search": {"lexical_fields": ["body"]}})
    rows = tuple(
        row(
            "letters",
            f"{connection_id}-{number}",
            subject=f"Letter {number}",
            body=f"The lantern number {number} hangs in {connection_id}.",
        )
        for number in range(count)
    )
    label = connection_id.capitalize()
    return World((Connection(connection_id, "post", label, (manifest,), rows),))


@dataclass(frozen=True, slots=True)
class Package:
    """A package as its creator sees it."""

    id: str
    token: str
    local_grant: str
    remote_grant: str
    remote_token: str


@dataclass
class Pair:
    """A store here, and one behind a server."""

    here: House
    there: House
    url: str

    def package(self, **more: Any) -> Package:
        """Creates a package over a new grant of each."""
        local_grant, _ = self.here.grant(label="home")
        remote_grant, remote_token = self.there.grant()
        member = remote_member(self.url, remote_token, Deadline.after(10))
        with open_writer(self.here.path) as writer:
            members = [local_member(writer, self.here.path, local_grant), member]
            made = packages.create(
                Registry(writer), members, keys.of_tokens(SECRET.encode()), **more
            )
        return Package(*made, local_grant, remote_grant, remote_token)


@contextmanager
def two(folder: Path) -> Iterator[Pair]:
    """The pair, with the second store behind a server that runs during the block."""
    here, there = folder / "here", folder / "there"
    for place in (here, there):
        place.mkdir()
    away = worlds.build(letters("abroad", THERE), there)
    with serving("wsgi:app", away.environment) as url:
        yield Pair(worlds.build(letters("home", HERE), here), away, url)


def local_member(writer: Writing, place: Place, name: str) -> Member:
    """A grant of a store as a member, by its id or label."""
    with closing(open_reader(place)) as reader, reader.snapshot() as snapshot:
        return overview.local_member(Registry(writer), snapshot, name)
