"""Notebooks, outlines, payments and references made to stop or swell an import."""

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


@kind
def references() -> Iterator[Hostile]:
    doubled = "".join(f"@string{{a{n} = a{n - 1} # a{n - 1}}}\n" for n in range(1, 60))
    entry, count = "@article{x, title = {A}, abstract = %s}\n", 300_000
    bodies = {
        "doubled": f"@string{{a0 = {{x}}}}\n{doubled}" + entry % "a59",
        "open": entry % "{" + "{" * count,
        "closed": entry % ("}" * count),
        "quotes": entry % ('"' * count),
        "parts": entry % (" # " * count),
        "equals": "@article{x, " + "=" * count,
        "commands": entry % ("{" + "\\o\\'{" * count + "}" * count + "}"),
        "spaces": f"@article{{x, author = {{A {' ' * count}B}}, title = {{{' ' * count}}}}}",
        "heads": "@article{" * count,
        "at": "@" * 3_000_000,
        "dollars": entry % ("{" + "$" * count + "}"),
        "macros": "".join(f"@string{{m{n} = {{x}}}}\n" for n in range(50_000)) + entry % "m1",
    }
    good = entry.replace("x,", "good,") % "{ebb}"
    yield from several(".bib", {f"bibtex-{name}": good + body for name, body in bodies.items()})
    begin = "TY  - JOUR\nTI  - A\n"
    lines = {
        "types": "TY  - JOUR\n" * 100_000,
        "endless": "AB  - x\n" * 300_000,
        "plain": "x\n" * 300_000,
        "line": "AB  - " + "x" * 3_000_000,
        "words": "KW  - " + ",;" * count,
        "dates": f"DA  - {'9' * count}\nPY  - {'9/' * count}\n",
    }
    yield from several(".ris", {f"ris-{name}": begin + body for name, body in lines.items()})


@kind
def statements() -> Iterator[Hostile]:
    begin, count = ":20:A\n:25:1\n:60F:C260301EUR1,00\n:61:260313D1,00NMSC\n", 300_000
    bodies = {
        "lines": ":86:x\n" + "y\n" * count,
        "line": ":86:" + "x" * 3_000_000,
        "codes": ":86:166" + "?20" * count,
        "marks": ":86:166?" * count,
        "slashes": ":86:/" + "/NAME/IBAN" * count,
        "digits": f":61:{'9' * count}\n:61:260313D{'1' * count},{'1' * count}\n",
        "fields": ":61:991399RC1,NMSC\n" * 50_000,
        "block": "{4:" * count,
    }
    yield from several(".sta", {f"mt940-{name}": begin + body for name, body in bodies.items()})
    camt = '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><Stmt>'
    good = "<Ntry><Amt>1</Amt></Ntry>"
    entries = {
        "deep": "<a>" * 50_000,
        "entry": "<Ntry>" + "<a>" * 50_000,
        "nested": "<Ntry>" * 20_000,
        "many": good * 50_000,
        "details": f"<Ntry><Amt>1</Amt><NtryDtls>{'<TxDtls/>' * 50_000}</NtryDtls></Ntry>",
        "entity": "<Ntry><Amt>&i;</Amt></Ntry>",
        "amount": f"<Ntry><Amt>{'9' * count}</Amt><BookgDt><Dt>x</Dt></BookgDt></Ntry>",
    }
    xml = {f"camt-{name}": camt + good + body for name, body in entries.items()}
    secret = '<!DOCTYPE x [<!ENTITY s SYSTEM "file:///etc/passwd">]>'
    xml["camt-file"] = f"{secret}{camt}<Ntry><Amt>&s;</Amt></Ntry></Stmt></Document>"
    xml["camt-bomb"] = f"{BOMB}{camt}<Ntry><Amt>&i;</Amt></Ntry></Stmt></Document>"
    yield from several(".xml", xml)
