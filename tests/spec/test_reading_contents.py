"""What the reading pages show of records: images, and notes in Markdown."""

import re
from html import unescape
from pathlib import Path

from tests.helpers import worlds
from tests.helpers.worlds import BINARY, Connection, World
from tests.spec.reading_visits import entered, page

IMAGES = {
    "png": b"\x89PNG\r\n\x1a\n" + BINARY,
    "jpeg": b"\xff\xd8\xff\xe0" + BINARY,
    "gif": b"GIF89a" + BINARY,
    "webp": b"RIFF\x00\x01\x02\nWEBP" + BINARY,
}
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def test_an_attachment_is_previewed_if_its_bytes_are_an_image(tmp_path: Path) -> None:
    files = {name: (content, "text/html") for name, content in IMAGES.items()}
    files |= {"svg": (SVG, "image/svg+xml"), "fake": (SVG, "image/png"), "none": (b"", "image/png")}
    rows = [
        worlds.row("files", name, name=name, file=worlds.blob(content, kind, name))
        for name, (content, kind) in files.items()
    ]
    fields = {"name": worlds.text("primary-title"), "file": {"type": "object"}}
    connection = Connection("drive", "files", "Drive", (worlds.stream("files", fields),), (*rows,))
    house = worlds.build(World((connection,)), tmp_path)
    client = entered(house.app, house.grant()[1])
    for name, (content, _) in files.items():
        html = page(client, f"/read/drive/files:{name}")
        image = re.search(r'<img src="[^"]*(/read/blob[^"]+)" alt="" loading', html)
        assert (image is not None) is (name in IMAGES), name
        path = unescape(image[1]) if image else f"/read/blob?blob={name}&source=drive&preview=1"
        answer = client.get(path)
        assert answer.status_code == (200 if name in IMAGES else 404)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        if name in IMAGES:
            assert answer.data == content and answer.mimetype == f"image/{name}"
            assert answer.headers["Content-Security-Policy"].endswith("; sandbox")
            assert answer.headers["Content-Disposition"] == "attachment"


NOTE = """# Plan

See [[Harbour|the harbour]], [[Boats/Log#May]] and ![x](https://evil.example/x.png).

| Who | What |
|-----|:----:|
| Ada | *tide* \\| table |
| <b>x | [[Harbour]] | more |

Before it
Port | Depth
--- | ---
Brest | 12 m

- first heron
- second
"""


def test_a_note_has_tables_links_and_marks_and_loads_nothing(tmp_path: Path) -> None:
    fields = {"title": worlds.text("primary-title"), "text": worlds.text("primary-text")}
    stream = worlds.stream("notes", fields, query={"search": {"lexical_fields": ["title", "text"]}})
    crowd = "|a|\n|-|\n|b|\n\n" * 350 + "[[a]]" * 400
    rows = [
        worlds.row("notes", "plan", title="Plan", text=NOTE),
        worlds.row("notes", "harbour", title="Harbour", text="Deep water."),
        worlds.row("notes", "crowd", title="Crowd", text=crowd),
    ]
    house = worlds.build(World((Connection("n", "notes", "N", (stream,), (*rows,)),)), tmp_path)
    client = entered(house.app, house.grant()[1])
    html = page(client, "/read/n/notes:plan", q='"first heron"')
    for shown in (
        '<th scope="col">Who</th><th scope="col">What</th>',
        "<td>Ada</td><td><em>tide</em> | table</td>",
        "<td>&lt;b&gt;x</td>",
        '<p dir="auto">Before it</p>',
        '<th scope="col">Depth</th></tr>\n<tr><td>Brest</td><td>12 m</td></tr>',
        '<li><mark id="match">first heron</mark></li>',
        "![x](https://evil.example/x.png)",
    ):
        assert shown in html, shown
    assert not re.search('(src|href)="https?://evil', html)
    names = re.findall('<a href="([^"]+)">(the harbour|Boats/Log#May|Harbour)</a>', html)
    assert [name for _, name in names] == ["the harbour", "Boats/Log#May", "Harbour"]
    path = re.sub(r"^/s/[\w-]{22}", "", unescape(names[0][0]))
    hits = re.findall('class="hit" href="[^"]*/read/([^"?]+)', page(client, path))
    assert hits == ["n/notes:harbour"]
    for offset in ("0", "3000", "5000"):
        page(client, "/read/n/notes:crowd", offset=offset)
