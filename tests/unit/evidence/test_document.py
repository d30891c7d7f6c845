"""What a document shows of a record."""

from evidence.envelope import Envelope
from evidence.handles import RecordRef
from service.pdpp.decode.document import read_document

REF = RecordRef("notes", "n1", "c")
ROLES = {"primary-title": "title", "primary-text": "text"}


def test_a_title_field_that_gives_no_title_is_shown_like_any_other() -> None:
    body = {"roles": ROLES, "data": {"title": ["not", "text"], "text": "hello"}}
    found = read_document(Envelope(body), ref=REF)
    assert found.title == "notes"
    assert found.metadata["data.title"] == '["not","text"]'


def test_a_title_field_that_gives_the_title_stands_there_only() -> None:
    body = {"roles": ROLES, "data": {"title": "Plan", "text": "hello"}}
    found = read_document(Envelope(body), ref=REF)
    assert found.title == "Plan"
    assert "data.title" not in found.metadata
