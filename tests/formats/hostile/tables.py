"""JSON, tables and workbooks made to stop or swell an import."""

import io
import json
import zipfile
from collections.abc import Iterator

from openpyxl import Workbook

from tests.formats.hostile.files import Hostile, kind, several


def objects(*values: str) -> str:
    return "".join(
        f"{value}\n" for value in ('{"id": 1, "t": "first"}', *values, '{"id": 2, "t": "last"}')
    )


@kind
def objects_and_arrays() -> Iterator[Hostile]:
    deep = 100_000
    wide = json.dumps({f"f{n}": n for n in range(60_000)})
    values = {
        "arrays": f'{{"id": 3, "a": {"[" * deep}{"]" * deep}}}',
        "objects": '{"id": 3, "a": ' + '{"a":' * deep + "1" + "}" * (deep + 1),
        "levels": f'{{"id": 3, "a": {"[" * 500}{"]" * 500}}}',
        "digits": f'{{"id": 3, "a": {"9" * 3_000_000}}}',
        "fraction": f'{{"id": 3, "a": 0.{"9" * 3_000_000}}}',
        "exponent": '{"id": 3, "a": 1e999999999999, "b": -1E-999999999999}',
        "decimal": f'{{"id": 3, "a": {{"$numberDecimal": "{"9" * 99_999}"}}}}',
        "date": '{"id": 3, "a": {"$date": 99999999999999999999}, "b": {"$numberLong": "x"}}',
        "wide": wide,
        "name": f'{{"id": 3, "{"n" * 1_000_000}": 1, "": 2, "\\u0000": 3, ".": 4}}',
        "surrogates": '{"id": 3, "a": "\\ud800", "\\udfff": 1}',
        "nul": '{"id": "\\u0000", "a": "\\u0000"}',
        "long": json.dumps({"id": 3, "a": "a" * 20_000_000}),
        "words": json.dumps({"id": 3, "a": "-'’.·_" * 300_000}),
        "marks": json.dumps({"id": 3, "a": "e" + "\u0301" * 500_000}, ensure_ascii=False),
        "joiners": json.dumps({"id": 3, "a": "ﷺ\u200d" * 200_000}, ensure_ascii=False),
        "keys": '{"id": {"a": 1}, "t": 1}\n{"id": null}\n{"id": true}\n{"id": [1]}',
        "ingest": '{"key": {}, "data": 5, "op": "delete"}\n{"key": 1, "data": {}, "op": 7}',
        "exported": '{"object": "record", "id": [], "stream": {}, "emitted_at": 1, "data": "x"}',
        "scalars": 'null\n1\n[]\n"x"\n{\n}\n{}',
        "blobs": '{"id": 3, "b": {"data_base64": "====", "blob_id": 1, "mime_type": []}}',
    }
    yield from several(".ndjson", {name: objects(value) for name, value in values.items()})
    rows = (json.dumps({"id": n, **{f"{n} {m}": "x" for m in range(30)}}) for n in range(2_000))
    streams = (json.dumps({"stream": f"s{n}", "data": {"a": n}}) for n in range(200))
    yield from several(
        ".ndjson",
        {
            "fields": objects(*rows),
            "streams": objects(*streams),
            "bytes": objects('{"id": 3, "t": "\udcff"}').encode("utf-8", "surrogateescape"),
        },
    )
    yield from several(
        ".json",
        {
            "deep": "[" * deep,
            "deeper": '{"a":' * deep,
            "cut": '[{"id": 1}, {"id": 2',
            "comma": '[{"id": 1},]',
            "twice": '{"a": [{"id": 1}], "a": [{"id": 2}], "a": 5}',
            "arrays": json.dumps({f"s{n}": [{"id": n}] for n in range(600)}),
            "spaces": " " * 5_000_000 + "[",
            "string": '["' + "x" * 5_000_000,
            "mixed": '[{"id": 1}, 5, null, [], "x", {"id": 2}]',
            "number": "[" + "9" * 2_000_000 + "]",
            "escape": '[{"a": "' + "\\u" * 100_000,
        },
    )


@kind
def tables() -> Iterator[Hostile]:
    wide = ",".join(f"c{n}" for n in range(20_000))
    yield from several(
        ".csv",
        {
            "columns": f"{wide}\n" + f"{','.join(['1'] * 20_000)}\n" * 20,
            "empty": "," * 20_000 + "\n" + ("," * 20_000 + "\n") * 20,
            "same": ",".join(["name"] * 20_000) + "\n" + ",".join(["1"] * 20_000) + "\n",
            "quote": 'a,b\n1,"' + "x,y\n" * 500_000,
            "quotes": '"' * 500_001,
            "doubled": 'a,b\n1,"' + '""' * 500_000 + '"\n2,x\n',
            "commas": "," * 1_000_000,
            "ragged": "".join("x," * (n % 90) + "y\n" for n in range(5_000)),
            "nul": "a,b\n1,\0\n\0,2\n" + "\0" * 100_000,
            "returns": "\r" * 300_000,
            "names": f"{'n' * 100_000},{'n' * 100_000}\n1,2\n",
            "sep": "sep=\n1,2\n",
            "numbers": f"a,b\n{'9' * 200_000},1e{'9' * 90_000}\n",
            "dates": "day,b\n" + "99/99/9999 99:99:99,x\n" * 5_000,
            "escapes": "a,b\n" + "\\,\\\n" * 20_000,
            "patterns": "http://" + "a.b" * 2_000 + "@" * 3_000 + "," + "1-" * 3_000,
            "blank": "\n" * 500_000,
        },
    )
    texts = ("a,b\né,1\n" * 9, "", "a", "a,b\n" + "\U0001f600,x\n" * 99)
    yield from several(
        ".csv",
        {
            f"encoding-{number}-{name}": content
            for number, text in enumerate(texts)
            for name, content in (
                ("utf16", text.encode("utf-16") + b"x"),
                ("utf32", b"\xff\xfe\0\0" + text.encode("utf-32-le") + b"x"),
                ("odd", text.encode() + b"\xff\xfe\x80" * 999),
            )
        },
    )


SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def book(sheet: str, strings: str = "", head: str = "<?xml version='1.0'?>") -> bytes:
    """A workbook with this XML in its sheet."""
    file, made = io.BytesIO(), io.BytesIO()
    plain = Workbook()
    plain.active.append(["a", "b"])
    plain.save(file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):
                content = f'{head}<worksheet xmlns="{SHEET}">{sheet}</worksheet>'.encode()
            elif name.endswith("sharedStrings.xml") and strings:
                content = f'<?xml version="1.0"?><sst xmlns="{SHEET}">{strings}</sst>'.encode()
            new.writestr(name, content)
    return made.getvalue()


def cells(*values: str) -> str:
    first, last = f"<row r='1'>{''.join(values)}</row>", "<row r='2'><c r='A2'><v>1</v></c></row>"
    return f"<sheetData>{first}{last}</sheetData>"


@kind
def workbooks() -> Iterator[Hostile]:
    one = "<c r='A1'><v>1</v></c>"
    laughs = "<!DOCTYPE x [<!ENTITY a0 'tide'>" + "".join(
        f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12)
    )
    yield from several(
        ".xlsx",
        {
            "dimension": book(f"<dimension ref='A1:XFD1048576'/>{cells(one)}"),
            "column": book(cells(one, "<c r='XFD1'><v>1</v></c>")),
            "beyond": book(cells(one, "<c r='ZZZZZZZ1'><v>1</v></c>")),
            "row": book("<sheetData><row r='999999999999'><c><v>1</v></c></row></sheetData>"),
            "rows": book(
                "<sheetData>" + "<row r='1'><c r='XFD1'><v>1</v></c></row>" * 3_000 + "</sheetData>"
            ),
            "index": book(
                cells("<c r='A1' t='s'><v>999999999</v></c><c r='B1' t='s'><v>-5</v></c>")
            ),
            "style": book(cells("<c r='A1' s='99999'><v>1</v></c>")),
            "number": book(cells(f"<c r='A1'><v>{'9' * 500_000}</v></c>")),
            "date": book(cells("<c r='A1' t='d'><v>99999-99-99</v></c>")),
            "error": book(cells("<c r='A1' t='e'><v>#REF!</v></c><c r='B1' t='x'><v>y</v></c>")),
            "text": book(cells("<c r='A1' t='inlineStr'><is>" + "<t>x</t>" * 50_000 + "</is></c>")),
            "deep": book("<sheetData>" + "<x>" * 50_000 + "</x>" * 50_000 + "</sheetData>"),
            "entities": book(
                cells("<c t='str'><v>&a11;</v></c>"), head=f"<?xml version='1.0'?>{laughs}]>"
            ),
            "outside": book(
                cells("<c t='str'><v>&a;</v></c>"),
                head="<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>",
            ),
            "merged": book(
                f"{cells(one)}<mergeCells><mergeCell ref='A1:XFD1048576'/></mergeCells>"
            ),
            "links": book(f"{cells(one)}<hyperlinks><hyperlink ref='A1:XFD99999'/></hyperlinks>"),
            "formula": book(cells("<c r='A1'><f t='shared' ref='A1:XFD1048576' si='0'>A1</f></c>")),
            "bomb": book("<sheetData>" + " " * 400_000_000 + "</sheetData>"),
            "cut": book(cells(one))[:-200],
        },
    )
