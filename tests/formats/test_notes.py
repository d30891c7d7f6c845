"""Folders of notes: front matter, links between notes, attachments, plain text."""

from tests.formats.owner import Owner, counts, write

VAULT = {
    "Projekte/Gezeiten.md": """\
---
title: Gezeitenkraftwerk
date: 2026-03-03
tags: [energie, "küste"]
status: draft
---
# Not the title

See [[Tägliches/2026-03-04|the day]] and [[Personen/Ada König]], or [plan](../plan%20b.md "Plan").
![[turbine.png]] ![alt](img/liste.csv) [[Nirgends]] #offen/bald

```sh
echo "#notatag [[notalink]]"
```
""",
    "Tägliches/2026-03-04.md": "Heute den Leuchtturm besucht. Foto: ![[fehlt.jpg]]\n",
    "Personen/Ada König.md": "---\naliases: Ada\n---\n# Ada König ☀\n\nLotsin.\n",
    "plan b.md": "<p align=center>Ausweichplan</p>\r\n",
    "broken.md": "---\ntitle: [unclosed\n---\nText stays, 春の海.\n",
    "einkauf.txt": "Milch, Eier und Brot.\nUnd eine Lampe.\n",
    "werte.txt": "id;text\n1;kolben\n2;welle\n",
    "Projekte/turbine.png": b"\x89PNG\r\n",
    "Projekte/img/liste.csv": "teil\nschaufel\n",
    ".obsidian/app.json": "{}",
}


def test_a_vault_is_notes_with_links_times_and_attachments(owner: Owner) -> None:
    folder = write(owner.home / "Vault", VAULT)
    report = owner.bring(folder)
    assert "6 as notes" in report and "turbine.png cannot be imported" not in report
    assert "Missing files that records refer to: 1 (first: fehlt.jpg" in report
    assert "broken.md: The front matter is kept as text, because it is not valid YAML" in report
    rows = {row["id"]: row["data"] for row in owner.rows("notes")}
    assert rows.keys() == {name for name in VAULT if name.endswith(".md")} | {"einkauf.txt"}
    note = rows["Projekte/Gezeiten.md"]
    assert (note["title"], note["written_at"]) == ("Gezeitenkraftwerk", "2026-03-03")
    assert note["tags"] == ["energie", "küste", "offen/bald"]
    assert note["links"] == [
        *("Tägliches/2026-03-04.md", "Personen/Ada König.md", "Nirgends", "plan b.md"),
    ]
    assert note["properties"]["status"] == "draft"
    assert rows["Tägliches/2026-03-04.md"]["written_at"] == "2026-03-04"
    assert rows["Personen/Ada König.md"]["title"] == "Ada König ☀"
    assert rows["broken.md"]["text"].startswith("---\ntitle: [unclosed")
    owner.finds("春の海", "notes:broken.md")
    attached = {row["id"]: row["data"]["filename"] for row in owner.rows("attachments")}
    assert attached == {
        "Projekte/Gezeiten.md#1": "turbine.png",
        "Projekte/Gezeiten.md#2": "liste.csv",
    }
    owner.finds("schaufel", "liste:")
    owner.finds("kolben", "werte:1")
    assert counts(report)["new"] == 7 + 2 + 2
    owner.again(folder)


def test_a_single_note_is_a_note(owner: Owner) -> None:
    path = write(owner.home / "Vault", {"one.md": "Only words."}) / "one.md"
    assert "one.md is read as notes." in owner.bring(path)
    owner.finds("words", "notes:one.md")
