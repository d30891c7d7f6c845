"""Papers of reference managers: BibTeX and RIS."""

from tests.formats.owner import Owner, counts, write

BIBTEX = r"""This file was made by JabRef.

@Comment{jabref-meta: databaseType:bibtex;}
@preamble{ "\newcommand{\x}{y}" }
@string{jot = "Journal of " # {Tides}}

@article{König2026,
  author    = {K{\"o}nig, Ada and {\O}stby, S{\o}ren and {Office for Tides and Currents}},
  title     = {On the {Nordsee}: {\'E}tude of $\mathcal{O}(n)$ \emph{tides} \& cur\-rents},
  journal   = jot # "",
  year      = 2026,
  month     = mar,
  pages     = {12--34},
  abstract  = "The moon {"}pulls{"} the sea.
               A second line.",
  keywords  = {moon, tide; 海},
  doi       = {10.1000/tide_5},
  url       = {https://x.org/~ada/a\_b},
}

@inproceedings{
  no-comma, title = {Kelp} booktitle = {Proc. of Algae}, date = {2025-11-05}, number = 07
}
@misc{open, title = {Never closed, note = {x},
@book(paren, title = "Gr{\"u}\ss e", publisher = {Hafen}, year = "1999")
@misc{one, title={A}} @misc{two, title={B}}
@misc{empty, year = 2020}
"""


def test_a_bibtex_file_is_papers_with_plain_texts(owner: Owner) -> None:
    path = write(owner.home / "export", {"Library.bib": BIBTEX}) / "Library.bib"
    report = owner.bring(path, code=3)
    assert "Library.bib is read as bibtex" in report and counts(report)["new"] == 5
    assert "The entry 'open' is not closed." in report and "has no title, authors" in report
    rows = {row["id"]: row["data"] for row in owner.rows("papers")}
    assert rows["König2026"] == {
        "id": "König2026",
        "kind": "article",
        "authors": ["König, Ada", "Østby, Søren", "Office for Tides and Currents"],
        "title": r"On the Nordsee: Étude of $\mathcal{O}(n)$ tides & currents",
        "publication": "Journal of Tides",
        "year": "2026",
        "date": "2026",
        "abstract": 'The moon "pulls" the sea. A second line.',
        "keywords": ["moon", "tide", "海"],
        "doi": "10.1000/tide_5",
        "url": "https://x.org/~ada/a_b",
        "other": ["month: mar", "pages: 12--34"],
    }
    kelp = rows["no-comma"]
    assert (kelp["publication"], kelp["published_at"]) == ("Proc. of Algae", "2025-11-05")
    assert kelp["year"] == "2025" and kelp["other"] == ["number: 07"]
    assert rows["paren"]["title"] == "Grüße" and rows["paren"]["year"] == "1999"
    assert rows["one"]["title"] == "A" and rows["two"]["title"] == "B"
    owner.finds("moon pulls", "papers:König2026")
    owner.again(path, code=3)


RIS = """\ufeff1.
TY  - JOUR
AU  - König, Ada
AU  - Østby, Søren
TI  - Tides of the North Sea:
a long title
T2  - Journal of Tides
PY  - 2026
DA  - 2026/03/03/
VL  - 05
KW  - moon
KW  - tide; 海
AB  - The moon pulls the sea.
DO  - 10.1000/tide5
UR  - https://x.org/a
UR  - https://x.org/b
N1  - read it
ER  -
TY  - BOOK
ID  - 42
T1  - Kelp
Y1  - 2025///
TY  - CONF
A1  - Noor
ER  - \n"""


def test_an_ris_file_is_papers_even_without_ends(owner: Owner) -> None:
    path = write(owner.home / "export", {"refs.ris": RIS}) / "refs.ris"
    report = owner.bring(path)
    assert "refs.ris is read as ris" in report and counts(report)["new"] == 3
    rows = {row["id"]: row["data"] for row in owner.rows("papers")}
    assert rows["10.1000/tide5"] == {
        "id": "10.1000/tide5",
        "kind": "jour",
        "authors": ["König, Ada", "Østby, Søren"],
        "title": "Tides of the North Sea:\na long title",
        "publication": "Journal of Tides",
        "published_at": "2026-03-03",
        "year": "2026",
        "date": "2026/03/03/",
        "keywords": ["moon", "tide", "海"],
        "abstract": "The moon pulls the sea.",
        "doi": "10.1000/tide5",
        "url": "https://x.org/a",
        "notes": ["read it"],
        "other": ["VL: 05", "UR: https://x.org/b"],
    }
    assert rows["42"]["title"] == "Kelp" and rows["42"]["year"] == "2025"
    assert "published_at" not in rows["42"], "no day is invented"
    owner.again(path)
