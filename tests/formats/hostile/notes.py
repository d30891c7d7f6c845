"""Notes and bookmarks made to stop or swell an import."""

from collections.abc import Iterator

from tests.formats.hostile.files import Hostile, kind, several


@kind
def front_matter() -> Iterator[Hostile]:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)
    )
    matters = {
        "aliases": bomb,
        "merges": "a: &a {b: 1}\nc:\n  <<: [" + "*a," * 9_000 + "]\n",
        "itself": "a: &a [*a]\n",
        "lists": "a: " + "[" * 20_000,
        "objects": "a: " + "{a: " * 10_000,
        "dashes": "- " * 25_000 + "x\n",
        "keys": "? " * 25_000 + "x\n",
        "tags": "a: !!python/object/apply:os.system [id]\n",
        "integers": f"a: {'9' * 50_000}\n",
        "sexagesimal": f"a: 1{':59' * 20_000}\n",
        "dates": "date: 9999-99-99\nupdated: 2026-02-31T25:61:61Z\n",
        "binary": "a: !!binary '===='\nb: !!set {x, y}\n",
        "anchors": "".join(f"&a{n} " for n in range(9_000)) + "x\n",
        "quotes": 'a: "' + "\\" * 50_000 + "\n",
        "endless": "a: x\n" * 100_000,
        "names": "? [a, b]\n: x\n? {c: d}\n: y\n1: z\n",
        "numbers": "title: [1]\ntags: {a: b}\naliases: 5\ndate: 2026-03-03\n.nan: .inf\na: .nan\n",
    }
    yield from several(".md", {name: f"---\n{text}---\n# Tide\n" for name, text in matters.items()})


@kind
def notes() -> Iterator[Hostile]:
    fragments = (
        *("[[", "![[", "[a](", "![](", "# ", "#", "#a", "`", "```\n", "[[a|", "[[a#", " ", "\n#"),
        *('[a](b "', "<", "a/", "[", "]]", "# a ", "----\n", "\r", "\0"),
    )
    yield from several(
        ".md",
        {
            f"note-{n}": "# Tide\n" + part * (400_000 // len(part))
            for n, part in enumerate(fragments)
        },
    )
    yield from several(
        ".md",
        {
            "links": "\n".join(f"[[{n}]] ![[{'../' * 50}etc/passwd{n}]]" for n in range(5_000)),
            "outside": "![[../../../../etc/passwd]]\n![](/etc/passwd)\n![](file:///etc/passwd)",
        },
    )


@kind
def bookmarks() -> Iterator[Hostile]:
    begin = '<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><DT><A HREF="https://x.org/a">first</A>\n'
    bodies = {
        "deep": "<DL><H3>x</H3>" * 50_000,
        "folders": "<H3>a</H3><DL>" * 2_000 + '<A HREF="x">y</A>' * 2_000,
        "open": "<A HREF=" + "x" * 2_000_000,
        "quoted": '<A HREF="' + "x" * 2_000_000,
        "attributes": "<A " + "a " * 300_000,
        "same": '<A HREF="x" ' + "y=1 " * 200_000 + ">z</A>",
        "marked": "<![CDATA[" * 50_000,
        "declared": "<!" * 200_000,
        "comment": "<!--" + "-" * 2_000_000,
        "script": "<script>" + "</" * 500_000,
        "entities": "<A HREF='x'>" + "&#x110000;&#99999999999;&" * 50_000,
        "dates": '<A HREF="x" ADD_DATE="' + "9" * 5_000 + '">x</A>',
        "brackets": "<" * 300_000,
        "numbers": "<A HREF=x>" + "&#" + "9" * 300_000,
    }
    yield from several(".html", {name: begin + body for name, body in bodies.items()})
