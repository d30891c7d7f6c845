"""What the browser visits: the demo, its papers and one connection of forged text, served."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from service.demo.fill import fill, token_for
from service.demo.papers import write
from service.place import Place
from service.records.sqlite.writer import open_writer
from tests.helpers import worlds
from tests.helpers.server import ROOT, serving
from tests.helpers.worlds import Connection, World

#: Text that would act, were it taken for markup. `marked` is set by whichever of it gets to run.
FORGED = (
    "<script>window.marked = 'script'</script>"
    "<img src=x onerror=\"window.marked = 'image'\">"
    "<a href=\"javascript:window.marked='link'\">zebra</a>"
)


@dataclass(frozen=True)
class Site:
    """A served demo with sign-in: `token` reads what it holds, `forged_token` the forged text."""

    base: str
    token: str
    forged_token: str
    place: Place


@contextmanager
def serving_site(**environ: str) -> Iterator[Site]:
    """The site on a free port, under the configuration that a host runs, and more settings."""
    with TemporaryDirectory() as folder:
        house = worlds.build(World((_forged(),)), Path(folder))
        forged_token = house.grant()[1]
        papers = write(Path(folder) / "papers")
        with open_writer(house.path) as writer:
            connections = fill(writer)
            token = token_for(writer, connections, Path(folder) / "token")
        given = {
            **house.environment,
            "RUNG_PAPERS_DB": str(papers),
            "RUNG_SIGN_IN": "on",
            **environ,
        }
        with serving("wsgi:app", given, config=str(ROOT / "gunicorn.conf.py")) as base:
            yield Site(base, token, forged_token, house.path)


def _forged() -> Connection:
    """One record whose every text is markup; it goes on after what a search shows of it."""
    fields = {"title": worlds.text("primary-title"), "text": worlds.text("primary-text")}
    notes = worlds.stream("notes", fields, query={"search": {"lexical_fields": ["title", "text"]}})
    text = f"Text {FORGED} zebra" + " and so on" * 60
    row = worlds.row("notes", "one", title=f"Title {FORGED}", text=text)
    return Connection("forged", "notes", f"Label {FORGED}", (notes,), (row,))
