"""The parts of a mail: headers, bodies, attachments, forwarded mails."""

from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage
from typing import Final, cast

from service.importing.texts import Texts

FORWARDED: Final = "message/rfc822"


def header(message: EmailMessage, name: str) -> str:
    """A header's text; a malformed one is returned unchanged."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    try:
        text = str(message.get(name, "")).strip()
    except (MessageError, ValueError, LookupError, AttributeError, TypeError):
        return raw.strip()
    return raw.strip() if "\ufffd" in text and "\ufffd" not in raw else text


def attachments(message: EmailMessage) -> list[EmailMessage]:
    """The parts beside the body: attachments, then calendar entries and pictures of the body."""
    parts = list(message.iter_attachments()) if message.is_multipart() else []
    known = {id(inner) for part in parts for inner in part.walk()}
    body = {"text/plain", "text/html"}
    for part in _leaves(message):
        if id(part) not in known and part is not message and part.get_content_type() not in body:
            parts.append(part)
    return parts


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    if message.get_content_type() == FORWARDED or not message.is_multipart():
        yield message
        return
    for part in message.iter_parts():
        yield from _leaves(cast(EmailMessage, part))


def content_of(part: EmailMessage) -> bytes:
    """The bytes of a part; of a forwarded mail, the mail."""
    if part.is_multipart():
        inner = part.get_payload(0) if part.get_content_type() == FORWARDED else part
        return cast(EmailMessage, inner).as_bytes()
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else part.as_bytes()


def title_of(part: EmailMessage) -> str:
    """The subject of a forwarded mail, which has no file name."""
    if part.get_content_type() != FORWARDED or not part.is_multipart():
        return ""
    return header(cast(EmailMessage, part.get_payload(0)), "subject")


def text_of_part(part: object, texts: Texts) -> str:
    """The text of a part; empty if it has no readable text."""
    assert isinstance(part, EmailMessage)
    if part.get_content_type() != FORWARDED or not part.is_multipart():
        charset = part.get_content_charset("utf-8")
        return texts.of_bytes(content_of(part), part.get_content_type(), charset)
    message = cast(EmailMessage, part.get_payload(0))
    names = ("From", "To", "Date", "Subject")
    lines = [f"{name}: {value}" for name in names if (value := header(message, name.lower()))]
    body = message.get_body(("plain", "html"))
    return "\n".join([*lines, "", text_of_part(body, texts) if body is not None else ""])
