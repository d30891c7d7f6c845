"""Notebooks, outlines and payments made to stop or swell an import."""

from collections.abc import Iterator

from tests.formats.hostile.files import Hostile, kind, several

BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">%s]>' % "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi")
)


@kind
def notebooks() -> Iterator[Hostile]:
    begin, note = "<en-export>", "<note><title>t</title>%s</note>"
    bodies = {
        "unclosed": "<note>" + "x" * 3_000_000,
        "starts": "<note>" * 300_000,
        "ends": "</note>" * 300_000,
        "bomb": note % "<content>&i;</content>",
        "deep": note % ("<a>" * 50_000),
        "boxes": note % f"<content><![CDATA[{'<en-todo ' * 100_000}]]></content>",
        "nested": note % f"<content><![CDATA[{'<div>' * 50_000}]]></content>",
        "resources": note % ("<resource><data>===</data></resource>" * 5_000),
        "times": note % f"<created>{'9' * 100_000}</created>",
        "outside": note % '<!DOCTYPE n SYSTEM "file:///etc/passwd"><content>x</content>',
    }
    yield from several(".enex", {name: begin + body for name, body in bodies.items()})
    yield from several(".enex", {"declared": BOMB + begin + note % "<content>&i;</content>"})


@kind
def outlines() -> Iterator[Hostile]:
    bodies = {
        "deep": "<outline text='a'>" * 50_000,
        "wide": "<outline text='a'/>" * 200_000,
        "long": f"<outline text='{'x' * 3_000_000}'/>",
        "attributes": "<outline " + " ".join(f"a{n}='x'" for n in range(50_000)) + "/>",
        "bomb": "<outline text='&i;'/>",
    }
    yield from several(".opml", {name: f"<opml>{body}" for name, body in bodies.items()})
    yield from several(".opml", {"declared": f"{BOMB}<opml><outline text='&i;'/></opml>"})
    secret = '<!DOCTYPE x [<!ENTITY s SYSTEM "file:///etc/passwd">]><opml><outline text="&s;"/>'
    yield from several(".opml", {"file": f"{secret}</opml>"})


@kind
def payments() -> Iterator[Hostile]:
    begin = "!Type:Bank\n"
    bodies = {
        "endless": "Px\n" * 300_000,
        "splits": "Sx\n$1\n" * 200_000 + "^\n",
        "marks": "^\n" * 500_000,
        "types": "!Type:Bank\n" * 200_000,
        "line": "P" + "x" * 3_000_000 + "\n^\n",
        "amounts": f"T{'9' * 100_000}\nD99/99'99\n^\n",
    }
    yield from several(".qif", {name: begin + body for name, body in bodies.items()})
