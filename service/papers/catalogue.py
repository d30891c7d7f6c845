"""The papers of a snapshot by their full-text rows and in the order of a list."""

from dataclasses import dataclass

from service.papers.identity import is_paper_id
from service.papers.snapshot import Snapshot

YEAR_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`paper_of` by full-text row id, `rows_of` the newest row first, `place_of` in the list.

    A paper that was built twice has two full-text rows; a row without its paper is left out.
    The list runs by year, the newest first and unknown ones last, then by title and paper id.
    """

    paper_of: dict[int, str]
    rows_of: dict[str, tuple[int, ...]]
    place_of: dict[str, int]
    year_of: dict[str, int]

    def listed(self, papers: set[str]) -> list[str]:
        """The papers in the order of the list."""
        return sorted(papers & self.place_of.keys(), key=self.place_of.__getitem__)


def catalogue(snapshot: Snapshot) -> Catalogue:
    """The catalogue of a generation, read once."""
    return snapshot.once("catalogue", lambda: _read(snapshot))


def _read(snapshot: Snapshot) -> Catalogue:
    with snapshot.connection() as db:
        papers = [
            paper
            for paper in db.execute("SELECT paper_id, title, year FROM paper")
            if is_paper_id(paper[0])
        ]
        rows = db.execute("SELECT id, c0 FROM paper_fts_content ORDER BY id DESC").fetchall()
    years = {paper_id: year_number(year) for paper_id, _, year in papers}
    papers.sort(key=lambda paper: (-years[paper[0]], paper[1], paper[0]))
    known = {paper_id: paper_id for paper_id in years}  # one string for each id
    paper_of = {rowid: known[paper_id] for rowid, paper_id in rows if paper_id in known}
    rows_of: dict[str, tuple[int, ...]] = {}
    for rowid, paper_id in paper_of.items():
        rows_of[paper_id] = (*rows_of.get(paper_id, ()), rowid)
    place_of = {paper_id: place for place, (paper_id, _, _) in enumerate(papers)}
    return Catalogue(paper_of, rows_of, place_of, years)


def year_number(year: str) -> int:
    """A year as a number; -1 if it is unknown or invalid."""
    return int(year) if len(year) <= YEAR_DIGITS and year.isascii() and year.isdigit() else -1
