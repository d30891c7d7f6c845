import io
import json
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

import pytest

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.importing.readers import json_files
from service.importing.formats import detect
from service.importing.process.guard import records
from service.importing.source import Reading, Repair, Source
from service.records.intake import Row
from evidence.manifest import parse
from service.importing.rows import text_of
from service.importing.readers.mbox import MANIFEST


def read(form: str, content: bytes | str, name: str = "work.file") -> list[tuple[int, Row | str]]:
    raw = content if isinstance(content, bytes) else content.encode()
    file = io.BufferedReader(cast(io.RawIOBase, io.BytesIO(raw)))
    return rows(Source(name, form, file, Repair()))


def rows(source: Source) -> list[tuple[int, Row | str]]:
    return [(line, content) for _, line, content in records(source)]


def data(form: str, content: bytes | str) -> list[dict[str, Any]]:
    return [item.data for _, item in read(form, content) if isinstance(item, Row)]


def test_formats_are_known_by_extension() -> None:
    assert detect("a/b.JSONL") == "ndjson"
    assert detect("b.tsv") == "tsv"
    assert detect("-") == "ndjson"
    with pytest.raises(InvalidRequest, match="--format"):
        detect("b.dwg")


def test_ndjson_lines_may_be_plain_records_or_pdpp_ingest_rows() -> None:
    lines = (
        '\ufeff{"id": 1, "key": "x"}\n\n'
        '{"key": "k", "data": {"a": 1}, "emitted_at": "2026-01-01T00:00:00Z", "stream": "s"}\n'
        '{"key": ["a", "b"], "op": "delete"}\n'
        '{"data": {"a": 1}}'
    )
    assert read("ndjson", lines) == [
        (1, Row({"id": 1, "key": "x"})),
        (3, Row({"a": 1}, "k", "2026-01-01T00:00:00Z", "s")),
        (4, Row({}, ["a", "b"], deleted=True)),
        (5, Row({"data": {"a": 1}})),
    ]


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"a": "\\ud800"}', "not JSON"),
        ('{"key": "a", "data": {}, "op": "drop"}', '"delete"'),
        ('{"key": "a", "data": {}, "stream": 5}', "must be a string"),
        ("[" * 5_000, "not JSON"),
    ],
)
def test_a_bad_line_is_reported_and_reading_goes_on(line: str, advice: str) -> None:
    (number, message), (_, row) = read("ndjson", f'{line}\n{{"id": 2}}\n')
    assert number == 1
    assert isinstance(message, str) and advice in message
    assert row == Row({"id": 2})


@pytest.mark.parametrize("form", ["ndjson", "json"])
def test_bytes_of_json_that_are_not_in_its_encoding_are_refused(form: str) -> None:
    content, reading = b'{"id": 1, "a": "\xff"}\n', Reading(encoding="utf-8")
    source = Source("x", form, io.BytesIO(content), Repair(), reading)
    try:
        ((_, refused),) = rows(source)
    except InvalidRequest as error:
        refused = error.message
    assert isinstance(refused, str) and "--encoding" in refused
    source = Source("x", form, io.BytesIO(content), Repair(replace=True), reading)
    assert rows(source) == [(1, Row({"id": 1, "a": "\ufffd"}))]
    assert source.repair.undecodable == 1


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert data("ndjson", '{"a": "\\\\u0000"}') == [{"a": "\\u0000"}]


def test_a_line_over_the_bound_is_skipped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "BUDGETS", replace(BUDGETS, import_row_bytes=20))
    found = read("ndjson", '{"a": "' + "x" * 100 + '"}\n{"b": 1}\n')
    assert [number for number, _ in found] == [1, 2]
    assert isinstance(found[0][1], str) and found[1][1] == Row({"b": 1})


def test_a_long_line_is_read_in_one_piece() -> None:
    assert len(data("ndjson", '{"a": "' + "x" * 30_000_000 + '"}')[0]["a"]) == 30_000_000


def test_json_may_be_an_array_or_an_object_with_one() -> None:
    assert data("json", '[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]
    assert data("json", '{"total": 1, "items": [{"a": 1}]}') == [{"a": 1}]
    assert data("json", '{"export": {"items": [{"a": 1}]}}') == [{"a": 1}]
    assert (
        data("json", '{"a": 1}') == [{"a": 1}] and data("json", '{"total": 0, "items": []}') == []
    )


def test_several_arrays_of_a_document_are_several_streams() -> None:
    found = read("json", '{"users": [{"a": 1}], "posts": [{"b": 2}], "n": 1}')
    assert [row.stream for _, row in found if isinstance(row, Row)] == ["users", "posts"]


@pytest.mark.parametrize("content", ["5", "{}", '"a"'])
def test_json_without_records_is_refused_with_a_way_out(content: str) -> None:
    with pytest.raises(InvalidRequest, match="jq"):
        read("json", content)


def test_objects_that_follow_each_other_in_a_document_are_its_records() -> None:
    assert data("json", '{"a": 1}\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]
    with pytest.raises(InvalidRequest, match="--format ndjson"):
        read("json", '{"a": 1}\n{"a": 2}\n5\n')


def test_nuls_in_json_are_replaced_one_for_one_and_counted() -> None:
    for form, content in (
        ("json", b'[{"a": ["x\\u0000\\u0000y"]}]'),
        ("ndjson", b'{"a": ["x\\u0000\\u0000y"]}'),
    ):
        source = Source("x", form, io.BytesIO(content), Repair())
        ((_, row),) = rows(source)
        assert row == Row({"a": ["x\ufffd\ufffdy"]})
        assert source.repair.nuls == 2


def test_csv_cells_are_text_until_the_whole_sample_agrees_on_a_type() -> None:
    content = (
        '\ufeffid,count,ratio,ok,zip,"no, te"\r\n'
        '1,5,0.5,true,007,"two\nlines"\r\n'
        "2,,1e3,FALSE,12,\r\n"
    )
    assert data("csv", content) == [
        dict(zip(("id", "count", "ratio", "ok", "zip", "no, te"), row))
        for row in (
            ("1", "5", "0.5", "true", "007", "two\nlines"),
            ("2", "", "1e3", "FALSE", "12", ""),
        )
    ]


def test_a_row_with_another_number_of_cells_is_reported_by_line() -> None:
    found = read("tsv", "a\tb\n1\t2\n3\n4\t5\n")
    assert [number for number, _ in found] == [2, 3, 4]
    assert found[1][1] == "This row does not fit the table. Cells: 1. Columns: 2."


def test_undecodable_bytes_are_refused_unless_their_replacement_is_asked_for() -> None:
    content, reading = b"a,b\nx\0y,\xff\xe4\n1,\xc3\xa4\n", Reading(encoding="utf-8")
    source = Source("x", "csv", io.BytesIO(content), Repair(), reading)
    (_, refused), (_, row) = rows(source)
    assert isinstance(refused, str) and "--encoding" in refused and row == Row({"a": "1", "b": "ä"})
    source = Source("x", "csv", io.BytesIO(content), Repair(replace=True), reading)
    (_, first), _ = rows(source)
    assert first == Row({"a": "x\ufffdy", "b": "\ufffd\ufffd"})
    assert (source.repair.nuls, source.repair.undecodable) == (1, 2)


def test_a_csv_field_may_be_larger_than_the_modules_default() -> None:
    assert len(data("csv", "a\n" + "x" * 200_000 + "\n")[0]["a"]) == 200_000


def test_csv_column_names_that_repeat_or_are_missing_get_their_number() -> None:
    assert data("csv", "a,a,\n1,2,\n") == [{"a": "1", "a_2": "2"}]


def mail(**headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return message


def mbox(*messages: EmailMessage | bytes) -> bytes:
    raw = (m if isinstance(m, bytes) else m.as_bytes() for m in messages)
    return b"\n".join(b"From x@y Thu Jan  1 00:00:00 2026\n" + content for content in raw)


def letter() -> EmailMessage:
    message = mail(
        Message_ID="<m1@x>",
        Subject="Grüße aus Köln",
        From="Ada Brandt <ada@x.org>",
        To="noor@x.org, Kenji <kenji@x.org>",
        Date="Thu, 01 Jan 2026 10:00:00 +0200",
        References="<root@x> <m0@x>",
    )
    message.set_content("Hello\n>From the harbour\n")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="a.png")
    return message


def test_mail_becomes_messages_and_attachments() -> None:
    (_, message), (_, attachment) = read("mbox", mbox(letter()), "home/inbox.mbox")
    assert isinstance(message, Row) and isinstance(attachment, Row)
    assert message.stream == "messages"
    assert message.data == {
        "id": "m1@x",
        "thread_id": "root@x",
        "subject": "Grüße aus Köln",
        "from": "Ada Brandt <ada@x.org>",
        "to": ["noor@x.org", "Kenji <kenji@x.org>"],
        "cc": [],
        "sent_at": "2026-01-01T08:00:00Z",
        "folder": "inbox",
        "labels": [],
        "body": "Hello\nFrom the harbour\n",
    }
    assert attachment.stream == "attachments"
    assert attachment.data["message_id"] == "m1@x"
    assert attachment.data["blob_ref"] == {"mime_type": "image/png", "data_base64": b"\x89PNG"}


def test_a_mail_without_an_id_is_known_by_its_hash() -> None:
    content = mbox(mail(Subject="x"), mail(Subject="y"))
    first = [row.data["id"] for _, row in read("mbox", content) if isinstance(row, Row)]
    again = [row.data["id"] for _, row in read("mbox", content) if isinstance(row, Row)]
    assert first == again and len(set(first)) == 2 and all(len(name) == 64 for name in first)


def test_html_mail_gives_its_readable_text() -> None:
    message = mail(Message_ID="<h@x>")
    message.set_content(
        "<style>p{}</style><p>Hello &amp; <b>bye</b></p><p>你好</p>", subtype="html"
    )
    assert data("mbox", mbox(message))[0]["body"] == "Hello & bye\n\n你好"
    assert text_of("<script>x()</script>a<br>b") == "a\nb"


def pdf(words: str) -> bytes:
    """A page with some words."""
    drawn = f"BT /F1 12 Tf 72 700 Td ({words}) Tj ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        " /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    found, places = "%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(found))
        found += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(found)
    found += f"xref\n0 6\n0000000000 65535 f \n{table}trailer << /Size 6 /Root 1 0 R >>\n"
    return f"{found}startxref\n{start}\n%%EOF\n".encode()


@pytest.mark.parametrize("content", [pdf("Harbour plan"), b"%PDF-1.4 broken"])
def test_the_text_of_a_pdf_is_read_if_it_can_be(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    message = mail(Message_ID="<p@x>")
    message.set_content("see attached")
    message.add_attachment(content, maintype="application", subtype="pdf", filename="plan.pdf")
    file = io.BufferedReader(cast(io.RawIOBase, io.BytesIO(mbox(message))))
    source = Source("x", "mbox", file, Repair())
    _, (_, attachment) = rows(source)
    assert isinstance(attachment, Row)
    if b"Harbour" in content:
        assert attachment.data["text"] == "Harbour plan" and source.notes == []
    else:
        assert "text" not in attachment.data
        assert source.notes == ["PDF attachments whose text cannot be read: 1."]
    assert not caplog.records


def test_html_that_is_nested_beyond_every_parser_keeps_its_words() -> None:
    page = "<p>intro</p>" + "<div>" * 3_000 + "harbour" + "</div>" * 3_000
    assert text_of(page).split() == ["intro", "harbour"]


def test_broken_mail_never_stops_the_mailbox() -> None:
    broken = [
        b"Subject: =?utf-8?b?////?=\nDate: not a date\nFrom: <<<>>>\nTo: ,,;\n\nx\n",
        b"Content-Type: text/plain; charset=klingon\n\n\xff\xfe\0\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhalf\n",
        b"no headers at all\n\nbody\n",  # its separator belongs to the message before it
        b"",
    ]
    found = read("mbox", mbox(*broken, letter()))
    messages = [row for _, row in found if isinstance(row, Row) and row.stream == "messages"]
    assert len(messages) == 4
    assert all("\0" not in json.dumps(row.data) for row in messages)


def test_the_manifest_of_mail_is_valid() -> None:
    assert [stream.name for stream in parse(MANIFEST)] == ["messages", "attachments"]


def test_lines_that_only_look_like_a_separator_do_not_part_a_mail() -> None:
    message = b"Message-ID: <a@x>\n\nOne line\nFrom here on\n"
    assert data("mbox", mbox(message))[0]["body"] == "One line\nFrom here on\n"


def test_the_folder_is_the_files_name() -> None:
    assert Source("a/b/Inbox 2.mbox", "mbox", io.BytesIO(), Repair()).folder == "Inbox 2"
    assert Path("a/b/Inbox 2.mbox").stem == "Inbox 2"
