"""The papers in `texts/`, one folder for each."""

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

TEXTS = Path(__file__).parent / "texts"
PREFERRED = "simple"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DemoPaper:
    """One paper. `translations` and `summaries` are by language and by template."""

    title: str
    authors: tuple[str, ...]
    year: str
    month: str
    venue: str
    doi: str | None
    bibtex_key: str
    institutions: tuple[str, ...]
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    abstract: str
    output_language: str
    source: str | None
    translations: dict[str, str]
    summaries: dict[str, str]

    @property
    def key(self) -> str:
        """The permanent key of the paper: its DOI, else its BibTeX key."""
        return f"doi:{self.doi}" if self.doi else f"bib:{self.bibtex_key}"

    @property
    def paper_id(self) -> str:
        return sha256(f"v1|{self.key}")[:32]

    @property
    def publication_date(self) -> str:
        return "-".join(part for part in (self.year, self.month) if part != UNKNOWN)

    @property
    def fingerprint(self) -> str:
        """Title, authors, venue and year, in one spelling, as JSON."""
        words = re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", self.title).lower())
        members = {
            "authors": sorted(map(folded, self.authors)),
            "title": words.strip(),
            "venue": folded(self.venue),
            "year": self.year,
        }
        return orjson.dumps(members, option=orjson.OPT_SORT_KEYS).decode()

    @property
    def bibtex(self) -> str:
        fields = {
            "author": " and ".join(self.authors),
            "title": self.title,
            "journal": self.venue,
            "year": self.year,
            "doi": self.doi or UNKNOWN,
        }
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value != UNKNOWN]
        return ",\n".join((f"@article{{{self.bibtex_key}", *lines)) + "\n}\n"


def papers() -> Iterator[DemoPaper]:
    """All papers, always in the same order."""
    for folder in sorted(path for path in TEXTS.iterdir() if path.is_dir()):
        yield _paper(folder)


def folded(value: str) -> str:
    """A facet's spelling: lower case, single spaces."""
    return " ".join(value.lower().split())


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _paper(folder: Path) -> DemoPaper:
    data = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))
    lists = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
    return DemoPaper(
        **{"doi": None, "output_language": "en", **data, **lists},
        source=_by_stem(folder).get("source"),
        translations=_by_stem(folder / "translations"),
        summaries=_by_stem(folder / "summaries"),
    )


def _by_stem(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.md"))}
